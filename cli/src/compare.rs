//! `spray compare`: one scenario on packets and on the simulator.

use spray_experiments::results;
use spray_experiments::scenario::Scenario;

use crate::args::{self, Engine};
use crate::campaign::{self, Campaign};
use crate::failure::{Failure, Outcome};
use crate::folder;
use crate::say::say;
use crate::sim::args::Seeds;

/// Runs the scenario on both engines with the same seed and prints every figure side by side.
///
/// # Errors
/// 2 when the machine or the scenario does not allow it, 1 when a run does not complete, 130 after Ctrl-C.
pub fn compare(arguments: &args::Compare) -> Outcome {
    let document = arguments.overrides.load(&arguments.scenario)?;
    let scenario = Scenario::read(&document).map_err(Failure::refused)?;
    let out = folder::location(arguments.common.out.as_deref(), &format!("compare-{}", scenario.name));
    folder::make(&out)?;
    let seeds = Seeds { seed: arguments.common.seed, seeds: None, threads: None };
    let on = |engine| Campaign::new(engine, scenario.clone(), &seeds);
    // First what the machine may refuse.
    let emulated = on(Engine::Xdp).results(&out.join("xdp"))?;
    let simulated = on(Engine::Sim).results(&out.join("sim"))?;
    let all = [emulated.clone(), simulated.clone()].concat();
    let pairs: Vec<_> = emulated.into_iter().zip(simulated).collect();
    let table = results::compare_table(&pairs);
    say!("{table}");
    let file = out.join("compare.txt");
    std::fs::write(&file, &table)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", file.display())))?;
    say!("results   {}", out.display());
    campaign::verdict(&all)
}
