//! `spray run`, also `spray sweep`: a scenario file with all its balancers, seeds and axes.

use serde_json::json;
use spray_core::path::BalancerKind;
use spray_experiments::scenario::Scenario;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::say;

use crate::lab::args::{self, Engine};
use crate::lab::campaign::Campaign;
use crate::lab::folder;
use crate::lab::settings;

/// Fails as [`Campaign::run`], and with 2 for mistakes in the file.
pub fn run(arguments: &args::Run) -> Outcome {
    let args::Run { scenario, engine, overrides, seeds, results, every_balancer, plan, part, captures } = arguments;
    if *engine == Engine::Xdp && seeds.threads.is_some() {
        return Err(Failure::refused("`--threads` requires `--engine sim`: the xdp engine runs one at a time"));
    }
    let mut document = settings::load(overrides, scenario)?;
    if *every_balancer {
        let all = json!(BalancerKind::names()).to_string();
        document.assign("transport.balancer", &all, "--every-balancer").map_err(Failure::refused)?;
    }
    let scenarios = Scenario::read_all(&document).map_err(Failure::refused)?;
    let captures = Some(captures.clone());
    let campaign = Campaign { captures, extras: results.extras(), ..Campaign::new(*engine, scenarios, seeds) };
    let out = results.out.as_deref();
    match part {
        _ if *plan => print_plan(&campaign, &folder::location(out, &campaign.name)),
        Some(part) => campaign.run_part(&folder::location(out, &campaign.name), *part),
        None => campaign.run(out),
    }
}

fn print_plan(campaign: &Campaign, out: &std::path::Path) -> Outcome {
    let plan = campaign.plan(out)?;
    for (index, planned) in plan.iter().enumerate() {
        say!("{} {} {}", index + 1, if planned.is_done { "done" } else { "open" }, planned.folder);
    }
    let runs: Vec<_> = plan.iter().map(|run| json!({ "folder": run.folder, "done": run.is_done })).collect();
    say::object(&json!({ "results": out, "runs": runs }))
}
