//! Runs scenarios for all commands: shows progress, writes a results folder for each run, and prints a table at the end.

mod show;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use sha2::Digest;
use spray_core::path::BalancerKind;
use spray_experiments::engine::{EngineError, Onlookers, Prepared, Progress};
use spray_experiments::live::Live;
use spray_experiments::results::{self, Finished, Machine, Program, Record, RunResult, Summary};
use spray_experiments::scenario::{Axis, MAX_RUNS, Scenario};
use spray_experiments::sim::over_cores;
use tracing::info_span;

use self::show::Show;
use crate::args::{self, Engine, Publish};
use crate::captures::Watching;
use crate::failure::{Failure, Outcome};
use crate::live::{self, View};
use crate::metrics::{self, Metrics};
use crate::say::{self, info, note, say};
use crate::sim::args::Seeds;
use crate::stop::Stop;
use crate::{engines, folder};

/// A set of runs: every scenario with each of its balancers and each seed. A run that is done is not run again.
pub struct Campaign {
    /// Names the results folder.
    pub name: String,
    /// The engine.
    pub engine: Engine,
    /// The scenarios. Neighbours in the list with the same network share what the engine sets up.
    pub scenarios: Vec<Scenario>,
    /// The seeds; if there are none, each scenario's own.
    pub seeds: Vec<u64>,
    /// Most runs at the same time. An exclusive engine runs one at a time.
    pub threads: usize,
    /// What is said of the runs to who watches.
    pub metrics: metrics::campaign::Campaign,
    /// What to capture of each run, if anything.
    pub captures: Option<args::Captures>,
    /// Whether the run is viewed in the terminal, and steered there. Then it is the only one.
    pub live: bool,
}

/// One run of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Index of its scenario.
    pub scenario: usize,
    /// Its balancer.
    pub balancer: BalancerKind,
    /// Root of its random choices.
    pub seed: u64,
}

/// A run of the plan, done or not.
#[derive(Debug)]
pub struct Planned {
    /// What is run.
    pub job: Job,
    /// The name of its folder.
    pub folder: String,
    /// What its results follow from, see [`Record::key`].
    key: String,
    /// Whether its folder is there, with these results.
    pub is_done: bool,
}

/// A run of a campaign that has ended: what came of it, or why nothing did.
pub type Ended = (Job, Result<Finished, String>);

impl Campaign {
    /// The scenarios on `engine`, with the given seeds or else their own.
    pub fn new(engine: Engine, scenarios: Vec<Scenario>, seeds: &Seeds) -> Self {
        let name = scenarios.first().map(|scenario| scenario.name.clone()).unwrap_or_default();
        let metrics = metrics::campaign::Campaign::default();
        Self {
            name,
            engine,
            scenarios,
            seeds: seeds.list(),
            threads: seeds.threads(),
            metrics,
            captures: None,
            live: false,
        }
    }

    /// Serves metrics while it runs, if that is asked for.
    ///
    /// # Errors
    /// 2 when the port cannot be had.
    pub fn publishing(self, publish: &Publish) -> Outcome<Self> {
        let metrics = metrics::campaign::Campaign::new(Metrics::open(publish.metrics)?);
        Ok(Self { metrics, ..self })
    }

    /// Runs everything that is not done, writes the results, prints the table.
    ///
    /// # Errors
    /// 2 when the machine or the scenario does not allow it, or `out` has other results; 1 when a run failed or did not deliver what was
    /// sent; 130 after Ctrl-C. What the engine set up is removed in every case.
    pub fn run(&self, out: Option<&Path>) -> Outcome {
        let out = folder::location(out, &self.name);
        let ended = self.results(&out)?;
        let done: Vec<Finished> = ended.iter().filter_map(|(_, run)| run.clone().ok()).collect();
        let summaries: Vec<Summary> = done.iter().map(|run| run.summary.clone()).collect();
        results::write_sweep(&out, &summaries).map_err(Failure::failed)?;
        results::write_overview(&out, &done).map_err(Failure::failed)?;
        let is_sweep = summaries.windows(2).any(|pair| pair[0].seed != pair[1].seed || pair[0].axes != pair[1].axes);
        speed(&summaries);
        say!("{}", if is_sweep { results::sweep_table(&summaries) } else { results::table(&summaries) });
        if let Some(table) = results::workload_table(&summaries) {
            say!("{table}");
        }
        let (overview, failures) = (out.join("report.html"), self.failures(&ended));
        say!("results   {}", out.display());
        say!("overview  {}", overview.display());
        report(&out, Some(&overview), &summaries, &failures)?;
        failures.iter().for_each(|Failed { run, why }| note!("spray: {run} failed: {why}"));
        match failures.len() {
            0 => verdict(&summaries),
            failed => Err(Failure::failed(format!(
                "{failed} of {} runs failed; the same command tries them again",
                ended.len()
            ))),
        }
    }

