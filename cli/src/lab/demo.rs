//! `spray demo`.

use std::path::Path;

use spray_experiments::scenario::{Document, Scenario};
use spray_tools::failure::{Failure, Outcome};

use crate::lab::args::{self, Engine};
use crate::lab::campaign::Campaign;
use crate::lab::settings::Overrides;
use crate::lab::sim::args::Seeds;

const SCENARIOS: [(&str, &str); 3] = [
    ("demo-healthy.toml", include_str!("../../../tests/scenarios/demo-healthy.toml")),
    ("demo-slow-uplink.toml", include_str!("../../../tests/scenarios/demo-slow-uplink.toml")),
    ("demo-silent-drop.toml", include_str!("../../../tests/scenarios/demo-silent-drop.toml")),
];

/// Runs every balancer under every condition.
pub fn demo(arguments: &args::Demo) -> Outcome {
    let seeds = Seeds { seed: arguments.common.seed, seeds: Vec::new(), threads: None };
    let campaign = Campaign::new(Engine::Xdp, scenarios(&arguments.overrides)?, &seeds);
    Campaign { name: "demo".into(), ..campaign }.run(arguments.common.out.as_deref())
}

fn scenarios(overrides: &Overrides) -> Outcome<Vec<Scenario>> {
    let read = |(file, text): &(&str, &str)| {
        let mut document = Document::parse(Path::new(file), text).map_err(Failure::refused)?;
        overrides.apply(&mut document)?;
        Scenario::read(&document).map_err(Failure::refused)
    };
    SCENARIOS.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_conditions_with_three_balancers_or_the_requested_ones() {
        let healthy = scenarios(&Overrides::default()).unwrap();
        assert_eq!(healthy.iter().map(|scenario| scenario.transport.balancer.len()).sum::<usize>(), 9);
        assert!(healthy.iter().all(|scenario| scenario.network == healthy[0].network));
        assert_eq!(healthy[0].condition, "healthy");
        let mut overrides = Overrides::default();
        overrides.push("transport.balancer", "ops", "--balancer ops".into());
        let asked = scenarios(&overrides).unwrap();
        assert_eq!(asked.iter().map(|scenario| scenario.transport.balancer.len()).sum::<usize>(), 3);
    }
}
