//! What runs scenarios: the simulator ([`Sim`](crate::sim::Sim)) and, on Linux, the testbed (`Xdp` in `xdp`).

use std::sync::atomic::AtomicBool;

use spray_core::path::BalancerKind;

use crate::results::RunResult;
use crate::scenario::Scenario;

/// Runs scenarios.
pub trait Engine: Sync {
    /// Whether a run takes the whole machine: then there is one at a time, which tells how it goes, and which must be ended
    /// by its stop flag because it leaves something behind to be removed.
    fn is_exclusive(&self) -> bool;

    /// Does for `scenario` what all its runs share, and tells `progress` what takes a while.
    ///
    /// # Errors
    /// [`EngineError::Refused`] when this engine cannot run it.
    fn prepare<'a>(
        &'a self,
        scenario: &'a Scenario,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Box<dyn Prepared + 'a>, EngineError>;
}

/// A scenario that an engine is ready to run, any number of times.
pub trait Prepared: Sync {
    /// Runs it once with `balancer`; all random choices come from `seed`. An exclusive engine tells `progress` how it goes, a few times a second, and ends early when `stop` is
    /// set from elsewhere.
    ///
    /// # Errors
    /// [`EngineError`]. Flows that do not complete are no error: the result says so.
    fn run(
        &self,
        balancer: BalancerKind,
        seed: u64,
        progress: &mut dyn FnMut(Progress),
        stop: &AtomicBool,
    ) -> Result<RunResult, EngineError>;
}

/// What an engine tells while it works.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// This begins, in a few words.
    Phase(String),
    /// Data flows.
    Running {
        /// Scenario time.
        time_us: f64,
        /// Payload bytes delivered so far.
        delivered_bytes: u64,
        /// Payload bytes of all flows.
        total_bytes: u64,
        /// Flows whose message has arrived.
        flows_completed: u64,
        /// All flows.
        flows_total: u64,
    },
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The stop flag was set; everything was removed.
    #[error("stopped")]
    Stopped,
    /// The machine or the scenario does not allow it.
    #[error("{0}")]
    Refused(String),
    /// Something went wrong while it ran.
    #[error("{0}")]
    Failed(String),
}
