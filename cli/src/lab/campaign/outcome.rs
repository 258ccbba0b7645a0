//! Outcome of a campaign: figures, tables and pages over all runs, and failures.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;
use spray_experiments::results::{self, FinishedRun, Summary};
use spray_tools::failure::{Failure, Outcome};
use spray_tools::{note, say};

use super::Campaign;
use super::plan::{self, Job, Planned};
use crate::lab::folder::{self, LockScope};
use crate::lab::runs::Part;
use crate::lab::wide_tables::print_tables;

/// A run that has ended, with its results or the reason of its failure.
pub type Ended = (Job, Result<FinishedRun, String>);

impl Campaign {
    /// Runs everything that is not done, writes the results, prints the table. The set-up of the
    /// engine is removed also on failure: 2 when the run is not possible or `out` has other
    /// results, 1 when one failed or did not deliver everything, 130 after Ctrl-C.
    pub fn run(&self, out: Option<&Path>) -> Outcome {
        let out = folder::location(out, &self.name);
        let ended = self.results(&out)?;
        let (own, earlier) = self.write_all(&out, &ended)?;
        let summaries = [own.as_slice(), &earlier].concat();
        let is_sweep = summaries.windows(2).any(|pair| pair[0].seed != pair[1].seed || pair[0].axes != pair[1].axes);
        speed(&own);
        print_tables(&if is_sweep { results::sweep_table(&summaries) } else { results::table(&summaries) });
        if let Some(table) = results::workload_table(&summaries) {
            print_tables(&table);
        }
        let (overview, failures) = (self.overview(&out), self.failures(&ended));
        say!("results   {}", out.display());
        overview.iter().for_each(|page| say!("overview  {}", page.display()));
        report(&out, overview.as_deref(), &own, &failures)?;
        failures.iter().for_each(|Failed { run, why }| note!("spray: {run} failed: {why}"));
        match failures.len() {
            0 => verdict(&own),
            failed => Err(Failure::failed(format!(
                "{failed} of {} runs failed; repeat the command to retry them",
                ended.len()
            ))),
        }
    }

    pub fn overview(&self, out: &Path) -> Option<PathBuf> {
        self.extras.report.then(|| out.join("report.html"))
    }

    /// Writes the tables and the page over all runs in `out`. Returns the figures of successful
    /// runs in `ended`, and those of earlier commands.
    pub fn write_all(&self, out: &Path, ended: &[Ended]) -> Outcome<(Vec<Summary>, Vec<Summary>)> {
        let mut done: Vec<FinishedRun> = ended.iter().filter_map(|(_, run)| run.clone().ok()).collect();
        let own: HashSet<String> = done.iter().map(|run| run.folder.clone()).collect();
        let count = done.len();
        for name in plan::runs_in(out).into_iter().filter(|name| !own.contains(name)) {
            done.push(FinishedRun::load(out, &name).map_err(Failure::failed)?);
        }
        let summaries: Vec<Summary> = done.iter().map(|run| run.summary.clone()).collect();
        results::write_sweep(out, &summaries).map_err(Failure::failed)?;
        if self.extras.report {
            results::write_overview(out, &done).map_err(Failure::failed)?;
        }
        let mut own = summaries;
        let earlier = own.split_off(count);
        Ok((own, earlier))
    }

    pub fn failures(&self, ended: &[Ended]) -> Vec<Failed> {
        let failed = |(job, run): &Ended| Some(Failed { run: self.title(job), why: run.as_ref().err()?.clone() });
        ended.iter().filter_map(failed).collect()
    }

    /// Runs everything that is not done, writing results immediately. Returns them in plan order.
    pub fn results(&self, out: &Path) -> Outcome<Vec<Ended>> {
        let plan = self.plan(out)?;
        let mut failed = self.work(&plan, out, LockScope::All)?;
        let end = |(number, planned): (usize, &Planned)| {
            let run = match failed.remove(&number) {
                Some(why) => Err(why),
                None => FinishedRun::load(out, &planned.folder),
            };
            (planned.job, run)
        };
        Ok(plan.iter().enumerate().map(end).collect())
    }

    /// Runs a part of the plan. The same command without a part collects all results.
    pub fn run_part(&self, out: &Path, part: Part) -> Outcome {
        let plan = self.plan(out)?;
        let all = plan.len();
        let mine = part.share(plan);
        let failed = self.work(&mine, out, LockScope::Part)?;
        part.report(out, mine.len() - failed.len(), mine.len(), all)?;
        match failed.values().next() {
            None => Ok(()),
            Some(why) => Err(Failure::failed(format!("{} runs failed; one of them: {why}", failed.len()))),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Failed {
    /// The title that identifies the run.
    pub run: String,
    pub why: String,
}

pub fn report(results: &Path, overview: Option<&Path>, runs: &[Summary], failed: &[Failed]) -> Outcome {
    say::object(&json!({ "results": results, "overview": overview, "runs": runs, "failed": failed }))
}

/// Fails with 1 unless everything was delivered unchanged.
pub fn verdict(done: &[Summary]) -> Outcome {
    let count = |is_bad: fn(&Summary) -> bool| done.iter().filter(|run| is_bad(run)).count();
    let wrong = count(|run| run.payload_verified == Some(false));
    let incomplete = count(|run| run.flows.flows_completed < run.flows.flows_total);
    let of = done.len();
    match (incomplete, wrong) {
        (0, 0) => Ok(()),
        (incomplete, 0) => {
            Err(Failure::failed(format!("incomplete runs: {incomplete} of {of}, in which not all flows completed")))
        }
        (0, wrong) => Err(Failure::failed(format!("in {wrong} of {of} runs a payload differs from what was sent"))),
        (incomplete, wrong) => Err(Failure::failed(format!(
            "incomplete runs: {incomplete} of {of}; in {wrong} a payload differs from what was sent"
        ))),
    }
}

/// Prints packet-hops per second of run time, summed over the runs of the simulator.
fn speed(done: &[Summary]) {
    let figures = || done.iter().filter_map(|run| Some((run.sim?, run.engine_figures.wall_s)));
    if figures().next().is_none() {
        return;
    }
    let hops: u64 = figures().map(|(sim, _)| sim.packet_hops).sum();
    let seconds: f64 = figures().map(|(_, wall_s)| wall_s).sum();
    let peak = figures().map(|(sim, _)| sim.peak_rss_mb).fold(0.0, f64::max);
    let rate = hops as f64 / seconds.max(1e-9) / 1e6;
    let millions = hops as f64 / 1e6;
    say!("{millions:.1} million packet-hops in {seconds:.2} s, {rate:.1} million a second; at most {peak:.0} MB");
}
