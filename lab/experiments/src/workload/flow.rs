//! A flow of a workload.

use rand_core::RngCore;
use spray_core::rng::stream;

use super::streams::PATH_STREAM;

/// One flow: a message from one host to another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    /// Number among all flows of the run, from 0.
    pub flow: u32,
    /// Sending host.
    pub src: usize,
    /// Receiving host, another one.
    pub dst: usize,
    /// Payload bytes.
    pub bytes: u64,
    /// When the sender gets the message, in ps of scenario time.
    pub start_ps: u64,
    /// Its place in [`classes`](super::classes).
    pub class: u16,
    /// The earlier flow whose connection it uses; `None` is a connection of its own.
    pub connection: Option<u32>,
    /// The collective that it is part of, by number within the workload in the order of time.
    pub step: Option<u32>,
}

impl Flow {
    /// The seed of the flow's lasting choice of a path ([`Path::seed`]): the same on every engine in a run of this seed.
    ///
    /// [`Path::seed`]: spray_core::path::Path::seed
    pub fn path_seed(&self, seed: u64) -> u64 {
        stream(seed, PATH_STREAM + u64::from(self.flow)).next_u64()
    }
}
