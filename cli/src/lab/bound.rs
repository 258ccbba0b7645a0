//! `spray bound`: lower bound of a scenario's completion time, and the excess of switch schemes.

use serde::Serialize;
use serde_json::json;
use spray_experiments::bound::{Basis, Bound};
use spray_experiments::results::{Spread, align};
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::over_cores;
use spray_fabric::Scheme;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::say;

use crate::lab::args::{self, Engine};
use crate::lab::campaign::{Campaign, Ended};
use crate::lab::fit;
use crate::lab::folder;
use crate::lab::settings;

const SCHEMES: [&str; 4] = ["switch.scheme", "switch.tor", "switch.agg", "switch.core"];

/// Prints the bound, then the completion times with each switch scheme, or with those that the
/// scenario or the command line names.
pub fn bound(arguments: &args::Bound) -> Outcome {
    let mut document = settings::load(&arguments.overrides, &arguments.scenario)?;
    let scenario = Scenario::read(&document).map_err(Failure::refused)?;
    let names: Vec<&str> = Scheme::anywhere().map(Scheme::name).collect();
    let all = (SCHEMES[0], json!(names).to_string());
    let all = (!SCHEMES.iter().any(|path| document.is_assigned(path))).then_some(all);
    // The bound ends with the last acknowledgement.
    for (path, value) in [("simulation.fct_end", "acked".to_string())].into_iter().chain(all) {
        document.assign(path, &value, "spray bound").map_err(Failure::refused)?;
    }
    let scenarios = Scenario::read_all(&document).map_err(Failure::refused)?;
    let seeds = arguments.seeds.list_or(&scenario.seeds);
    let bound = scenario.bound(seeds[0], &[]);
    say!("{}", about(&bound));
    let extras = arguments.results.extras();
    let campaign = Campaign { extras, ..Campaign::new(Engine::Sim, scenarios, &arguments.seeds) };
    let out = folder::location(arguments.results.out.as_deref(), &format!("bound-{}", scenario.name));
    let ended = campaign.results(&out)?;
    campaign.write_all(&out, &ended)?;
    let bound_us = |index: usize| {
        let failed = scenario.drawn_failures(seeds[index], u64::MAX).map_err(Failure::refused)?;
        Ok(scenario.bound(seeds[index], &failed).completion_ps as f64 / 1e6)
    };
    let bounds_us: Vec<f64> = over_cores(seeds.len(), campaign.threads, bound_us)?;
    let rows = ended.chunks(seeds.len()).map(|runs| Row::new(runs, &bounds_us, &campaign));
    let rows = rows.collect::<Outcome<Vec<Row>>>()?;
    let cells: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
    fit::tables(&align(&["switches", "balancer", "last ACK us", "above the bound", ""], 2, &cells));
    say!("results   {}", out.display());
    campaign.overview(&out).iter().for_each(|page| say!("overview  {}", page.display()));
    say::object(&json!({
        "rate_gbps": bound.rate_bps / 1e9,
        "bottleneck": bound.bottleneck,
        "completion_us": bound.completion_ps as f64 / 1e6,
        "runs": rows,
        "results": out,
    }))
}

#[derive(Serialize)]
struct Row {
    switch: String,
    balancer: &'static str,
    /// Makespan up to the last acknowledgement, over the seeds.
    completion_us: Spread,
    /// Excess over the bound of the same seed.
    above_percent: Spread,
    flows_incomplete: u64,
}

impl Row {
    /// `bounds_us` has the bound of each seed. Means are lower bounds if flows are incomplete.
    fn new(runs: &[Ended], bounds_us: &[f64], campaign: &Campaign) -> Outcome<Self> {
        let (mut completion_us, mut above_percent, mut flows_incomplete) = (Vec::new(), Vec::new(), 0);
        for ((_, run), bound_us) in runs.iter().zip(bounds_us) {
            let flows = &run.as_ref().map_err(Failure::failed)?.summary.flows;
            flows_incomplete += flows.flows_total - flows.flows_completed;
            let Some(us) = flows.makespan_us else { continue };
            completion_us.push(us);
            above_percent.push(100.0 * (us / bound_us - 1.0));
        }
        let job = &runs[0].0;
        let spread = |values: &[f64]| Spread { lower_bound: flows_incomplete > 0, ..Spread::of(values) };
        Ok(Self {
            switch: campaign.scenarios[job.scenario].network.switching.to_string(),
            balancer: job.balancer.name(),
            completion_us: spread(&completion_us),
            above_percent: spread(&above_percent),
            flows_incomplete,
        })
    }

    fn cells(&self) -> Vec<String> {
        let mean = |spread: &Spread, unit: &str| spread.mean_text(1) + if spread.runs == 0 { "" } else { unit };
        let incomplete = match self.flows_incomplete {
            0 => String::new(),
            flows => format!("{flows} flows incomplete"),
        };
        let means = [mean(&self.completion_us, ""), mean(&self.above_percent, " %")];
        [[self.switch.clone(), self.balancer.into()], means].into_iter().flatten().chain([incomplete]).collect()
    }
}

fn about(bound: &Bound) -> String {
    let basis = match bound.basis {
        Basis::Permutation => "a permutation, data and ACKs sharing the links (OFAN appendix B)",
        Basis::Transmission => "the bytes of the slowest flow at that rate, plus the round trip",
    };
    format!(
        "every flow can have at most {:.3} Gb/s at the same time, headers included; bottleneck: {}\n\
         the last ACK arrives after {:.3} us at the earliest: {basis}\n",
        bound.rate_bps / 1e9,
        bound.bottleneck,
        bound.completion_ps as f64 / 1e6,
    )
}
