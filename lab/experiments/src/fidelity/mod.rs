//! How the simulator compares with published ones: every row of the results in `tests/reference` run again.
//!
//! `cargo xtask fidelity` writes the comparison to `docs/results/fidelity.md`; tests check the smaller rows.

pub mod flowcut;
mod report;
mod reps;
mod rows;
#[cfg(test)]
mod tests;
mod uet;

use spray_core::path::BalancerKind;
use spray_fabric::{LinkEvent, Scheme, Switching};

pub use report::markdown;
pub use rows::Row;

use crate::results::{FlowFigures, RunResult};
use crate::scenario::Scenario;
use crate::sim::{Simulation, over_cores};

/// A published simulator: its results, and how its inputs are run.
#[derive(Debug)]
pub struct Reference {
    /// What the document says of it, from its heading on.
    head: &'static str,
    /// Its results.
    table: &'static str,
    /// Every scenario of it.
    pub rows: &'static [Row],
    /// The balancers whose mean and largest completion times are judged; of others it is the mean alone, and less strictly.
    strict: &'static [BalancerKind],
    /// What it sets beside what a row says.
    settings: fn(&mut Scenario),
    /// Whether the document lists every run.
    lists_runs: bool,
}

/// The published simulators but Flowcut's.
pub static REFERENCES: [&Reference; 2] = [&reps::REPS, &uet::UET];

impl Reference {
    /// How `row` is run.
    fn scenario(&self, row: &Row) -> Scenario {
        let mut scenario = row.scenario();
        (self.settings)(&mut scenario);
        scenario
    }

    /// The figures of `row` under `chooser`, by seed.
    fn expected(&self, row: &Row, chooser: Chooser) -> Vec<Figures> {
        let figures = |[mean_us, p99_us, max_us, makespan_us]: [f64; 4]| Figures {
            mean_us,
            p99_us,
            max_us,
            makespan_us,
            ..Figures::default()
        };
        expected(self.table, row.scenario, chooser.reference_name()).into_iter().map(figures).collect()
    }
}

/// What chooses paths in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chooser {
    /// A balancer at the hosts, over switches that hash.
    Host(BalancerKind),
    /// The shortest queue at the switches, which is the reference's adaptive RoCE.
    AdaptiveRoce,
}

impl Chooser {
    /// Its name in the reference's file.
    pub const fn reference_name(self) -> &'static str {
        match self {
            Self::Host(balancer) => balancer.name(),
            Self::AdaptiveRoce => "switch-ar",
        }
    }

    /// What hosts run.
    const fn balancer(self) -> BalancerKind {
        match self {
            Self::Host(balancer) => balancer,
            Self::AdaptiveRoce => BalancerKind::Ecmp,
        }
    }

    /// What switches run.
    const fn scheme(self) -> Scheme {
        match self {
            Self::Host(_) => Scheme::Ecmp,
            Self::AdaptiveRoce => Scheme::Jsq,
        }
    }

    /// Whether a flow keeps to one path. Single runs then differ widely, because flows draw their paths.
    fn keeps_paths(self) -> bool {
        matches!(self, Self::Host(BalancerKind::Ecmp | BalancerKind::Plb | BalancerKind::Flowlet))
    }

    /// How many seeds we run: enough for our own means to vary by less than 3 %, more if single runs differ widely.
    fn seeds(self) -> u64 {
        if self.keeps_paths() { 20 } else { 12 }
    }
}

impl std::fmt::Display for Chooser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Host(balancer) => balancer.name(),
            Self::AdaptiveRoce => "adaptive-roce",
        })
    }
}

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
fn runs(
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

/// The rows of a reference's `table` for this scenario and balancer. Each has mean, 99th percentile and largest completion time,
/// and one figure more.
fn expected(table: &str, scenario: &str, balancer: &str) -> Vec<[f64; 4]> {
    let rows = table.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let own = rows.filter(|row| row[..2] == [scenario, balancer]);
    let number = |text: &str| text.parse().expect("a number in the reference's table");
    own.map(|row| [4, 5, 6, 7].map(|column| number(row[column]))).collect()
}

/// A row under one balancer: the reference's runs and ours.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Whose row it is.
    pub reference: &'static Reference,
    /// The row.
    pub row: &'static Row,
    /// What chose paths.
    pub chooser: Chooser,
    /// The reference, by seed.
    pub expected: Vec<Figures>,
    /// Ours, by seed.
    pub found: Vec<Figures>,
}

