//! A flow of a workload.

use rand_core::RngCore;
use spray_core::rng::stream;

use super::streams::PATH_STREAM;

/// A flow: a message from one host to another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    /// Number in the run, from 0.
    pub flow: u32,
    /// Index of the sending host.
    pub src: usize,
    /// Index of the receiving host, a different one.
    pub dst: usize,
    /// Payload bytes.
    pub bytes: u64,
    /// Start time in ps of scenario time.
    pub start_ps: u64,
    /// Index in [`classes`](super::classes).
    pub class: u16,
    /// Number of the earlier flow that opened its connection; `None` opens one.
    pub connection: Option<u32>,
    /// Number within the workload, by time, of the collective that it is part of.
    pub step: Option<u32>,
}

impl Flow {
    /// Returns the seed of the flow's lasting path choice, the same on every engine.
    pub fn path_seed(&self, seed: u64) -> u64 {
        stream(seed, PATH_STREAM + u64::from(self.flow)).next_u64()
    }
}
