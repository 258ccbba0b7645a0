//! `spray sim`, `spray run --engine sim` and `spray compare`: runs on the simulator, several at a time.

pub mod args;
mod bench;
mod compare;
mod compare_balancers;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use spray_core::path::BalancerKind;
use spray_experiments::results::{self, RunResult};
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::{SimOptions, Simulation, over_cores, preset};

use self::args::{Seeds, Sim};
use crate::campaign;
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use crate::settings::Overrides;

pub use bench::bench;
pub use compare::compare;
pub use compare_balancers::compare_balancers;

/// One scenario on the simulator, with every balancer and every seed.
pub struct SimCampaign {
    scenario: Scenario,
    balancers: Vec<BalancerKind>,
    seeds: Vec<u64>,
    threads: usize,
}

/// Runs what the arguments describe.
///
/// # Errors
/// 2 for bad input, 1 when a run does not complete.
pub fn sim(arguments: &Sim) -> Outcome {
    let scenario = published(&arguments.overrides)?;
    SimCampaign::new(scenario, &arguments.seeds).run(arguments.out.as_deref())
}

/// The settings of the published simulations with `overrides`, which name the fabric and the flows.
///
/// # Errors
/// 2 for what the overrides may not be.
fn published(overrides: &Overrides) -> Outcome<Scenario> {
    let mut document = preset();
    overrides.apply(&mut document)?;
    for (path, flag) in [("topology", "--topology"), ("workload", "--matrix")] {
        if !document.is_assigned(path) {
            let what = format!("`spray sim` needs {flag}; allowed: what `spray sim --help` says there");
            return Err(Failure::refused(what));
        }
    }
    Scenario::read(&document).map_err(Failure::refused)
}

impl SimCampaign {
    /// `scenario` with its own balancers, and with its own seed, or `seeds`.
    pub fn new(scenario: Scenario, seeds: &Seeds) -> Self {
        let seeds_asked = seeds.list();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            balancers: scenario.transport.balancer.clone(),
            seeds: if seeds_asked.is_empty() { vec![scenario.seed] } else { seeds_asked },
            threads: seeds.threads.map_or(cores, |threads| threads as usize),
            scenario,
        }
    }

    /// Runs everything, writes the results and prints the table.
    ///
    /// # Errors
    /// 2 for what does not fit, 1 when a run does not complete.
    pub fn run(&self, out: Option<&Path>) -> Outcome {
        self.scenario.workload.warnings().iter().for_each(|warning| eprintln!("spray: warning: {warning}"));
        let out = campaign::folder(out, &self.scenario.name)?;
        let done = self.results(&out)?;
        results::write_sweep(&out, &done).map_err(Failure::failed)?;
        if self.seeds.len() > 1 {
            println!("{}", results::sweep_table(&done));
            println!("{}", speed(&done));
            println!("results   {}", out.display());
            campaign::verdict(&done)
        } else {
            println!("{}", speed(&done));
            campaign::conclude(&out, &done)
        }
    }

    /// Runs everything, and writes each result as soon as it is there, in a folder of its own under `out`.
    fn results(&self, out: &Path) -> Outcome<Vec<RunResult>> {
        let simulation = Simulation::new(&self.scenario);
        let (jobs, shown) = (self.jobs(), Shown::new());
        over_cores(jobs.len(), self.threads, |number| {
            let (balancer, seed) = jobs[number];
            let result = self.one(&simulation, balancer, seed)?;
            let folder = match self.seeds.len() {
                1 => result.folder(),
                _ => format!("{balancer}-seed{seed}"),
            };
            results::write_run(&out.join(folder), &result).map_err(Failure::failed)?;
            shown.one_more(jobs.len(), &format!("{balancer}, seed {seed}: {:.1} s", result.wall_s));
            Ok(result)
        })
    }

    /// Balancers in their order, each with all seeds.
    fn jobs(&self) -> Vec<(BalancerKind, u64)> {
        self.balancers.iter().flat_map(|balancer| self.seeds.iter().map(|seed| (*balancer, *seed))).collect()
    }

    fn one(&self, simulation: &Simulation<'_>, balancer: BalancerKind, seed: u64) -> Outcome<RunResult> {
        let events = simulation.failures(seed).map_err(Failure::refused)?;
        let options = SimOptions { balancer, seed, events };
        simulation.run(&options).map_err(Failure::refused)
    }
}

/// Progress of runs on several threads.
struct Shown {
    progress: Mutex<Progress>,
    finished: AtomicUsize,
}

impl Shown {
    fn new() -> Self {
        Self { progress: Mutex::new(Progress::new()), finished: AtomicUsize::new(0) }
    }

    /// Tells that one more of `jobs` is through.
    fn one_more(&self, jobs: usize, text: &str) {
        let count = self.finished.fetch_add(1, Ordering::Relaxed) + 1;
        if let Ok(mut progress) = self.progress.lock() {
            progress.update(|| format!("[{count}/{jobs}] {text}"));
        }
    }
}

/// How fast the simulator was.
fn speed(done: &[RunResult]) -> String {
    let figures = || done.iter().filter_map(|run| Some((run.sim?, run.wall_s)));
    let hops: u64 = figures().map(|(sim, _)| sim.packet_hops).sum();
    let seconds: f64 = figures().map(|(_, wall_s)| wall_s).sum();
    let peak = figures().map(|(sim, _)| sim.peak_rss_mb).fold(0.0, f64::max);
    let rate = hops as f64 / seconds.max(1e-9) / 1e6;
    let millions = hops as f64 / 1e6;
    format!(
        "{millions:.1} million packet-hops in {seconds:.2} s of one core, {rate:.1} million a second; at most {peak:.0} MB"
    )
}
