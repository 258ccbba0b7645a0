//! The simulator compared with published ones: every row of the results in `tests/reference` is run
//! again. `cargo xtask fidelity` runs all of them and writes `docs/results/fidelity.md`.

pub mod flowcut;
mod report;
mod reps;
mod rows;
mod short;
mod uet;

use std::path::Path;

use spray_core::path::BalancerKind;
use spray_experiments::results::{FlowFigures, RunResult};
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::{Simulation, run_parallel};
use spray_fabric::{LinkEvent, Scheme, Switching};

use self::rows::Row;

/// A published simulator: its results, and how to run its inputs.
#[derive(Debug)]
struct Reference {
    /// The text about it in the document, with its heading.
    head: &'static str,
    /// Its results.
    table: &'static str,
    /// All of its scenarios.
    rows: &'static [Row],
    /// The balancers for which mean and maximum completion times are compared; for others only the
    /// mean, with a larger tolerance.
    strict: &'static [BalancerKind],
    /// Applies its settings beyond those of a row.
    settings: fn(&mut Scenario),
}

/// The published simulators except Flowcut's.
static REFERENCES: [&Reference; 2] = [&reps::REPS, &uet::UET];

/// The component that selects paths: a balancer at the hosts, over switches that hash; `None` for
/// the shortest queue at the switches, which is the reference's adaptive RoCE.
type Chooser = Option<BalancerKind>;

fn name(chooser: Chooser) -> &'static str {
    chooser.map_or("adaptive-roce", BalancerKind::name)
}

/// Returns whether a flow keeps to one path. Single runs then vary widely, because paths are drawn
/// at random.
fn keeps_paths(chooser: Chooser) -> bool {
    matches!(chooser, Some(BalancerKind::Ecmp | BalancerKind::Plb | BalancerKind::Flowlet))
}

/// The figures of one run: completion times in us.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    pub mean_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
    /// The end of the last flow.
    pub makespan_us: f64,
    /// The share of its completion time that a flow spends draining, mean over the flows, in per
    /// cent.
    pub drain_percent: f64,
    /// The number of packets that arrived after one sent later.
    pub reordered: u64,
}

impl Figures {
    fn of(run: &RunResult) -> Self {
        let FlowFigures { flows_completed, flows_total, drain_percent_of_fct: drain_percent, .. } = run.summary().flows;
        assert_eq!(flows_completed, flows_total, "{}, seed {}", run.balancer, run.seed);
        let found = run.summary().flows;
        Self {
            mean_us: found.fct_mean_us.unwrap(),
            p99_us: found.fct_p99_us.unwrap(),
            max_us: found.fct_max_us.unwrap(),
            makespan_us: run.flows.iter().filter_map(|flow| flow.end_us).fold(0.0, f64::max),
            drain_percent,
            reordered: found.reordered_packets,
        }
    }
}

/// Runs `scenario` with seeds from 1 to `seeds`, each with the link events drawn by `events`.
fn runs(
    scenario: &Scenario,
    balancer: BalancerKind,
    events: &(dyn Fn(u64) -> Vec<LinkEvent> + Sync),
    seeds: u64,
) -> Vec<Figures> {
    let simulation = Simulation::new(scenario);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let one = |seed: u64| Ok::<_, String>(Figures::of(&simulation.run(balancer, seed, &events(seed)).unwrap()));
    run_parallel(seeds as usize, threads, |job| one(job as u64 + 1)).unwrap()
}

/// Returns the average of `of` over runs.
pub fn average(runs: &[Figures], of: impl Fn(&Figures) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len() as f64
}

/// Returns the rows of a reference's `table` for this scenario and balancer: mean, 99th percentile
/// and maximum completion time, and one further figure.
fn expected(table: &str, scenario: &str, balancer: &str) -> Vec<[f64; 4]> {
    let rows = table.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let own = rows.filter(|row| row[..2] == [scenario, balancer]);
    own.map(|row| [4, 5, 6, 7].map(|column| row[column].parse().unwrap())).collect()
}

/// A row with one balancer: the reference's runs and ours, by seed.
#[derive(Clone, Debug)]
struct Comparison {
    reference: &'static Reference,
    row: &'static Row,
    chooser: Chooser,
    expected: Vec<Figures>,
    found: Vec<Figures>,
}

/// The difference of a figure from the reference, both averaged over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Difference {
    figure: &'static str,
    expected_us: f64,
    found_us: f64,
    /// The maximum relative difference that passes; `None` if the figure is not compared.
    tolerance: Option<f64>,
}

