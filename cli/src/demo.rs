//! `spray demo` and `spray run`.

use std::path::Path;

use spray_experiments::scenario::{Document, Scenario};

use crate::args;
use crate::campaign::Campaign;
use crate::failure::{Failure, Outcome};
use crate::settings::Overrides;
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
    let mut overrides = arguments.overrides.clone();
    if let Some(file) = &arguments.file {
        let label = format!("--file {}", file.display());
        overrides.push("workload.payload", &file.to_string_lossy(), label.clone());
        overrides.push("workload.bytes", "auto", label);
    }
    if let Some(bytes) = arguments.bytes {
        overrides.push("workload.bytes", &bytes.to_string(), format!("--bytes {bytes}"));
    }
    campaign(&overrides)?.run(&arguments.common)
}

/// The demo with `overrides`.
///
/// # Errors
/// 2 for what the overrides may not be.
pub fn campaign(overrides: &Overrides) -> Outcome<Campaign> {
    let read = |(file, text): &(&str, &str)| {
        let mut document = Document::parse(Path::new(file), text).map_err(Failure::refused)?;
        overrides.apply(&mut document)?;
        Scenario::read(&document).map_err(Failure::refused)
    };
    let scenarios = SCENARIOS.iter().map(read).collect::<Outcome<_>>()?;
    Ok(Campaign { name: "demo".into(), scenarios })
}

/// One scenario file, with what the command line changes in it, on either engine.
///
/// # Errors
/// As [`Campaign::run`] and [`SimCampaign::run`]; 2 for mistakes in the file, which name line, column and what is allowed there.
pub fn run(arguments: &args::Run) -> Outcome {
    let document = arguments.overrides.load(&arguments.scenario)?;
    let scenario = Scenario::read(&document).map_err(Failure::refused)?;
    match arguments.engine {
        args::Engine::Sim => SimCampaign::new(scenario, &arguments.seeds).run(arguments.out.as_deref()),
        args::Engine::Xdp if arguments.seeds.seeds.is_some() || arguments.seeds.threads.is_some() => {
            Err(Failure::refused("`--seeds` and `--threads` go with `--engine sim`; allowed here: `--seed`"))
        }
        args::Engine::Xdp => {
            let common = args::Common { out: arguments.out.clone(), seed: arguments.seeds.seed };
            let name = scenario.name.clone();
            Campaign { name, scenarios: vec![scenario] }.run(&common)
        }
    }
}
