//! `spray demo` and `spray run`.

use std::path::Path;

use spray_experiments::scenario::Scenario;

use crate::args;
use crate::campaign::Campaign;
use crate::failure::{Failure, Outcome};
use crate::sim::SimCampaign;

/// The demo's conditions, on one and the same fabric.
const SCENARIOS: [(&str, &str); 3] = [
    ("demo-healthy.toml", include_str!("../../tests/scenarios/demo-healthy.toml")),
    ("demo-slow-uplink.toml", include_str!("../../tests/scenarios/demo-slow-uplink.toml")),
    ("demo-silent-drop.toml", include_str!("../../tests/scenarios/demo-silent-drop.toml")),
];

/// Every balancer under every condition.
///
/// # Errors
/// As [`Campaign::run`]; 2 when the payload file cannot be read.
pub fn demo(arguments: &args::Demo) -> Outcome {
    let mut campaign = campaign()?;
    for scenario in &mut campaign.scenarios {
        if let Some(file) = &arguments.file {
            scenario
                .set_payload_file(file.clone(), true)
                .map_err(|error| Failure::refused(format!("cannot send {}: {error}", file.display())))?;
        }
        if let Some(bytes) = arguments.bytes {
            scenario.workload.resize(bytes);
        }
    }
    campaign.run(&arguments.common)
}

/// The demo as it is without any option.
///
/// # Errors
/// When an embedded scenario is wrong, which a test excludes.
pub fn campaign() -> Outcome<Campaign> {
    let parse = |(file, text): &(&str, &str)| Scenario::parse(Path::new(file), text).map_err(Failure::refused);
    let scenarios = SCENARIOS.iter().map(parse).collect::<Outcome<_>>()?;
    Ok(Campaign { name: "demo".into(), scenarios, balancers: Vec::new() })
}

/// One scenario file with its own balancers, or those asked for, on either engine.
///
/// # Errors
/// As [`Campaign::run`] and [`SimCampaign::run`]; 2 for mistakes in the file, which name line, column and what is allowed there.
pub fn run(arguments: &args::Run) -> Outcome {
    let mut scenario = Scenario::load(&arguments.scenario).map_err(Failure::refused)?;
    arguments.tuning.apply(&mut scenario.transport)?;
    match arguments.engine {
        args::Engine::Sim => {
            SimCampaign::new(scenario, &arguments.balancers, &arguments.seeds).run(arguments.out.as_deref())
        }
        args::Engine::Xdp if arguments.seeds.seeds.is_some() || arguments.seeds.threads.is_some() => {
            Err(Failure::refused("`--seeds` and `--threads` go with `--engine sim`; allowed here: `--seed`"))
        }
        args::Engine::Xdp => {
            let common = args::Common { out: arguments.out.clone(), seed: arguments.seeds.seed };
            let name = scenario.name.clone();
            Campaign { name, scenarios: vec![scenario], balancers: arguments.balancers.clone() }.run(&common)
        }
    }
}