impl Difference {
    /// Returns the difference as a share of the reference's figure.
    fn relative(&self) -> f64 {
        self.found_us / self.expected_us - 1.0
    }

    fn holds(&self) -> bool {
        self.tolerance.is_none_or(|tolerance| self.relative().abs() <= tolerance)
    }
}

/// Relative tolerances of mean and maximum completion times, and of the ring's makespan.
const MEAN: f64 = 0.03;
const MAX: f64 = 0.06;
/// The tolerance of the mean for other balancers.
const OTHERS: f64 = 0.10;

impl Reference {
    fn expected(&self, row: &Row, chooser: Chooser) -> Vec<Figures> {
        let name = chooser.map_or("switch-ar", BalancerKind::name);
        let figures = |[mean_us, p99_us, max_us, makespan_us]: [f64; 4]| Figures {
            mean_us,
            p99_us,
            max_us,
            makespan_us,
            ..Figures::default()
        };
        expected(self.table, row.scenario, name).into_iter().map(figures).collect()
    }

    /// Runs all rows that `select` accepts, with each of their balancers.
    fn compare(&'static self, select: impl Fn(&Row) -> bool) -> impl Iterator<Item = Comparison> {
        let rows = self.rows.iter().filter(move |row| select(row));
        let pairs = rows.flat_map(|row| row.choosers.iter().map(move |chooser| (row, *chooser)));
        pairs.map(move |(row, chooser)| {
            let mut scenario = row.scenario();
            (self.settings)(&mut scenario);
            let scheme = if chooser.is_none() { Scheme::Jsq } else { Scheme::Ecmp };
            scenario.network.switching = Switching::all(scheme);
            // With this number of seeds the mean varies by less than 3 %.
            let seeds = if keeps_paths(chooser) { 20 } else { 12 };
            let found = runs(&scenario, chooser.unwrap_or(BalancerKind::Ecmp), &|_| Vec::new(), seeds);
            Comparison { reference: self, row, chooser, expected: self.expected(row, chooser), found }
        })
    }
}

impl Comparison {
    /// Returns the compared figures, each with its tolerance.
    fn differences(&self) -> Vec<Difference> {
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
            Some(BalancerKind::Ecmp) if self.row.few => (None, None),
            Some(kind) if self.reference.strict.contains(&kind) => (Some(MEAN), Some(MAX)),
            _ => (Some(OTHERS), None),
        };
        vec![difference("mean", |run| run.mean_us, mean), difference("max", |run| run.max_us, max)]
    }

    /// Returns the reason why its figures differ from the reference's.
    fn explained(&self) -> Option<&'static str> {
        self.row.explained.iter().find(|(kind, _)| Some(*kind) == self.chooser).map(|(_, why)| *why)
    }

    fn is_within(&self) -> bool {
        self.differences().iter().all(Difference::holds)
    }

    fn assert_holds(&self) {
        let Self { row, chooser, .. } = self;
        let holds = self.explained().is_some() || self.is_within();
        assert!(holds, "{} {}: {:?}", row.scenario, name(*chooser), self.differences());
    }
}

#[test]
#[ignore = "cargo xtask ci runs it"]
fn the_smaller_rows_are_within_tolerance() {
    REFERENCES.iter().flat_map(|reference| reference.compare(|row| row.small)).for_each(|one| one.assert_holds());
}

/// Runs every row and writes the document, and the rows into `target/fidelity`.
#[test]
#[ignore = "cargo xtask fidelity runs it"]
fn document() {
    let comparisons: Vec<Comparison> =
        REFERENCES.iter().flat_map(|reference| reference.compare(|_| true)).inspect(report::print).collect();
    let flowcut = flowcut::compare(10);
    let root = spray_test_support::root();
    std::fs::write(root.join("docs/results/fidelity.md"), report::markdown(&comparisons, &flowcut)).unwrap();
    write_rows(&root.join("target/fidelity"), &comparisons);
    comparisons.iter().for_each(Comparison::assert_holds);
}

fn write_rows(folder: &Path, comparisons: &[Comparison]) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("rows.csv"), report::csv(comparisons)).unwrap();
}

#[test]
fn every_row_of_the_references_has_three_seeds_or_more() {
    for reference in REFERENCES {
        for row in reference.rows {
            for chooser in row.choosers {
                assert!(reference.expected(row, *chooser).len() >= 3, "{} {}", row.scenario, name(*chooser));
            }
        }
    }
}
