//! `spray compare`: one scenario with real packets and in the simulator.

use spray_experiments::results::{self, Summary};
use spray_experiments::scenario::Scenario;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::say;

use crate::lab::args::{self, Engine};
use crate::lab::campaign::{self, Campaign};
use crate::lab::folder;
use crate::lab::settings;
use crate::lab::sim::args::Seeds;
use crate::lab::wide_tables::print_tables;

/// Runs the scenario on both engines with the same seed and prints every figure side by side.
pub fn compare(arguments: &args::Compare) -> Outcome {
    let document = settings::load(&arguments.overrides, &arguments.scenario)?;
    let scenario = Scenario::read(&document).map_err(Failure::refused)?;
    let folder = folder::location(arguments.common.out.as_deref(), &format!("compare-{}", scenario.name));
    folder::make(&folder)?;
    let seeds = Seeds { seed: arguments.common.seed, seeds: Vec::new(), threads: None };
    let on = |engine, out: &str| -> Outcome<Vec<Summary>> {
        let ended = Campaign::new(engine, vec![scenario.clone()], &seeds).results(&folder.join(out))?;
        ended.into_iter().map(|(_, run)| run.map(|run| run.summary).map_err(Failure::failed)).collect()
    };
    // Runs the engine first that the machine may not support.
    let emulated = on(Engine::Xdp, "xdp")?;
    let simulated = on(Engine::Sim, "sim")?;
    let all = [emulated.clone(), simulated.clone()].concat();
    campaign::report(&folder, None, &all, &[])?;
    let pairs: Vec<_> = emulated.into_iter().zip(simulated).collect();
    let table = results::compare_table(&pairs);
    print_tables(&table);
    let file = folder.join("compare.txt");
    std::fs::write(&file, &table)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", file.display())))?;
    say!("results   {}", folder.display());
    campaign::verdict(&all)
}
