//! Runs scenarios for all commands: shows progress, writes a results folder for each run, and prints a table at the end.
//!
//! | file | content |
//! |---|---|
//! | `plan` | what is to run, and what of it is done |
//! | `work` | the runs |
//! | `outcome` | what came of them: tables, pages, failures |
//! | `metrics` | what is served while they go |

pub mod metrics;
mod outcome;
mod plan;
#[cfg(test)]
mod tests;
mod work;

use spray_experiments::engine::EngineError;
use spray_experiments::results::Extras;
use spray_experiments::scenario::Scenario;
use spray_tools::captures::Captures;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::metrics::{Metrics, Publish};

#[cfg(feature = "xdp")]
pub use self::outcome::verdict;
pub use self::outcome::{Ended, report};
pub use self::plan::Job;
use crate::lab::args::Engine;
use crate::lab::sim::args::Seeds;

/// A set of runs: every scenario with each of its balancers and each seed. A run that is done is not run again.
pub struct Campaign {
    /// Names the results folder.
    pub name: String,
    /// The engine.
    pub engine: Engine,
    /// The scenarios. Neighbours in the list with the same network share what the engine sets up.
    pub scenarios: Vec<Scenario>,
    /// The seeds; if there are none, each scenario's own.
    pub seeds: Vec<u64>,
    /// Most runs at the same time. An exclusive engine runs one at a time.
    pub threads: usize,
    /// What is said of the runs to who watches.
    pub metrics: metrics::Campaign,
    /// What to capture of each run, if anything.
    pub captures: Option<Captures>,
    /// What is written besides figures and tables.
    pub extras: Extras,
}

impl Campaign {
    /// The scenarios on `engine`, with the given seeds or else their own.
    pub fn new(engine: Engine, scenarios: Vec<Scenario>, seeds: &Seeds) -> Self {
        let name = scenarios.first().map(|scenario| scenario.name.clone()).unwrap_or_default();
        let metrics = metrics::Campaign::default();
        Self {
            name,
            engine,
            scenarios,
            seeds: seeds.list(),
            threads: seeds.threads(),
            metrics,
            captures: None,
            extras: Extras::default(),
        }
    }

    /// Serves metrics while it runs, if that is asked for.
    pub fn publishing(self, publish: &Publish) -> Outcome<Self> {
        let metrics = metrics::Campaign::new(Metrics::open(publish.metrics)?);
        Ok(Self { metrics, ..self })
    }
}

/// The version of spray.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// See [`commit`](spray_experiments::results::Program::commit); the build script asks git.
pub const COMMIT: &str = env!("SPRAY_COMMIT");

/// The command's failure for an engine's error.
pub fn ended(error: EngineError) -> Failure {
    match error {
        EngineError::Stopped => Failure::interrupted(),
        EngineError::Refused(message) => Failure::refused(message),
        EngineError::Failed(message) => Failure::failed(message),
    }
}