    /// The runs that failed, and why.
    pub fn failures(&self, ended: &[Ended]) -> Vec<Failed> {
        let failed = |(job, run): &Ended| Some(Failed { run: self.title(job), why: run.as_ref().err()?.clone() });
        ended.iter().filter_map(failed).collect()
    }

    /// Runs everything that is not done, and writes each result as soon as its run ends, in a folder of its own under `out`. The results
    /// are in the order of the plan.
    ///
    /// # Errors
    /// As [`Campaign::run`]; data that was not delivered is no error here, nor a run that failed.
    pub fn results(&self, out: &Path) -> Outcome<Vec<Ended>> {
        let plan = self.plan(out)?;
        let mut failed = self.work(&plan, out)?;
        let end = |(number, planned): (usize, &Planned)| {
            let run = match failed.remove(&number) {
                Some(why) => Err(why),
                None => Finished::load(out, &planned.folder),
            };
            (planned.job, run)
        };
        Ok(plan.iter().enumerate().map(end).collect())
    }

    /// Runs every `of`-th run of the plan from number `part` on, from 1, and prints how many are done. The same command without a part
    /// collects the results of all.
    ///
    /// # Errors
    /// As [`Campaign::run`].
    pub fn run_part(&self, out: &Path, (part, of): (usize, usize)) -> Outcome {
        let plan = self.plan(out)?;
        let total = plan.len();
        let mine: Vec<Planned> = plan.into_iter().skip(part - 1).step_by(of).collect();
        let failed = self.work(&mine, out)?;
        let done = mine.len() - failed.len();
        say!("part {part} of {of}: {done} of its {} runs are done, of {total} in all", mine.len());
        say::object(
            &json!({ "results": out, "part": part, "of": of, "done": done, "runs": mine.len(), "all": total }),
        )?;
        match failed.values().next() {
            None => Ok(()),
            Some(why) => Err(Failure::failed(format!("{} runs failed; one of them: {why}", failed.len()))),
        }
    }

    /// All runs, and which of them are done in `out`.
    ///
    /// # Errors
    /// 2 when there are too many or none, a file of a scenario cannot be read, or `out` has other results where one is to go.
    pub fn plan(&self, out: &Path) -> Outcome<Vec<Planned>> {
        let jobs = self.jobs();
        if jobs.is_empty() || jobs.len() > MAX_RUNS {
            return Err(Failure::refused(format!("there are {} runs; allowed: 1 to {MAX_RUNS}", jobs.len())));
        }
        self.check_neighbours(out)?;
        let (mut names, mut files) = (HashSet::new(), HashMap::new());
        let plan = jobs.into_iter().map(|job| {
            let folder = self.folder(&job, &mut names);
            let key = self.key(&job, &mut files)?;
            let is_done = is_done(&out.join(&folder), &key)?;
            Ok(Planned { job, folder, key, is_done })
        });
        plan.collect()
    }

    /// Refuses a folder with runs of another scenario or with other axes: its tables would not fit together.
    fn check_neighbours(&self, out: &Path) -> Outcome {
        let runs = std::fs::read_dir(out).into_iter().flatten().flatten().map(|entry| entry.path());
        let summary = |run: PathBuf| std::fs::read(run.join("summary.json")).ok();
        let Some(summary) = runs.filter(|path| path.join("run.json").is_file()).find_map(summary) else {
            return Ok(());
        };
        let summary: Summary = serde_json::from_slice(&summary).unwrap_or_default();
        let fits = |Scenario { name, written, .. }: &Scenario| {
            let paths: HashSet<&String> = written.axes.iter().map(|axis| &axis.path).collect();
            *name == summary.scenario && paths == summary.axes.keys().collect()
        };
        if self.scenarios.iter().any(fits) {
            return Ok(());
        }
        let axes: Vec<&str> = summary.axes.keys().map(String::as_str).collect();
        let axes = if axes.is_empty() { "no axes".into() } else { format!("the axes {}", axes.join(", ")) };
        let (out, scenario) = (out.display(), &summary.scenario);
        Err(Failure::refused(format!(
            "{out} has results of the scenario `{scenario}` with {axes}; allowed: another folder with --out"
        )))
    }