/// The difference of a figure from the reference's, both averaged over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// What is compared.
    pub figure: &'static str,
    /// The reference's mean over its seeds.
    pub expected_us: f64,
    /// Our mean over our seeds.
    pub found_us: f64,
    /// Largest relative difference that passes; `None` where only the distribution is compared.
    pub tolerance: Option<f64>,
}

impl Difference {
    /// The difference as a share of the reference's figure.
    pub fn relative(&self) -> f64 {
        self.found_us / self.expected_us - 1.0
    }

    /// Whether it is within its tolerance.
    pub fn holds(&self) -> bool {
        self.tolerance.is_none_or(|tolerance| self.relative().abs() <= tolerance)
    }
}

/// Relative tolerances of mean and largest completion times, and of the ring's makespan.
const MEAN: f64 = 0.03;
const MAX: f64 = 0.06;
/// Of balancers that are not judged strictly: of the mean only.
const OTHERS: f64 = 0.10;

impl Comparison {
    /// Runs `row` of `reference` under `chooser` with the seeds from 1 on, `threads` at a time.
    ///
    /// # Panics
    /// When the row's files do not fit: they are part of the program.
    pub fn run(reference: &'static Reference, row: &'static Row, chooser: Chooser, threads: usize) -> Self {
        let mut scenario = reference.scenario(row);
        scenario.network.switching = Switching::all(chooser.scheme());
        let found = runs(&scenario, chooser.balancer(), &|_| Vec::new(), chooser.seeds(), threads);
        Self { reference, row, chooser, expected: reference.expected(row, chooser), found }
    }

    /// Runs all of `reference`'s rows that `select` takes, under each of their balancers.
    pub fn all(
        reference: &'static Reference,
        select: impl Fn(&Row) -> bool,
        threads: usize,
    ) -> impl Iterator<Item = Self> {
        let rows = reference.rows.iter().filter(move |row| select(row));
        let pairs = rows.flat_map(|row| row.choosers().iter().map(move |chooser| (row, *chooser)));
        pairs.map(move |(row, chooser)| Self::run(reference, row, chooser, threads))
    }

    /// The figures that are compared, each with its tolerance.
    pub fn differences(&self) -> Vec<Difference> {
        let difference = |figure, of: fn(&Figures) -> f64, tolerance| Difference {
            figure,
            expected_us: average(&self.expected, of),
            found_us: average(&self.found, of),
            tolerance,
        };
        if self.row.makespan {
            return vec![difference("makespan", |run| run.makespan_us, Some(MEAN))];
        }
        let (mean, max) = match self.chooser {
            Chooser::Host(BalancerKind::Ecmp) if self.row.few => (None, None),
            Chooser::Host(kind) if self.reference.strict.contains(&kind) => (Some(MEAN), Some(MAX)),
            _ => (Some(OTHERS), None),
        };
        vec![difference("mean", |run| run.mean_us, mean), difference("max", |run| run.max_us, max)]
    }

    /// Whether single runs differ so widely that means say little. The document then shows where the reference's runs fall
    /// among ours.
    pub fn is_distribution(&self) -> bool {
        self.row.few && self.chooser.keeps_paths()
    }

    /// Why its figures differ from the reference's; `None` where that is not known or they do not.
    pub fn explained(&self) -> Option<&'static str> {
        self.row.explained(self.chooser)
    }

    /// Whether every figure is within its tolerance, or the row is one that the documentation explains.
    pub fn holds(&self) -> bool {
        self.explained().is_some() || self.differences().iter().all(Difference::holds)
    }
}
