//! How the simulator compares with the published one: every row of `tests/reference/expected.csv` run again.
//!
//! `cargo xtask fidelity` writes the comparison to `docs/results/fidelity.md`; tests check the smaller rows.

pub mod flowcut;
pub mod order;
mod report;
mod rows;

use spray_core::path::BalancerKind;

pub use report::markdown;
pub use rows::{ROWS, Row};

/// Completion times of one run, in us.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Mean over the flows.
    pub mean_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// The slowest flow's.
    pub max_us: f64,
    /// When the last flow ended.
    pub makespan_us: f64,
    /// Real time of the run, in seconds.
    pub wall_s: f64,
}

/// A row under one balancer: the reference's runs and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The row.
    pub row: &'static Row,
    /// What chose paths.
    pub balancer: BalancerKind,
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
/// Of balancers other than `ops` and `reps`: of the mean only.
const OTHERS: f64 = 0.10;

impl Comparison {
    /// Runs `row` under `balancer` with the seeds from 1 on, `threads` at a time.
    ///
    /// # Panics
    /// When the row's files do not fit: they are part of the program.
    pub fn run(row: &'static Row, balancer: BalancerKind, threads: usize) -> Self {
        let seeds = row.seeds(balancer);
        let found = row.run(balancer, seeds, threads);
        Self { row, balancer, expected: rows::expected(row.scenario, balancer), found }
    }

    /// The figures that are compared, each with its tolerance.
    pub fn differences(&self) -> Vec<Difference> {
        let average = |runs: &[Figures], of: fn(&Figures) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let difference = |figure, of, tolerance| Difference {
            figure,
            expected_us: average(&self.expected, of),
            found_us: average(&self.found, of),
            tolerance,
        };
        if self.row.makespan {
            return vec![difference("makespan", |run| run.makespan_us, Some(MEAN))];
        }
        let (mean, max) = match self.balancer {
            BalancerKind::Ecmp if self.row.few => (None, None),
            _ if self.row.failed_percent.is_some() => (None, None),
            BalancerKind::Ops | BalancerKind::Reps => (Some(MEAN), Some(MAX)),
            _ => (Some(OTHERS), None),
        };
        vec![difference("mean", |run| run.mean_us, mean), difference("max", |run| run.max_us, max)]
    }

    /// Whether single runs differ so widely that means say little. The document then shows where the reference's runs fall
    /// among ours.
    pub fn is_distribution(&self) -> bool {
        self.row.failed_percent.is_some() || (self.row.few && rows::keeps_paths(self.balancer))
    }

    /// Why its figures differ from the reference's; `None` where that is not known or they do not.
    pub fn explained(&self) -> Option<&'static str> {
        self.row.explained(self.balancer)
    }

    /// Whether every figure is within its tolerance, or the row is one that the documentation explains.
    pub fn holds(&self) -> bool {
        self.explained().is_some() || self.differences().iter().all(Difference::holds)
    }
}
