//! A published simulator, and how its inputs are run.

use spray_core::path::BalancerKind;

use super::chooser::Chooser;
use super::figures::Figures;
use super::rows::Row;
use crate::scenario::Scenario;

/// A published simulator: its results, and how its inputs are run.
#[derive(Debug)]
pub struct Reference {
    /// What the document says of it, from its heading on.
    pub(super) head: &'static str,
    /// Its results.
    pub(super) table: &'static str,
    /// Every scenario of it.
    pub rows: &'static [Row],
    /// The balancers whose mean and largest completion times are judged; of others it is the mean alone, and less strictly.
    pub(super) strict: &'static [BalancerKind],
    /// What it sets beside what a row says.
    pub(super) settings: fn(&mut Scenario),
    /// Whether the document lists every run.
    pub(super) lists_runs: bool,
}

impl Reference {
    /// How `row` is run.
    pub(super) fn scenario(&self, row: &Row) -> Scenario {
        let mut scenario = row.scenario();
        (self.settings)(&mut scenario);
        scenario
    }

    /// The figures of `row` under `chooser`, by seed.
    pub(super) fn expected(&self, row: &Row, chooser: Chooser) -> Vec<Figures> {
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

/// The rows of a reference's `table` for this scenario and balancer. Each has mean, 99th percentile and largest completion time,
/// and one figure more.
pub(super) fn expected(table: &str, scenario: &str, balancer: &str) -> Vec<[f64; 4]> {
    let rows = table.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let own = rows.filter(|row| row[..2] == [scenario, balancer]);
    let number = |text: &str| text.parse().expect("a number in the reference's table");
    own.map(|row| [4, 5, 6, 7].map(|column| number(row[column]))).collect()
}
