//! How the simulator compares with published ones: every row of the results in `tests/reference` run again.
//!
//! `cargo xtask fidelity` writes the comparison to `docs/results/fidelity.md`; tests check the smaller rows.

mod chooser;
mod figures;
pub mod flowcut;
mod reference;
mod report;
mod reps;
mod rows;
#[cfg(test)]
mod tests;
mod uet;

use spray_core::path::BalancerKind;
use spray_fabric::Switching;

pub use self::chooser::Chooser;
use self::figures::runs;
pub use self::figures::{Figures, average};
pub use self::reference::Reference;
pub use self::report::markdown;
pub use self::rows::Row;

/// The published simulators but Flowcut's.
pub static REFERENCES: [&Reference; 2] = [&reps::REPS, &uet::UET];

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
