//! The engine trait: the simulator ([`Sim`](crate::sim::Sim)) and, on Linux, the testbed (`Xdp`).

use std::sync::atomic::AtomicBool;

use spray_capture::Observer;
use spray_core::path::BalancerKind;
pub use spray_fabric::Progress;

use crate::results::RunResult;
use crate::scenario::Scenario;

/// Receives progress.
pub type Tell<'a> = &'a mut dyn FnMut(Progress);

/// Runs scenarios.
pub trait Engine: Sync {
    /// Whether runs need the whole machine: one at a time, which must be ended by its stop flag.
    fn is_exclusive(&self) -> bool;

    /// Does the work that all runs of `scenario` share, and reports what takes long.
    ///
    /// # Errors
    /// [`EngineError::Refused`] when this engine cannot run the scenario.
    fn prepare<'a>(&'a self, scenario: &'a Scenario, tell: Tell<'_>) -> Result<Box<dyn Prepared + 'a>, EngineError>;
}

/// A scenario that is ready to run any number of times.
pub trait Prepared: Sync {
    /// Runs the scenario once; all random choices follow from `seed`. Exclusive engines report
    /// progress and heed `stop`.
    ///
    /// # Errors
    /// [`EngineError`]. Incomplete flows are no error: the result lists them.
    fn run(
        &self,
        balancer: BalancerKind,
        seed: u64,
        tell: Tell<'_>,
        stop: &AtomicBool,
    ) -> Result<RunResult, EngineError> {
        self.run_watched(balancer, seed, None, tell, stop)
    }

    /// The same as [`run`](Self::run), while `watch` observes the frames.
    ///
    /// # Errors
    /// The same as [`run`](Self::run).
    fn run_watched(
        &self,
        balancer: BalancerKind,
        seed: u64,
        watch: Option<&Observer>,
        tell: Tell<'_>,
        stop: &AtomicBool,
    ) -> Result<RunResult, EngineError>;
}

/// The reason why a run has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The stop flag was set; everything was removed.
    #[error("stopped")]
    Stopped,
    /// The machine or the scenario does not permit the run.
    #[error("{0}")]
    Refused(String),
    /// The run failed.
    #[error("{0}")]
    Failed(String),
}
