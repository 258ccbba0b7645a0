//! Content of a failure file.

use super::random::RandomFailure;
use crate::{FileError, LinkAction};

/// A parsed failure file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FailureFile {
    /// The enabled processes, each at most once.
    pub(super) processes: Vec<Process>,
    /// Probability of losing a packet anywhere on its path, in millionths.
    pub(super) random_ppm: u32,
    /// Whether cables fail between the two top tiers only.
    pub(super) upper_only: bool,
    /// Failures neither start nor last beyond this time.
    pub(super) stop_ps: Option<u64>,
    /// Additional failures, not from the file.
    pub(super) random: Vec<RandomFailure>,
}

/// A reason why failures cannot be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DrawError {
    /// An error in a line of the file.
    #[error("{}", .0.message)]
    Line(FileError),
    /// An error in a random failure.
    #[error("{message}")]
    Random {
        /// Index of the failure.
        index: usize,
        /// The error, and what is allowed.
        message: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Device {
    /// One direction of a cable between two switches.
    Cable,
    /// A switch without hosts.
    Switch,
    /// A host's interface, both directions.
    Nic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// All frames are dropped.
    Fail,
    /// Some frames are dropped, and switches become slow.
    Degradation,
    BitErrors,
    /// Every n-th frame is dropped.
    Periodic,
}

/// A kind of failure of a kind of device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Process {
    pub(super) device: Device,
    pub(super) failure: Failure,
    /// Start of the first.
    pub(super) start_ps: u64,
    pub(super) period_ps: u64,
    /// `None` is forever.
    pub(super) duration_ps: Option<u64>,
    /// Maximum share of failed devices (1 = one device), or share of frames with bit errors.
    pub(super) share: f64,
    /// Of periodic loss: consecutive frames lost.
    pub(super) lose: u32,
    /// Of periodic loss: frames passed between losses.
    pub(super) pass: u32,
    /// The rate of a degraded switch is divided by a hundred times this.
    pub(super) slowdown: f64,
    /// Line that enables it, for errors.
    pub(super) line: usize,
}

impl Process {
    pub(super) const fn new(device: Device, failure: Failure) -> Self {
        Self {
            device,
            failure,
            start_ps: 0,
            period_ps: 0,
            duration_ps: None,
            share: 1.0,
            lose: 1,
            pass: 0,
            slowdown: 0.1,
            line: 0,
        }
    }
}

impl FailureFile {
    /// Returns the silent failure of a `share` below 1 of the cables in one direction, from time 0.
    pub fn dead_cables(share: f64) -> Self {
        let process = Process { share, ..Process::new(Device::Cable, Failure::Fail) };
        Self { processes: vec![process], ..Self::default() }
    }

    /// Returns the lowest rate of links, in millionths, by a random failure from time 0, if any.
    pub fn slowest_ppm(&self) -> Option<u32> {
        let rate = |failure: &RandomFailure| match failure.action {
            LinkAction::Rate { ppm } if failure.at_ps == 0 => Some(ppm),
            _ => None,
        };
        self.random.iter().filter_map(rate).min()
    }

    /// Returns this file with random failures added.
    #[must_use]
    pub fn and(self, random: Vec<RandomFailure>) -> Self {
        Self { random, ..self }
    }
}
