//! `spray compare-balancers`: every balancer under one scenario, on either engine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use spray_core::path::BalancerKind;
use spray_experiments::results::{self, Matrix, RunResult};
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::{Simulation, over_cores};

use super::{Shown, SimCampaign};
use crate::args::{self, Engine};
use crate::campaign::{self, Bench};
use crate::failure::{Failure, Outcome};

/// What a run came to, under its balancer's name.
type Ended = (String, Result<RunResult, String>);

/// Runs the scenario with all balancers, or those asked for, and prints how they compare. A run that fails is shown as
/// such and stops no other.
///
/// # Errors
/// 2 when the machine or the scenario does not allow it, 1 when a run failed or did not complete, 130 after Ctrl-C.
pub fn compare_balancers(arguments: &args::CompareBalancers) -> Outcome {
    let document = arguments.overrides.load(&arguments.scenario)?;
    let mut scenario = Scenario::read(&document).map_err(Failure::refused)?;
    if !document.is_assigned("transport.balancer") {
        scenario.transport.balancer = BalancerKind::ALL.to_vec();
    }
    scenario.workload.warnings().iter().for_each(|warning| eprintln!("spray: warning: {warning}"));
    let comparison = Comparison {
        campaign: SimCampaign::new(scenario, &arguments.seeds),
        out: campaign::location(arguments.out.as_deref(), "compare-balancers"),
    };
    let ended = match arguments.engine {
        Engine::Sim => comparison.simulated()?,
        Engine::Xdp if arguments.seeds.threads.is_some() => {
            return Err(Failure::refused("`--threads` goes with `--engine sim`: the xdp engine runs one at a time"));
        }
        Engine::Xdp => comparison.emulated()?,
    };
    comparison.conclude(ended)
}

struct Comparison {
    campaign: SimCampaign,
    out: PathBuf,
}

impl Comparison {
    fn scenario(&self) -> &Scenario {
        &self.campaign.scenario
    }

    /// Balancers in the order of the table, each with all seeds.
    fn jobs(&self) -> Vec<(BalancerKind, u64)> {
        self.campaign.jobs()
    }

    fn simulated(&self) -> Outcome<Vec<Ended>> {
        campaign::make(&self.out)?;
        let simulation = Simulation::new(self.scenario());
        let (jobs, shown) = (self.jobs(), Shown::new());
        over_cores(jobs.len(), self.campaign.threads, |number| {
            let (balancer, seed) = jobs[number];
            // A balancer that panics is a result like another, to whoever is writing one.
            let run = catch_unwind(AssertUnwindSafe(|| self.campaign.one(&simulation, balancer, seed)));
            let run = match run {
                Ok(run) => run.map_err(|failure| failure.to_string()),
                Err(_) => Err("it panicked, see above".into()),
            };
            let told = run.as_ref().map_or_else(Clone::clone, |run| format!("{:.1} s", run.wall_s));
            shown.one_more(jobs.len(), &format!("{balancer}, seed {seed}: {told}"));
            self.ended(balancer, seed, run)
        })
    }

    fn emulated(&self) -> Outcome<Vec<Ended>> {
        let jobs = self.jobs();
        let mut bench = Bench::new(self.scenario())?;
        campaign::make(&self.out)?;
        let run = |(number, (balancer, seed)): (usize, &(BalancerKind, u64))| {
            let label = format!("[{}/{}] {balancer}, seed {seed}", number + 1, jobs.len());
            let run = bench.run(self.scenario(), *balancer, *seed, &label);
            match run {
                Err(failure) if failure.is_interrupted() => Err(failure),
                run => self.ended(*balancer, *seed, run.map_err(|failure| failure.to_string())),
            }
        };
        jobs.iter().enumerate().map(run).collect()
    }

    /// Writes a run's folder as soon as it is there.
    fn ended(&self, balancer: BalancerKind, seed: u64, run: Result<RunResult, String>) -> Outcome<Ended> {
        if let Ok(run) = &run {
            results::write_run(&self.folder(seed).join(run.folder()), run).map_err(Failure::failed)?;
        }
        Ok((balancer.to_string(), run.map_err(|why| format!("seed {seed}: {why}"))))
    }

    /// Where the runs of a seed are, and the overview over them.
    fn folder(&self, seed: u64) -> PathBuf {
        match self.campaign.seeds.as_slice() {
            [_] => self.out.clone(),
            _ => self.out.join(format!("seed{seed}")),
        }
    }

    fn conclude(&self, ended: Vec<Ended>) -> Outcome {
        let done: Vec<RunResult> = ended.iter().filter_map(|(_, run)| run.clone().ok()).collect();
        let matrix: Matrix = ended.into_iter().collect();
        for seed in &self.campaign.seeds {
            let of_seed: Vec<RunResult> = done.iter().filter(|run| run.seed == *seed).cloned().collect();
            results::write_overview(&self.folder(*seed), &of_seed).map_err(Failure::failed)?;
        }
        results::write_sweep(&self.out, &done).map_err(Failure::failed)?;
        let title = self.title();
        matrix.write(&self.out, &title).map_err(Failure::failed)?;
        println!("{title}\n\n{}", matrix.text());
        self.say_where(&self.out);
        match matrix.bad_runs() {
            0 => Ok(()),
            bad => Err(Failure::failed(format!("{bad} of {} runs failed or did not complete", self.jobs().len()))),
        }
    }

    fn title(&self) -> String {
        let Scenario { name, condition, transport, .. } = self.scenario();
        let (seeds, flows) = (&self.campaign.seeds, self.scenario().flows(self.campaign.seeds[0]).len());
        let seeds = match seeds.as_slice() {
            [seed] => format!("seed {seed}"),
            seeds => format!("means over {} seeds", seeds.len()),
        };
        format!("{name}, {condition}: {flows} flows, {}, {seeds}; * is the best that completed", transport.cc)
    }

    fn say_where(&self, out: &Path) {
        let table = out.join("compare-balancers.md");
        println!("results   {}", out.display());
        println!("table     {} (also .csv, .txt)", table.display());
        println!("overview  {}", self.folder(self.campaign.seeds[0]).join("report.html").display());
    }
}
