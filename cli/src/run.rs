//! `spray run`: one scenario file on either engine.

use spray_experiments::scenario::Scenario;

use crate::args::{self, Engine};
use crate::campaign::Campaign;
use crate::failure::{Failure, Outcome};

/// Runs a scenario file with the command line's changes.
///
/// # Errors
/// As [`Campaign::run`]; 2 for mistakes in the file. The message names line, column and what is allowed there.
pub fn run(arguments: &args::Run) -> Outcome {
    let document = arguments.overrides.load(&arguments.scenario)?;
    let scenario = Scenario::read(&document).map_err(Failure::refused)?;
    let seeds = &arguments.seeds;
    if arguments.engine == Engine::Xdp && (seeds.seeds.is_some() || seeds.threads.is_some()) {
        return Err(Failure::refused("`--seeds` and `--threads` go with `--engine sim`; allowed here: `--seed`"));
    }
    Campaign::new(arguments.engine, scenario, seeds).run(arguments.out.as_deref())
}
