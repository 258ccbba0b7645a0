//! Execution of the open runs of a campaign.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use spray_experiments::engine::{Engine, Prepared};
use spray_experiments::results::{self, Machine, Program, Record, RunResult};
use spray_experiments::scenario::Scenario;
use spray_experiments::watch;
use spray_tools::captures::{Captures, Watching};
use spray_tools::failure::{Failure, Outcome};
use spray_tools::note;
use tracing::info_span;

use super::plan::Planned;
use super::{COMMIT, Campaign, VERSION, ended};
use crate::lab::engines;
use crate::lab::folder::{self, LockScope};
use crate::lab::runs::{self, Runs};

impl Campaign {
    /// Runs what is not done of `plan`. Returns the failures by index in the plan.
    pub(super) fn work(&self, plan: &[Planned], out: &Path, scope: LockScope) -> Outcome<HashMap<usize, String>> {
        let open: Vec<usize> = (0..plan.len()).filter(|number| !plan[*number].is_done).collect();
        self.check_captures(plan, out)?;
        Runs::print_done(out, plan.len(), &open);
        if open.is_empty() {
            return Ok(HashMap::new());
        }
        // Threads beyond the number of open runs are divided among the runs.
        let engine = engines::engine(self.engine, (self.threads / open.len()).max(1))?;
        let exclusive = engine.is_exclusive();
        let runs = Runs::new(out, plan.len(), open.clone(), exclusive)?;
        self.warn();
        let mut work = Work { campaign: self, plan, engine: &*engine, runs: &runs, prepared: Vec::new() };
        // An exclusive engine fails early here; the other prepares each run by itself, for memory.
        if exclusive {
            work.prepared = (0..self.scenarios.len()).map(|scenario| work.prepare(scenario)).collect::<Outcome<_>>()?;
        }
        let _lock = folder::lock(out, scope)?;
        // Another process may have finished between the plan and the lock.
        if open.iter().any(|number| out.join(&plan[*number].folder).exists()) {
            return Err(Failure::refused(format!(
                "another process has just written into {}; try again",
                out.display()
            )));
        }
        let failed = Mutex::new(HashMap::new());
        runs.each(self.threads, |number| {
            if let Some(why) = work.run(number)? {
                failed.lock().unwrap_or_else(PoisonError::into_inner).insert(number, why);
            }
            Ok(())
        })?;
        Ok(failed.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Prints each warning about the workloads once.
    fn warn(&self) {
        let mut told = HashSet::new();
        let all = self.scenarios.iter().flat_map(|scenario| &scenario.workloads);
        let warnings = all.flat_map(spray_experiments::workload::Workload::warnings);
        warnings.filter(|text| told.insert(*text)).for_each(|text| note!("spray: warning: {text}"));
    }

    fn check_captures(&self, plan: &[Planned], out: &Path) -> Outcome {
        let files = |captures: &Captures| {
            plan.iter().filter_map(|planned| Some((planned, captures.file(&planned.folder)?))).collect::<Vec<_>>()
        };
        let files = self.captures.as_ref().map(files).unwrap_or_default();
        if let Some((planned, _)) = files.iter().find(|(planned, _)| planned.is_done) {
            let dir = out.join(&planned.folder);
            return Err(Failure::refused(format!(
                "{} is done already and would leave no capture with --pcap; allowed: another folder with --out",
                dir.display()
            )));
        }
        files.iter().try_for_each(|(_, file)| Captures::prepare(file))
    }

    fn begin_capture(&self, run: &str, scenario: &Scenario) -> Outcome<Option<Watching>> {
        let Some(captures) = &self.captures else { return Ok(None) };
        let Some(file) = captures.file(run) else { return Ok(None) };
        let watch = watch::capture(&file, scenario, captures.pcap_frames)
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", file.display())))?;
        Ok(Some(Watching::new(file, watch)))
    }

    fn write_run(&self, planned: &Planned, out: &Path, result: &RunResult) -> Outcome {
        let Planned { job, folder, key, table_key, .. } = planned;
        let record = Record {
            key: key.clone(),
            table_key: table_key.clone(),
            engine: self.engine.name().into(),
            balancer: job.balancer.to_string(),
            seed: job.seed,
            date: folder::date(),
            program: Program { command: runs::command(), version: VERSION.into(), commit: COMMIT.into() },
            machine: Machine::this(),
        };
        let scenario = self.scenarios[job.scenario].settings.toml(job.balancer, job.seed);
        results::write_run(&out.join(folder), result, &scenario, &record, self.extras).map_err(Failure::failed)
    }
}

struct Work<'a> {
    campaign: &'a Campaign,
    plan: &'a [Planned],
    engine: &'a dyn Engine,
    runs: &'a Runs<'a>,
    /// By scenario, of an exclusive engine.
    prepared: Vec<Box<dyn Prepared + 'a>>,
}

impl<'a> Work<'a> {
    fn prepare(&self, number: usize) -> Outcome<Box<dyn Prepared + 'a>> {
        let scenario = &self.campaign.scenarios[number];
        let _span = info_span!("prepare", scenario = scenario.name).entered();
        self.engine.prepare(scenario, &mut |news| self.runs.display.on_progress("", &news)).map_err(ended)
    }

    /// Executes one run and writes its results; returns the reason if it failed.
    fn run(&self, number: usize) -> Outcome<Option<String>> {
        let (campaign, Runs { out, display, stop, .. }) = (self.campaign, self.runs);
        let planned = &self.plan[number];
        let Planned { job, folder, .. } = planned;
        let (title, scenario) = (campaign.title(job), &campaign.scenarios[job.scenario]);
        let label = display.begin(number, &title);
        let own = if self.engine.is_exclusive() { None } else { Some(self.prepare(job.scenario)?) };
        let ready: &dyn Prepared = own.as_deref().unwrap_or_else(|| &*self.prepared[job.scenario]);
        let watching = self.campaign.begin_capture(folder, scenario)?;
        let frames = watching.as_ref().map(|watching| &watching.watch);
        let mut on_progress = |news| display.on_progress(&label, &news);
        let run = || ready.run_observed(job.balancer, job.seed, frames, &mut on_progress, stop.flag()).map_err(ended);
        let span = info_span!("run", run = title).entered();
        // A panic ends only its own run.
        let caught = catch_unwind(AssertUnwindSafe(run));
        let ended = caught.unwrap_or_else(|_| Err(Failure::failed("it panicked, see above")));
        drop(span);
        let told = ended.as_ref().map_or_else(ToString::to_string, |run| format!("{:.1} s", run.engine_figures.wall_s));
        display.end(&title, &told);
        watching.into_iter().for_each(Watching::close);
        match ended {
            Ok(result) => campaign.write_run(planned, out, &result)?,
            Err(failure) if failure.is_failed() => return Ok(Some(failure.to_string())),
            Err(failure) => return Err(failure),
        }
        display.count();
        Ok(None)
    }
}
