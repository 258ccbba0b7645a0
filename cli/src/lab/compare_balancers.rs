//! `spray compare-balancers`: every balancer under one scenario, on either engine.

use spray_core::path::BalancerKind;
use spray_experiments::results::Matrix;
use spray_experiments::scenario::Scenario;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::say;

use crate::lab::args;
use crate::lab::campaign::{self, Campaign, Ended};
use crate::lab::fit;
use crate::lab::folder;

/// Runs the scenario with all balancers, or with those requested. A failed run is shown in the
/// table; the others continue.
pub fn compare_balancers(arguments: &args::Run) -> Outcome {
    let document = arguments.document()?;
    let mut scenario = Scenario::read(&document).map_err(Failure::refused)?;
    if !document.is_assigned("transport.balancer") {
        scenario.transport.balancer = BalancerKind::ALL.to_vec();
    }
    let seeds = arguments.seeds.list_or(&scenario.seeds);
    let extras = arguments.results.extras();
    let campaign = Campaign { seeds, extras, ..Campaign::new(arguments.engine, vec![scenario], &arguments.seeds) };
    let out = folder::location(arguments.results.out.as_deref(), "compare-balancers");
    let ended = campaign.results(&out)?;
    let (own, earlier) = campaign.write_all(&out, &ended)?;
    let overview = campaign.overview(&out);
    campaign::report(&out, overview.as_deref(), &own, &campaign.failures(&ended))?;
    let runs = ended.len();
    let row = |(job, run): Ended| {
        (job.balancer.to_string(), run.map(|run| run.summary).map_err(|why| format!("seed {}: {why}", job.seed)))
    };
    let rows: Vec<_> = ended.into_iter().map(row).collect();
    let bad_runs = rows.iter().cloned().collect::<Matrix>().bad_runs();
    let earlier = earlier.into_iter().map(|summary| (summary.balancer.clone(), Ok(summary)));
    let matrix: Matrix = rows.into_iter().chain(earlier).collect();
    let title = title(&campaign);
    matrix.write(&out, &title).map_err(Failure::failed)?;
    fit::tables(&format!("{title}\n\n{}", matrix.text()));
    say!("results   {}", out.display());
    say!("table     {} (also .csv, .txt)", out.join("compare-balancers.md").display());
    overview.iter().for_each(|page| say!("overview  {}", page.display()));
    match bad_runs {
        0 => Ok(()),
        bad => Err(Failure::failed(format!("{bad} of {runs} runs failed or did not complete"))),
    }
}

fn title(campaign: &Campaign) -> String {
    let scenario = &campaign.scenarios[0];
    let Scenario { name, condition, transport, .. } = scenario;
    let flows = scenario.flows(campaign.seeds[0]).len();
    let seeds = match campaign.seeds.as_slice() {
        [seed] => format!("seed {seed}"),
        seeds => format!("means over {} seeds", seeds.len()),
    };
    format!("{name}, {condition}: {flows} flows, {}, {seeds}; * is the best that completed", transport.cc)
}
