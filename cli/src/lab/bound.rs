//! `spray bound`: the best that a scenario allows, and how far schemes are from it.

use serde_json::{Value, json};
use spray_experiments::bound::{Above, Basis, Bound, above};
use spray_experiments::results::{Spread, align};
use spray_experiments::scenario::Scenario;
use spray_fabric::Scheme;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::say;

use crate::lab::args;
use crate::lab::fit;
use crate::lab::settings;

/// Prints the bound, then the completion times of the scenario's balancers over switches with each scheme, or with those that the
/// command line names.
///
/// # Errors
/// 2 when the scenario does not allow it.
pub fn bound(arguments: &args::Bound) -> Outcome {
    let document = settings::load(&arguments.overrides, &arguments.scenario)?;
    let scenario = Scenario::read(&document).map_err(Failure::refused)?;
    let named =
        ["switch.scheme", "switch.tor", "switch.agg", "switch.core"].iter().any(|path| document.is_assigned(path));
    let schemes = if named { vec![None] } else { Scheme::anywhere().map(Some).collect() };
    let seeds = arguments.seeds.list_or(&scenario.seeds);
    let bound = scenario.bound(seeds[0], &[]);
    say!("{}", about(&bound));
    let rows = above(&scenario, &schemes, &seeds, arguments.seeds.threads()).map_err(Failure::refused)?;
    let cells: Vec<Vec<String>> = rows.iter().map(|row| cells(row, &scenario)).collect();
    fit::tables(&align(&["switches", "balancer", "last ACK us", "above the bound", ""], 2, &cells));
    let rows: Vec<_> = rows.iter().map(|row| object(row, &scenario)).collect();
    say::object(&json!({
        "rate_gbps": bound.rate_bps / 1e9,
        "bottleneck": bound.bottleneck,
        "completion_us": bound.completion_ps as f64 / 1e6,
        "runs": rows,
    }))
}

fn object(row: &Above, scenario: &Scenario) -> Value {
    json!({
        "switch": switches(row, scenario),
        "balancer": row.balancer.name(),
        "completion_us": row.completion_us,
        "above_percent": row.above_percent,
        "flows_incomplete": row.incomplete,
    })
}

fn switches(row: &Above, scenario: &Scenario) -> String {
    row.scheme.map_or_else(|| scenario.network.switching.to_string(), |scheme| scheme.name().to_string())
}

fn about(bound: &Bound) -> String {
    let basis = match bound.basis {
        Basis::Permutation => "a permutation, data and ACKs sharing the links (OFAN appendix B)",
        Basis::Transmission => "the slowest flow\'s bytes at that rate, and the way there and back",
    };
    format!(
        "every flow can have {:.3} Gb/s at once, headers included; no more over {}\n\
         the last ACK comes after {:.3} us at the earliest: {basis}\n",
        bound.rate_bps / 1e9,
        bound.bottleneck,
        bound.completion_ps as f64 / 1e6,
    )
}

fn cells(row: &Above, scenario: &Scenario) -> Vec<String> {
    let mean = |spread: &Spread, unit: &str| match spread.runs {
        0 => "-".into(),
        _ => format!("{:.1}{unit}", spread.mean),
    };
    let incomplete = if row.incomplete == 0 { String::new() } else { format!("{} flows incomplete", row.incomplete) };
    vec![
        switches(row, scenario),
        row.balancer.to_string(),
        mean(&row.completion_us, ""),
        mean(&row.above_percent, " %"),
        incomplete,
    ]
}
