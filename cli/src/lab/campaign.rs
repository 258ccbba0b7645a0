//! Runs scenarios for all commands.
//!
//! | file | content |
//! |---|---|
//! | `plan` | the runs, and which of them are done |
//! | `work` | execution of the runs |
//! | `outcome` | tables, pages, failures |

mod outcome;
mod plan;
#[cfg(test)]
mod tests;
mod work;

use spray_experiments::engine::EngineError;
use spray_experiments::results::Extras;
use spray_experiments::scenario::Scenario;
use spray_tools::captures::Captures;
use spray_tools::failure::Failure;

#[cfg(feature = "xdp")]
pub use self::outcome::{report, verdict};
pub use self::plan::Job;
use crate::lab::args::Engine;
use crate::lab::sim::args::Seeds;

/// A set of runs: every scenario with each balancer and each seed, except runs that are done.
pub struct Campaign {
    /// Part of the name of the results folder.
    pub name: String,
    pub engine: Engine,
    /// Consecutive scenarios with the same network share the set-up of the engine.
    pub scenarios: Vec<Scenario>,
    /// The seeds; if empty, those of each scenario.
    pub seeds: Vec<u64>,
    /// Maximum number of concurrent runs. An exclusive engine runs one at a time.
    pub threads: usize,
    pub captures: Option<Captures>,
    /// What is written in addition to figures and tables.
    pub extras: Extras,
}

impl Campaign {
    pub fn new(engine: Engine, scenarios: Vec<Scenario>, seeds: &Seeds) -> Self {
        let name = scenarios.first().map(|scenario| scenario.name.clone()).unwrap_or_default();
        Self {
            name,
            engine,
            scenarios,
            seeds: seeds.list(),
            threads: seeds.threads(),
            captures: None,
            extras: Extras::default(),
        }
    }
}

pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit; see [`commit`](spray_experiments::results::Program::commit).
pub const COMMIT: &str = env!("SPRAY_COMMIT");

pub fn ended(error: EngineError) -> Failure {
    match error {
        EngineError::Stopped => Failure::interrupted(),
        EngineError::Refused(message) => Failure::refused(message),
        EngineError::Failed(message) => Failure::failed(message),
    }
}
