//! The engine trait: the simulator ([`Sim`](crate::sim::Sim)) and, on Linux, the testbed (`Xdp`).

use std::sync::atomic::AtomicBool;

use spray_capture::Observer;
use spray_core::path::BalancerKind;
pub use spray_fabric::Progress;

use crate::results::RunResult;
use crate::scenario::Scenario;

/// Receives progress.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress);

/// Result of [`Engine::prepare`].
pub type PrepareResult<'a> = Result<Box<dyn Prepared + 'a>, EngineError>;

/// Runs scenarios.
pub trait Engine: Sync {
    /// Whether runs need the whole machine: one at a time, which must be ended by its stop flag.
    fn is_exclusive(&self) -> bool;

    /// Does the work that all runs of `scenario` share, and reports what takes long.
    ///
    /// # Errors
    /// [`EngineError::Refused`] when this engine cannot run the scenario.
    fn prepare<'a>(&'a self, scenario: &'a Scenario, on_progress: OnProgress<'_>) -> PrepareResult<'a>;
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
        on_progress: OnProgress<'_>,
        stop: &AtomicBool,
    ) -> Result<RunResult, EngineError> {
        self.run_observed(balancer, seed, None, on_progress, stop)
    }

    /// The same as [`run`](Self::run), while `watch` observes the frames.
    ///
    /// # Errors
    /// The same as [`run`](Self::run).
    fn run_observed(
        &self,
        balancer: BalancerKind,
        seed: u64,
        watch: Option<&Observer>,
        on_progress: OnProgress<'_>,
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
