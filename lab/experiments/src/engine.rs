//! The trait of both engines: the simulator ([`Sim`](crate::sim::Sim)) and, on Linux, the testbed (`Xdp` in `xdp`).

use std::sync::atomic::AtomicBool;

use spray_capture::Shared;
use spray_core::path::BalancerKind;
pub use spray_fabric::Progress;

use crate::results::RunResult;
use crate::scenario::Scenario;

/// Hears how far the work is.
pub type Tell<'a> = &'a mut dyn FnMut(Progress);

/// Runs scenarios.
pub trait Engine: Sync {
    /// Whether a run needs the whole machine. Then only one runs at a time, it reports its progress, and it must be ended by its
    /// stop flag, because it has namespaces to remove.
    fn is_exclusive(&self) -> bool;

    /// Does the work that all runs of `scenario` share, and tells what takes long.
    ///
    /// # Errors
    /// [`EngineError::Refused`] when this engine cannot run the scenario.
    fn prepare<'a>(&'a self, scenario: &'a Scenario, tell: Tell<'_>) -> Result<Box<dyn Prepared + 'a>, EngineError>;
}

/// A scenario that an engine is ready to run, any number of times.
pub trait Prepared: Sync {
    /// Runs the scenario once with `balancer`; all random choices come from `seed`. An exclusive engine tells a few
    /// times a second how far it is, and ends early when another thread sets `stop`.
    ///
    /// # Errors
    /// [`EngineError`]. Flows that do not complete are no error: the result says so.
    fn run(
        &self,
        balancer: BalancerKind,
        seed: u64,
        tell: Tell<'_>,
        stop: &AtomicBool,
    ) -> Result<RunResult, EngineError> {
        self.run_watched(balancer, seed, None, tell, stop)
    }

    /// As [`run`](Self::run), while `watch` sees the frames, see [`watch`](crate::watch). The result is the same.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    fn run_watched(
        &self,
        balancer: BalancerKind,
        seed: u64,
        watch: Option<&Shared>,
        tell: Tell<'_>,
        stop: &AtomicBool,
    ) -> Result<RunResult, EngineError>;
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The stop flag was set; everything was removed.
    #[error("stopped")]
    Stopped,
    /// The machine or the scenario does not allow the run.
    #[error("{0}")]
    Refused(String),
    /// Something went wrong while it ran.
    #[error("{0}")]
    Failed(String),
}
