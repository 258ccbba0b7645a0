//! What a failure file says, once it is read.

use super::random::RandomFailure;
use crate::{FileError, LinkAction};

/// A parsed failure file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FailureFile {
    /// What is switched on, each once.
    pub(super) processes: Vec<Process>,
    /// Probability with which a packet is lost somewhere on its path, in millionths.
    pub(super) random_ppm: u32,
    /// Cables fail between the two upper tiers only.
    pub(super) upper_only: bool,
    /// No failure begins, and none lasts, beyond this.
    pub(super) stop_ps: Option<u64>,
    /// Failures that no line of a file says.
    pub(super) random: Vec<RandomFailure>,
}

/// Why failures cannot be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DrawError {
    /// A line of the file.
    #[error("{}", .0.message)]
    Line(FileError),
    /// A random failure.
    #[error("{message}")]
    Random {
        /// Its number.
        index: usize,
        /// What is wrong, and what is allowed.
        message: String,
    },
}

/// What fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Device {
    /// One direction of a cable between two switches.
    Cable,
    /// A switch without hosts.
    Switch,
    /// A host's interface, both directions.
    Nic,
}

/// How it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// Everything vanishes.
    Fail,
    /// A part of the frames vanishes, and switches become slow.
    Degradation,
    /// Frames are corrupted.
    BitErrors,
    /// Counted frames vanish.
    Periodic,
}

/// One kind of failure of one kind of device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Process {
    pub(super) device: Device,
    pub(super) failure: Failure,
    /// When the first begins.
    pub(super) start_ps: u64,
    /// From one to the next.
    pub(super) period_ps: u64,
    /// How long each lasts; `None` is for ever.
    pub(super) duration_ps: Option<u64>,
    /// Share of the devices that are out at a time, where 1 means one device. Of bit errors: share of the frames that they corrupt.
    pub(super) share: f64,
    /// Of periodic loss: frames that are lost in a row.
    pub(super) lose: u32,
    /// Of periodic loss: frames that get through between two losses.
    pub(super) pass: u32,
    /// A degraded switch's rate is divided by a hundred times this.
    pub(super) slowdown: f64,
    /// The line that switches it on, for errors.
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
    /// One direction of a random `share` of the cables fails silently at time 0 and for good; `share` is below 1.
    pub fn dead_cables(share: f64) -> Self {
        let process = Process { share, ..Process::new(Device::Cable, Failure::Fail) };
        Self { processes: vec![process], ..Self::default() }
    }

    /// The least share of its rate, in millionths, that a random failure leaves a link from time 0 on; `None` where none slows links.
    pub fn slowest_ppm(&self) -> Option<u32> {
        let rate = |failure: &RandomFailure| match failure.action {
            LinkAction::Rate { ppm } if failure.at_ps == 0 => Some(ppm),
            _ => None,
        };
        self.random.iter().filter_map(rate).min()
    }

    /// This file, with random failures added.
    #[must_use]
    pub fn and(self, random: Vec<RandomFailure>) -> Self {
        Self { random, ..self }
    }
}