    /// The name of a run's folder, which no other run has.
    fn folder(&self, job: &Job, names: &mut HashSet<String>) -> String {
        let Scenario { condition, written, .. } = &self.scenarios[job.scenario];
        let name = results::folder_name(condition, &written.axes, job.balancer.name(), job.seed);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| names.insert(name.clone()));
        free.unwrap_or(name)
    }

    fn key(&self, job: &Job, files: &mut HashMap<PathBuf, String>) -> Outcome<String> {
        let written = &self.scenarios[job.scenario].written;
        let hash = written.hash(job.balancer, job.seed, files);
        let hash = hash.map_err(|error| Failure::refused(format!("a file of the scenario cannot be read: {error}")))?;
        let parts = [self.engine.name(), VERSION, COMMIT].join("\0");
        // What somebody has steered is not what the scenario gives.
        let live = if self.live { "\0live" } else { "" };
        Ok(format!("{:x}", hash.chain_update(parts).chain_update(live).finalize()))
    }

    /// Runs what is not done of `plan`. Returns why runs failed, by their place in the plan.
    fn work(&self, plan: &[Planned], out: &Path) -> Outcome<HashMap<usize, String>> {
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
        let mut warnings = HashSet::new();
        let all =
            self.scenarios.iter().flat_map(|scenario| &scenario.workloads).flat_map(|workload| workload.warnings());
        all.filter(|text| warnings.insert(*text)).for_each(|text| note!("spray: warning: {text}"));
        // What the runs at the same time do not need goes to each of them.
        let engine = engines::engine(self.engine, (self.threads / open.len()).max(1))?;
        let exclusive = engine.is_exclusive();
        let show = Show::new(plan.len(), done, exclusive);
        let stop = Stop::on_signals()?;
        self.metrics.begin(plan.len(), done)?;
        let prepare = |number: usize| {
            let scenario = &self.scenarios[number];
            let _span = info_span!("prepare", scenario = scenario.name).entered();
            engine.prepare(scenario, &mut |news| show.news("", &news)).map_err(ended)
        };
        // One engine says here what the machine does not allow; the other has nothing to say, and prepares one run after the other, to
        // save memory.
        let prepared =
            if exclusive { (0..self.scenarios.len()).map(prepare).collect::<Outcome<Vec<_>>>()? } else { Vec::new() };
        folder::make(out)?;
        let kept = || Kept { done: show.done(), all: plan.len(), out, exclusive };
        let failed = Mutex::new(HashMap::new());
        let run = |number: usize| {
            let Planned { job, folder, key, .. } = &plan[number];
            let label = show.begin(number, &self.title(job));
            let own = if exclusive { None } else { Some(prepare(job.scenario)?) };
            let ready: &dyn Prepared = own.as_deref().unwrap_or_else(|| &*prepared[job.scenario]);
            let scenario = &self.scenarios[job.scenario];
            let watching = self.captures.as_ref().map_or(Ok(None), |captures| captures.begin(folder, scenario))?;
            let watch = watching.as_ref().map(|watching| &watching.watch);
            let title = self.title(job);
            let about = (self.engine.name(), !exclusive);
            let mut view = self.live.then(|| View::new(scenario, about, (job.balancer, job.seed), &stop));
            let new_flows = view.as_ref().map(View::new_flows);
            let held = Mutex::new(Vec::new());
            let mut tell = |news| {
                self.metrics.on_progress(&title, &news);
                match news {
                    Progress::Running { .. } if self.live => {}
                    Progress::Remark(_) if self.live => held.lock().unwrap_or_else(PoisonError::into_inner).push(news),
                    news => show.news(&label, &news),
                }
            };
            let live = view.as_mut().zip(new_flows.as_deref());
            let live = live.map(|(operator, new_flows)| Live { operator, new_flows });
            let onlookers = Onlookers { frames: watch, live };
            let run = || ready.run_before((job.balancer, job.seed), onlookers, &mut tell, stop.flag()).map_err(ended);
            let span = info_span!("run", run = title).entered();
            // A balancer that panics ends its own run only.
            let caught = catch_unwind(AssertUnwindSafe(run));
            let ended = caught.unwrap_or_else(|_| Err(Failure::failed("it panicked, see above")));
            drop((span, view));
            held.into_inner().unwrap_or_else(PoisonError::into_inner).iter().for_each(|news| show.news(&label, news));
            show.end(&title, &ended);
            self.metrics.on_end(&title, ended.as_ref().ok().map(RunResult::summary).as_ref());
            watching.into_iter().for_each(Watching::close);
            match ended {
                Ok(result) => self.write(job, &out.join(folder), key, &result)?,
                Err(failure) if failure.is_failed() => {
                    failed.lock().unwrap_or_else(PoisonError::into_inner).insert(number, failure.to_string());
                    return Ok(());
                }
                Err(failure) => return Err(failure),
            }
            show.count();
            Ok(())
        };
        let threads = if exclusive { 1 } else { self.threads };
        let work = || over_cores(open.len(), threads, |index| run(open[index]));
        let outcome = if exclusive { work() } else { watched(&stop, &kept, work) };
        match outcome {
            Err(failure) if failure.is_interrupted() => Err(Failure::interrupted_with(kept())),
            outcome => outcome.map(|_| failed.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Makes the folders of captures.
    ///
    /// # Errors
    /// 2 when a run is done and so leaves no capture, or a capture is there already.
    fn check_captures(&self, plan: &[Planned], out: &Path) -> Outcome {
        let files = |captures: &args::Captures| {
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
        files.iter().try_for_each(|(_, file)| args::Captures::prepare(file))
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
        results::write_run(dir, result, &scenario, &record).map_err(Failure::failed)
    }

    /// All runs: scenario by scenario, balancer by balancer, seed by seed.
    pub fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (scenario, given) in self.scenarios.iter().enumerate() {
            let seeds = if self.seeds.is_empty() { &given.seeds } else { &self.seeds };
            let balancers = &given.transport.balancer;
            let pairs = balancers.iter().flat_map(|balancer| seeds.iter().map(|seed| (*balancer, *seed)));
            jobs.extend(pairs.map(|(balancer, seed)| Job { scenario, balancer, seed }));
        }
        jobs
    }

    /// `silent uplink, evs 64, reps, seed 3`: what tells the run from the others.
    fn title(&self, job: &Job) -> String {
        let Scenario { condition, written, seeds, transport, .. } = &self.scenarios[job.scenario];
        let axis = |axis: &Axis| format!("{} {}", axis.path.rsplit('.').next().unwrap_or(&axis.path), axis.value);
        let others = self.scenarios.iter().any(|other| other.condition != *condition);
        let several = if self.seeds.is_empty() { seeds } else { &self.seeds }.len() > 1;
        let alone = self.scenarios.len() == 1 && !several && transport.balancer.len() == 1;
        let first = (others || alone).then(|| condition.clone());
        let axes = written.axes.iter().map(axis);
        let seed = several.then(|| format!("seed {}", job.seed));
        first.into_iter().chain(axes).chain([job.balancer.to_string()]).chain(seed).collect::<Vec<_>>().join(", ")
    }
}

/// A run that failed.
#[derive(Clone, Debug, Serialize)]
pub struct Failed {
    /// What tells it from the others.
    pub run: String,
    /// What went wrong.
    pub why: String,
}

/// Says as JSON where the results are, and all figures of the runs.
///
/// # Errors
/// None that a user could meet.
pub fn report(results: &Path, overview: Option<&Path>, runs: &[Summary], failed: &[Failed]) -> Outcome {
    say::object(&json!({ "results": results, "overview": overview, "runs": runs, "failed": failed }))
}

/// The version of spray.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// See [`Program::commit`]; the build script asks git.
pub const COMMIT: &str = env!("SPRAY_COMMIT");

/// Whether the folder has the results of the run with this key.
///
/// # Errors
/// 2 when it has anything else: nothing is overwritten.
fn is_done(dir: &Path, key: &str) -> Outcome<bool> {
    if !dir.exists() {
        return Ok(false);
    }
    let why = match Finished::record(dir) {
        Some(record) if record.key == key => return Ok(true),
        Some(record) if (record.program.version.as_str(), record.program.commit.as_str()) != (VERSION, COMMIT) => {
            format!("the results of another spray ({} {})", record.program.version, record.program.commit)
        }
        Some(_) => "the results of other settings, see its scenario.toml".into(),
        None => "something else than the results of a run".into(),
    };
    let dir = dir.display();
    Err(Failure::refused(format!(
        "{dir} has {why}, which would be overwritten; allowed: another folder with --out, or remove this one"
    )))
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

/// The command's failure for an engine's error.
pub fn ended(error: EngineError) -> Failure {
    match error {
        EngineError::Stopped => Failure::interrupted(),
        EngineError::Refused(message) => Failure::refused(message),
        EngineError::Failed(message) => Failure::failed(message),
    }
}

/// Checks that everything was delivered.
///
/// # Errors
/// 1 when it was not.
pub fn verdict(done: &[Summary]) -> Outcome {
    match done.iter().filter(|run| !run.is_complete()).count() {
        0 => Ok(()),
        bad => Err(Failure::failed(format!("in {bad} of {} runs not everything arrived as it was sent", done.len()))),
    }
}

/// Prints how fast the simulator was, if it ran: seconds of each run, on however many threads.
fn speed(done: &[Summary]) {
    let figures = || done.iter().filter_map(|run| Some((run.sim?, run.wall_s)));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn campaign(balancers: &str, seeds: &str) -> Campaign {
        let parse = |condition: &str| {
            let text = format!(
                "name = \"test\"\ncondition = \"{condition}\"\nseeds = {seeds}\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\n\
                 spines = 2\nhosts_per_leaf = 2\n[workload]\nkind = \"tornado\"\nbytes = 1\n[transport]\nbalancer = {balancers}\n"
            );
            Scenario::parse(Path::new("test.toml"), &text).unwrap()
        };
        let seeds = Seeds { seed: None, seeds: Vec::new(), threads: Some(2) };
        Campaign::new(Engine::Sim, ["healthy", "slow"].map(parse).to_vec(), &seeds)
    }

    fn folders(plan: &[Planned]) -> Vec<&str> {
        plan.iter().map(|planned| planned.folder.as_str()).collect()
    }

    #[test]
    fn runs_go_condition_by_condition_with_the_scenarios_own_balancers_and_seeds_or_those_asked_for() {
        let mut campaign = campaign("[\"ecmp\", \"reps\"]", "[4]");
        let titles: Vec<String> = campaign.jobs().iter().map(|job| campaign.title(job)).collect();
        assert_eq!(titles, ["healthy, ecmp", "healthy, reps", "slow, ecmp", "slow, reps"]);
        assert!(campaign.jobs().iter().all(|job| job.seed == 4));
        campaign.scenarios.iter_mut().for_each(|scenario| scenario.transport.balancer = vec![BalancerKind::Ops]);
        campaign.seeds = vec![42, 43];
        let titles: Vec<String> = campaign.jobs().iter().map(|job| campaign.title(job)).collect();
        assert_eq!(
            titles,
            ["healthy, ops, seed 42", "healthy, ops, seed 43", "slow, ops, seed 42", "slow, ops, seed 43"]
        );
    }

    #[test]
    fn what_is_done_is_not_run_again_and_nothing_is_overwritten() {
        let folder = spray_test_support::Folder::new();
        let out = folder.path();
        let campaign = campaign("\"ops\"", "\"1..2\"");
        campaign.run_part(out, (2, 3)).unwrap();
        let plan = campaign.plan(out).unwrap();
        assert_eq!(folders(&plan), ["healthy-ops-seed1", "healthy-ops-seed2", "slow-ops-seed1", "slow-ops-seed2"]);
        assert_eq!(plan.iter().map(|planned| planned.is_done).collect::<Vec<_>>(), [false, true, false, false]);
        let written = |name: &str| std::fs::metadata(out.join(name).join("run.json")).unwrap().modified().unwrap();
        let before = written("healthy-ops-seed2");
        let ended = campaign.results(out).unwrap();
        assert_eq!(ended.iter().map(|(job, _)| *job).collect::<Vec<_>>(), campaign.jobs());
        assert!(ended.iter().all(|(job, run)| run.as_ref().unwrap().summary.seed == job.seed));
        assert_eq!(written("healthy-ops-seed2"), before);

        // Without a record nobody knows what it is.
        std::fs::remove_file(out.join("slow-ops-seed1/run.json")).unwrap();
        let refused = campaign.plan(out).unwrap_err().to_string();
        assert!(
            refused.contains("slow-ops-seed1 has something else than") && refused.contains("another folder with --out"),
            "{refused}"
        );
        std::fs::remove_dir_all(out.join("slow-ops-seed1")).unwrap();
        let text = std::fs::read_to_string(out.join("slow-ops-seed2/scenario.toml"))
            .unwrap()
            .replace("bytes = 1", "bytes = 2");
        let other = Scenario::parse(Path::new("test.toml"), &text).unwrap();
        let other = Campaign { scenarios: vec![other], seeds: vec![2], ..campaign };
        let refused = other.plan(out).unwrap_err().to_string();
        assert!(refused.contains("slow-ops-seed2 has the results of other settings"), "{refused}");
    }
}
