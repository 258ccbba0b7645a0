//! How a campaign runs what is open: one run after the other or several at a time, each in a folder of its own.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use spray_experiments::engine::{Engine, Observers, Prepared, Progress};
use spray_experiments::live::Live;
use spray_experiments::results::{self, Machine, Program, Record, RunResult};
use spray_experiments::sim::over_cores;
use spray_tools::captures::{Captures, Watching};
use spray_tools::failure::{Failure, Outcome};
use spray_tools::stop::Stop;
use spray_tools::{info, note};
use tracing::info_span;

use super::show::Show;
use super::{COMMIT, Campaign, Job, Planned, VERSION, ended};
use crate::lab::captures;
use crate::lab::engines;
use crate::lab::folder::{self, Writes};
use crate::lab::live::{self, View};

impl Campaign {
    /// Runs what is not done of `plan`. Returns why runs failed, by their place in the plan.
    /// Meanwhile nobody else `writes` into the folder.
    pub(super) fn work(&self, plan: &[Planned], (out, writes): (&Path, Writes)) -> Outcome<HashMap<usize, String>> {
        let open: Vec<usize> = (0..plan.len()).filter(|number| !plan[*number].is_done).collect();
        let done = plan.len() - open.len();
        self.check_captures(plan, out)?;
        if done > 0 {
            info!("spray: {done} of {} runs are done already in {}", plan.len(), out.display());
        }
        if open.is_empty() {
            return Ok(HashMap::new());
        }
        if self.live {
            live::check(open.len())?;
        }
        self.warn();
        // What the runs at the same time do not need goes to each of them.
        let engine = engines::engine(self.engine, (self.threads / open.len()).max(1))?;
        let exclusive = engine.is_exclusive();
        let (show, stop) = (Show::new(plan.len(), done, exclusive), Stop::on_signals()?);
        self.metrics.begin(plan.len(), done)?;
        let mut work =
            Work { campaign: self, plan, out, engine: &*engine, show: &show, stop: &stop, prepared: Vec::new() };
        // One engine says here what the machine does not allow; the other has nothing to say, and prepares one run after the other, to
        // save memory.
        if exclusive {
            work.prepared = (0..self.scenarios.len()).map(|scenario| work.prepare(scenario)).collect::<Outcome<_>>()?;
        }
        let _held = folder::hold(out, writes)?;
        // Between the plan and the lock another process may have ended.
        if open.iter().any(|number| out.join(&plan[*number].folder).exists()) {
            return Err(Failure::refused(format!(
                "another process has just written into {}; try again",
                out.display()
            )));
        }
        let kept = || Kept { done: show.done(), all: plan.len(), out, exclusive };
        let failed = Mutex::new(HashMap::new());
        let run = |index: usize| -> Outcome {
            let number = open[index];
            if let Some(why) = work.run(number)? {
                failed.lock().unwrap_or_else(PoisonError::into_inner).insert(number, why);
            }
            Ok(())
        };
        let threads = if exclusive { 1 } else { self.threads };
        let all = || over_cores(open.len(), threads, run);
        let outcome = if exclusive { all() } else { watched(&stop, &kept, all) };
        match outcome {
            Err(failure) if failure.is_interrupted() => Err(Failure::interrupted_with(kept())),
            outcome => outcome.map(|_| failed.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Says what is worth knowing of the workloads, each once.
    fn warn(&self) {
        let mut told = HashSet::new();
        let all = self.scenarios.iter().flat_map(|scenario| &scenario.workloads);
        let warnings = all.flat_map(|workload| workload.warnings());
        warnings.filter(|text| told.insert(*text)).for_each(|text| note!("spray: warning: {text}"));
    }

    /// Makes the folders of captures.
    ///
    /// # Errors
    /// 2 when a run is done and so leaves no capture, or a capture is there already.
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

    fn write(&self, job: &Job, dir: &Path, key: &str, result: &RunResult) -> Outcome {
        let record = Record {
            key: key.into(),
            engine: self.engine.name().into(),
            balancer: job.balancer.to_string(),
            seed: job.seed,
            date: folder::date(),
            program: Program { command: command(), version: VERSION.into(), commit: COMMIT.into() },
            machine: Machine::this(),
        };
        let scenario = self.scenarios[job.scenario].written.toml(job.balancer, job.seed);
        results::write_run(dir, result, &scenario, &record, self.csv).map_err(Failure::failed)
    }
}

/// A campaign at work.
struct Work<'a> {
    campaign: &'a Campaign,
    plan: &'a [Planned],
    out: &'a Path,
    engine: &'a dyn Engine,
    show: &'a Show,
    stop: &'a Stop,
    /// By scenario, of an exclusive engine.
    prepared: Vec<Box<dyn Prepared + 'a>>,
}

impl<'a> Work<'a> {
    fn prepare(&self, number: usize) -> Outcome<Box<dyn Prepared + 'a>> {
        let scenario = &self.campaign.scenarios[number];
        let _span = info_span!("prepare", scenario = scenario.name).entered();
        self.engine.prepare(scenario, &mut |news| self.show.news("", &news)).map_err(ended)
    }

    /// Makes one run of the plan, and writes what came of it; returns why it failed, if it did, which ends no other.
    fn run(&self, number: usize) -> Outcome<Option<String>> {
        let Self { campaign, show, .. } = self;
        let Planned { job, folder, key, .. } = &self.plan[number];
        let (title, scenario) = (campaign.title(job), &campaign.scenarios[job.scenario]);
        let label = show.begin(number, &title);
        let own = if self.engine.is_exclusive() { None } else { Some(self.prepare(job.scenario)?) };
        let ready: &dyn Prepared = own.as_deref().unwrap_or_else(|| &*self.prepared[job.scenario]);
        let watching =
            campaign.captures.as_ref().map_or(Ok(None), |captures| captures::begin(captures, folder, scenario))?;
        let frames = watching.as_ref().map(|watching| &watching.watch);
        let about = (campaign.engine.name(), !self.engine.is_exclusive());
        let mut view = campaign.live.then(|| View::new(scenario, about, (job.balancer, job.seed), self.stop));
        let new_flows = view.as_ref().map(View::new_flows);
        let mut held = Vec::new();
        let mut tell = |news| {
            campaign.metrics.on_progress(&title, &news);
            match news {
                Progress::Running { .. } if campaign.live => {}
                Progress::Remark(_) if campaign.live => held.push(news),
                news => show.news(&label, &news),
            }
        };
        let live = view.as_mut().zip(new_flows.as_deref());
        let live = live.map(|(operator, new_flows)| Live { operator, new_flows });
        let observers = Observers { frames, live };
        let run =
            || ready.run_observed((job.balancer, job.seed), observers, &mut tell, self.stop.flag()).map_err(ended);
        let span = info_span!("run", run = title).entered();
        // A balancer that panics ends its own run only.
        let caught = catch_unwind(AssertUnwindSafe(run));
        let ended = caught.unwrap_or_else(|_| Err(Failure::failed("it panicked, see above")));
        drop((span, view));
        held.iter().for_each(|news| show.news(&label, news));
        show.end(&title, &ended);
        campaign.metrics.on_end(&title, ended.as_ref().ok().map(RunResult::summary).as_ref());
        watching.into_iter().for_each(Watching::close);
        match ended {
            Ok(result) => campaign.write(job, &self.out.join(folder), key, &result)?,
            Err(failure) if failure.is_failed() => return Ok(Some(failure.to_string())),
            Err(failure) => return Err(failure),
        }
        show.count();
        Ok(None)
    }
}

/// Does the `work`, and ends the process when the user wants to stop: runs that are written stay.
fn watched<'a, T>(stop: &Stop, kept: &(dyn Fn() -> Kept<'a> + Sync), work: impl FnOnce() -> T) -> T {
    const EVERY: Duration = Duration::from_millis(50);
    let (end, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while let Err(mpsc::RecvTimeoutError::Timeout) = ended.recv_timeout(EVERY) {
                if stop.is_set() {
                    Failure::interrupted_with(kept()).exit();
                }
            }
        });
        let done = work();
        drop(end);
        done
    })
}

/// What an interrupted campaign leaves; as text it says how to go on.
pub struct Kept<'a> {
    done: usize,
    all: usize,
    out: &'a Path,
    exclusive: bool,
}

impl fmt::Display for Kept<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { done, all, out, exclusive } = self;
        if *exclusive {
            write!(f, "no namespace, link or program was left behind; ")?;
        }
        write!(f, "{done} of {all} runs are done and stay in {}; to go on:\n  {}", out.display(), command_line(out))
    }
}

/// The command line of this process.
fn command() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The command line of this process as a shell takes it, with `out` as the folder of results.
fn command_line(out: &Path) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    let word = |text: &str| match text.chars().all(plain) && !text.is_empty() {
        true => text.to_string(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    };
    let words = command();
    let has_out = words.iter().any(|text| text == "--out" || text.starts_with("--out="));
    let out = (!has_out).then(|| ["--out".into(), out.display().to_string()]).into_iter().flatten();
    words.into_iter().chain(out).map(|text| word(&text)).collect::<Vec<_>>().join(" ")
}
