//! `spray compare-balancers`: every balancer under one scenario, on either engine.

use std::path::{Path, PathBuf};

use spray_core::path::BalancerKind;
use spray_experiments::results::{self, Matrix, RunResult};
use spray_experiments::scenario::Scenario;

use crate::args::{self, Engine};
use crate::campaign::{self, Campaign, Job};
use crate::failure::{Failure, Outcome};
use crate::folder;
use crate::say::say;

/// A balancer, and the result of one of its runs or why it failed.
type Row = (String, Result<RunResult, String>);

/// Runs the scenario with all balancers, or with those asked for, and prints a table that compares them. The table shows runs
/// that failed; the other runs go on.
///
/// # Errors
/// 2 when the machine or the scenario does not allow it, 1 when a run failed or did not complete, 130 after Ctrl-C.
pub fn compare_balancers(arguments: &args::Run) -> Outcome {
    let document = arguments.overrides.load(&arguments.scenario)?;
    let mut scenario = Scenario::read(&document).map_err(Failure::refused)?;
    if !document.is_assigned("transport.balancer") {
        scenario.transport.balancer = BalancerKind::ALL.to_vec();
    }
    if arguments.engine == Engine::Xdp && arguments.seeds.threads.is_some() {
        return Err(Failure::refused("`--threads` goes with `--engine sim`: the xdp engine runs one at a time"));
    }
    let seeds = arguments.seeds.list_or(scenario.seed);
    let campaign = Campaign { seeds, ..Campaign::new(arguments.engine, scenario, &arguments.seeds) };
    let out = folder::location(arguments.out.as_deref(), "compare-balancers");
    Comparison { campaign, out }.run()
}

struct Comparison {
    /// One scenario.
    campaign: Campaign,
    out: PathBuf,
}

impl Comparison {
    fn run(&self) -> Outcome {
        let rows = self.campaign.each(&self.out, |job, ended| self.row(job, ended))?;
        self.conclude(rows)
    }

    /// Writes a run's folder as soon as the run has ended.
    fn row(&self, job: &Job, ended: campaign::Ended) -> Outcome<Row> {
        if let Ok(run) = &ended {
            results::write_run(&self.folder(job.seed).join(run.folder()), run).map_err(Failure::failed)?;
        }
        Ok((job.balancer.to_string(), ended.map_err(|why| format!("seed {}: {why}", job.seed))))
    }

    /// The folder of the runs of a seed, and of the overview of them.
    fn folder(&self, seed: u64) -> PathBuf {
        match self.campaign.seeds.as_slice() {
            [_] => self.out.clone(),
            _ => self.out.join(format!("seed{seed}")),
        }
    }

    fn conclude(&self, rows: Vec<Row>) -> Outcome {
        let done: Vec<RunResult> = rows.iter().filter_map(|(_, run)| run.clone().ok()).collect();
        let matrix: Matrix = rows.into_iter().collect();
        for seed in &self.campaign.seeds {
            let of_seed: Vec<RunResult> = done.iter().filter(|run| run.seed == *seed).cloned().collect();
            results::write_overview(&self.folder(*seed), &of_seed).map_err(Failure::failed)?;
        }
        results::write_sweep(&self.out, &done).map_err(Failure::failed)?;
        let title = self.title();
        matrix.write(&self.out, &title).map_err(Failure::failed)?;
        say!("{title}\n\n{}", matrix.text());
        self.say_where(&self.out);
        match matrix.bad_runs() {
            0 => Ok(()),
            bad => {
                Err(Failure::failed(format!("{bad} of {} runs failed or did not complete", self.campaign.jobs().len())))
            }
        }
    }

    fn title(&self) -> String {
        let scenario = &self.campaign.scenarios[0];
        let Scenario { name, condition, transport, .. } = scenario;
        let (seeds, flows) = (&self.campaign.seeds, scenario.flows(self.campaign.seeds[0]).len());
        let seeds = match seeds.as_slice() {
            [seed] => format!("seed {seed}"),
            seeds => format!("means over {} seeds", seeds.len()),
        };
        format!("{name}, {condition}: {flows} flows, {}, {seeds}; * is the best that completed", transport.cc)
    }

    fn say_where(&self, out: &Path) {
        let table = out.join("compare-balancers.md");
        say!("results   {}", out.display());
        say!("table     {} (also .csv, .txt)", table.display());
        say!("overview  {}", self.folder(self.campaign.seeds[0]).join("report.html").display());
    }
}
