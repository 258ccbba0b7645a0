//! The figures of runs that are compared.

use spray_core::path::BalancerKind;
use spray_fabric::LinkEvent;

use crate::results::{FlowFigures, RunResult};
use crate::scenario::Scenario;
use crate::sim::{Simulation, over_cores};

/// The figures of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Mean completion time over the flows, in us.
    pub mean_us: f64,
    /// 99th percentile, in us.
    pub p99_us: f64,
    /// The slowest flow's, in us.
    pub max_us: f64,
    /// When the last flow ended, in us.
    pub makespan_us: f64,
    /// Share of its completion time that a flow spends draining, mean over the flows, in per cent.
    pub drain_percent: f64,
    /// Packets that arrived after one sent later.
    pub reordered: u64,
}

impl Figures {
    /// The figures of `run`; an error when a flow did not complete.
    fn of(run: &RunResult) -> Result<Self, String> {
        let RunResult { balancer, seed, .. } = run;
        let found = run.summary().flows;
        let FlowFigures { flows_completed, flows_total, drain_percent_of_fct: drain_percent, .. } = found;
        let times = (found.fct_mean_us, found.fct_p99_us, found.fct_max_us);
        let (Some(mean_us), Some(p99_us), Some(max_us)) = times else {
            return Err(format!("{balancer}, seed {seed}: no flow completed"));
        };
        if flows_completed != flows_total {
            return Err(format!("{balancer}, seed {seed}: {flows_completed} of {flows_total} flows completed"));
        }
        let makespan_us = run.flows.iter().filter_map(|flow| flow.end_us).fold(0.0, f64::max);
        Ok(Self { mean_us, p99_us, max_us, makespan_us, drain_percent, reordered: found.reordered_packets })
    }
}

/// Runs `scenario` with seeds from 1 to `seeds`, `threads` at a time, each with the link events that `events` draws.
///
/// # Panics
/// When a flow does not complete.
#[expect(
    clippy::panic,
    reason = "there is no comparison without it, and only the project's own tests and reports compare"
)]
pub(super) fn runs(
    scenario: &Scenario,
    balancer: BalancerKind,
    events: &(dyn Fn(u64) -> Vec<LinkEvent> + Sync),
    seeds: u64,
    threads: usize,
) -> Vec<Figures> {
    let simulation = Simulation::new(scenario);
    let one = |job: usize| {
        let seed = job as u64 + 1;
        Figures::of(&simulation.run(balancer, seed, &events(seed)).map_err(|error| error.to_string())?)
    };
    over_cores(seeds as usize, threads, one).unwrap_or_else(|error: String| panic!("{}: {error}", scenario.name))
}

/// The average of `of` over runs.
pub fn average(runs: &[Figures], of: impl Fn(&Figures) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len() as f64
}
