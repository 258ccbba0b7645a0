//! `spray compare`: one scenario on packets and on the simulator.

use spray_experiments::results;
use spray_experiments::scenario::Scenario;

use super::SimCampaign;
use super::args::Seeds;
use crate::args;
use crate::campaign::{self, Campaign};
use crate::failure::{Failure, Outcome};

/// Runs the scenario on both engines with the same seed and prints every figure side by side.
///
/// # Errors
/// 2 when the machine or the scenario does not allow it, 1 when a run does not complete, 130 after Ctrl-C.
pub fn compare(arguments: &args::Compare) -> Outcome {
    let document = arguments.overrides.load(&arguments.scenario)?;
    let scenario = Scenario::read(&document).map_err(Failure::refused)?;
    let out = campaign::folder(arguments.common.out.as_deref(), &format!("compare-{}", scenario.name))?;
    let seed = arguments.common.seed.unwrap_or(scenario.seed);
    let seeds = Seeds { seed: Some(seed), seeds: None, threads: None };
    let simulated = SimCampaign::new(scenario.clone(), &seeds);
    let campaign = Campaign { name: scenario.name.clone(), scenarios: vec![scenario] };
    // First what the machine may refuse.
    let emulated = campaign.results(Some(seed), &out.join("xdp"))?;
    let simulated = simulated.results(&out.join("sim"))?;
    let all = [emulated.clone(), simulated.clone()].concat();
    let pairs: Vec<_> = emulated.into_iter().zip(simulated).collect();
    let table = results::compare_table(&pairs);
    println!("{table}");
    let file = out.join("compare.txt");
    std::fs::write(&file, &table)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", file.display())))?;
    println!("results   {}", out.display());
    campaign::verdict(&all)
}
