//! Scenarios in which `reps-plus` is furthest behind, found at random and minimised: its ratio to
//! the best of other balancers.
//!
//! The first line of each file in `worst/` has the ratios of the mean and of the maximum completion
//! times, as returned by [`behind`]. `UPDATE_GOLDEN=1` records them again.

use std::fmt::Write as _;
use std::path::Path;

use spray_core::path::BalancerKind::{self, HostDr, Ops, Reps, RepsPlus};
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::{Simulation, run_parallel};

/// The compared balancers.
const ALL: [BalancerKind; 4] = [RepsPlus, Ops, Reps, HostDr];
/// The number of runs of each; their mean is compared.
const SEEDS: usize = 10;

/// Returns the mean and the maximum completion time of `reps-plus`, each divided by that of the
/// best balancer that completes all flows.
fn behind(toml: &str) -> [f64; 2] {
    let scenario = Scenario::parse(Path::new("case.toml"), toml).unwrap();
    let simulation = Simulation::new(&scenario);
    let run = |job: usize| {
        let summary = simulation.run(ALL[job / SEEDS], (job % SEEDS) as u64 + 1, &[]).unwrap().summary();
        let times = [summary.flows.fct_mean_us, summary.flows.fct_max_us];
        Ok::<_, String>(times.map(|time| time.filter(|_| summary.is_complete()).unwrap_or(f64::INFINITY)))
    };
    let runs = run_parallel(ALL.len() * SEEDS, 2, run).unwrap();
    [0, 1].map(|figure| {
        let sums: Vec<f64> = runs.chunks(SEEDS).map(|runs| runs.iter().map(|run| run[figure]).sum()).collect();
        sums[0] / sums.iter().copied().fold(f64::INFINITY, f64::min)
    })
}

#[test]
fn reps_plus_is_no_further_behind_than_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worst");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 5);
    let mut worse = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let (line, scenario) = text.split_once('\n').unwrap();
        let [mean, largest] = behind(scenario);
        let found = format!("# {mean:.3} {largest:.3}");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, format!("{found}\n{scenario}")).unwrap();
        } else if found != line {
            writeln!(worse, "{}: {found}, where it was {line}", file.display()).unwrap();
        }
    }
    assert!(worse.is_empty(), "{worse}");
}
