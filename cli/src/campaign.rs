//! Runs scenarios for all commands: shows progress, writes a results folder for each run, and prints a table at the end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use spray_core::path::BalancerKind;
use spray_experiments::engine::{self, EngineError};
use spray_experiments::results::{self, RunResult};
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::over_cores;

use crate::args::Engine;
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use crate::say::{note, say};
use crate::sim::args::Seeds;
use crate::stop::Stop;
use crate::{engines, folder};

/// A set of runs: every scenario with each of its balancers and each seed.
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

/// The end of a run: its result, or why it has none.
pub type Ended = Result<RunResult, Failure>;

impl Campaign {
    /// `scenario` on `engine`, with the given seeds or else its own.
    pub fn new(engine: Engine, scenario: Scenario, seeds: &Seeds) -> Self {
        Self {
            name: scenario.name.clone(),
            engine,
            scenarios: vec![scenario],
            seeds: seeds.list(),
            threads: seeds.threads(),
        }
    }

    /// Runs everything, writes the results, prints the table.
    ///
    /// # Errors
    /// 2 when the machine or the scenario does not allow it, 1 when a run failed or did not deliver what was sent, 130 after
    /// Ctrl-C. What the engine set up is removed in every case.
    pub fn run(&self, out: Option<&Path>) -> Outcome {
        let out = folder::location(out, &self.name);
        let done = self.results(&out)?;
        if done.iter().any(|run| run.sim.is_some()) {
            results::write_sweep(&out, &done).map_err(Failure::failed)?;
        }
        if self.seeds.len() > 1 {
            say!("{}", results::sweep_table(&done));
            speed(&done);
        } else {
            speed(&done);
            results::write_overview(&out, &done).map_err(Failure::failed)?;
            say!("{}", results::table(&done));
        }
        if let Some(table) = results::workload_table(&done) {
            say!("{table}");
        }
        say!("results   {}", out.display());
        if self.seeds.len() <= 1 {
            say!("overview  {}", out.join("report.html").display());
        }
        verdict(&done)
    }

    /// Runs everything, and writes each result as soon as its run ends, in a folder of its own under `out`.
    ///
    /// # Errors
    /// As [`Campaign::run`]; data that was not delivered is no error here.
    pub fn results(&self, out: &Path) -> Outcome<Vec<RunResult>> {
        self.each(out, |job, ended| {
            let result = ended?;
            let name = match self.seeds.len() {
                0 | 1 => result.folder(),
                _ => format!("{}-seed{}", job.balancer, job.seed),
            };
            results::write_run(&out.join(name), &result).map_err(Failure::failed)?;
            Ok(result)
        })
    }

    /// Runs everything, and calls `done` for each run as soon as it has ended. Makes the folder `out` before the first run. The
    /// answers of `done` are returned in the order of [`Campaign::jobs`]. An error of `done` ends the campaign.
    ///
    /// # Errors
    /// Those of `done`; 2 when the machine or a scenario does not allow it, 130 after Ctrl-C.
    pub fn each<T: Send>(&self, out: &Path, done: impl Fn(&Job, Ended) -> Outcome<T> + Sync) -> Outcome<Vec<T>> {
        self.scenarios
            .iter()
            .flat_map(|s| &s.workloads)
            .flat_map(|workload| workload.warnings())
            .for_each(|text| note!("spray: warning: {text}"));
        let jobs = self.jobs();
        if jobs.is_empty() {
            return Err(Failure::refused("there is nothing to run"));
        }
        // What the runs at the same time do not need goes to each of them.
        let engine = engines::engine(self.engine, (self.threads / jobs.len()).max(1))?;
        let show = Show::new(jobs.len(), engine.is_exclusive());
        let stop = if engine.is_exclusive() { Stop::on_signals()? } else { Stop::never() };
        let prepare = |scenario| engine.prepare(scenario, &mut |news| show.news("", &news)).map_err(ended);
        let prepared = self.scenarios.iter().map(prepare).collect::<Outcome<Vec<_>>>()?;
        folder::make(out)?;
        let threads = if engine.is_exclusive() { 1 } else { self.threads };
        over_cores(jobs.len(), threads, |number| {
            let job = &jobs[number];
            let label = show.begin(number, &self.title(job));
            let run = || {
                let news = &mut |news| show.news(&label, &news);
                prepared[job.scenario].run(job.balancer, job.seed, news, stop.flag()).map_err(ended)
            };
            // A balancer that panics is a result like another, to whoever is writing one.
            let caught = catch_unwind(AssertUnwindSafe(run));
            let ended = caught.unwrap_or_else(|_| Err(Failure::failed("it panicked, see above")));
            if let Err(failure) = &ended
                && failure.is_interrupted()
            {
                return Err(Failure::interrupted());
            }
            show.end(&self.title(job), &ended);
            done(job, ended)
        })
    }

    /// All runs: scenario by scenario, balancer by balancer, seed by seed.
    pub fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (scenario, given) in self.scenarios.iter().enumerate() {
            let own = [given.seed];
            let seeds = if self.seeds.is_empty() { own.as_slice() } else { &self.seeds };
            let balancers = &given.transport.balancer;
            let pairs = balancers.iter().flat_map(|balancer| seeds.iter().map(|seed| (*balancer, *seed)));
            jobs.extend(pairs.map(|(balancer, seed)| Job { scenario, balancer, seed }));
        }
        jobs
    }

    /// `silent uplink, reps`; the seed in place of the condition where the user chose seeds for one scenario.
    fn title(&self, job: &Job) -> String {
        let Job { scenario, balancer, seed } = job;
        match self.scenarios.as_slice() {
            [_] if !self.seeds.is_empty() => format!("{balancer}, seed {seed}"),
            scenarios => format!("{}, {balancer}", scenarios[*scenario].condition),
        }
    }
}

/// The command's failure for an engine's error.
fn ended(error: EngineError) -> Failure {
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
pub fn verdict(done: &[RunResult]) -> Outcome {
    match done.iter().filter(|run| !run.summary().is_complete()).count() {
        0 => Ok(()),
        bad => Err(Failure::failed(format!("in {bad} of {} runs not everything arrived as it was sent", done.len()))),
    }
}

/// Shows progress. If runs go one at a time, it shows how far each is; otherwise it shows each that has ended.
struct Show {
    progress: Mutex<Progress>,
    ended: AtomicUsize,
    jobs: usize,
    live: bool,
}

impl Show {
    fn new(jobs: usize, live: bool) -> Self {
        Self { progress: Mutex::new(Progress::new()), ended: AtomicUsize::new(0), jobs, live }
    }

    /// A run begins; returns what it is called from now on, as in `[3/9] silent uplink, reps`.
    fn begin(&self, number: usize, title: &str) -> String {
        let label = format!("[{}/{}] {title}", number + 1, self.jobs);
        if self.live {
            self.with(|progress| progress.phase(&label));
        }
        label
    }

    /// An engine reports progress of the run called `label`, or progress that belongs to no run.
    fn news(&self, label: &str, news: &engine::Progress) {
        use engine::Progress as News;
        let colon = if label.is_empty() { "" } else { ": " };
        self.with(|progress| match news {
            News::Phase(text) => progress.phase(&format!("{label}{colon}{text}")),
            News::Remark(text) => {
                progress.clear();
                note!("spray: {label}{colon}{text}");
            }
            News::Running { time_us, delivered_bytes, total_bytes, flows_completed, flows_total } => {
                let percent = *delivered_bytes as f64 * 100.0 / (*total_bytes).max(1) as f64;
                progress.update(|| {
                    format!("{label}: {percent:.0} % delivered, {flows_completed}/{flows_total} flows, {time_us:.0} us")
                });
            }
            _ => {}
        });
    }

    /// A run has ended.
    fn end(&self, title: &str, ended: &Ended) {
        let count = self.ended.fetch_add(1, Ordering::Relaxed) + 1;
        if self.live {
            return;
        }
        let told = ended.as_ref().map_or_else(ToString::to_string, |run| format!("{:.1} s", run.wall_s));
        self.with(|progress| progress.update(|| format!("[{count}/{}] {title}: {told}", self.jobs)));
    }

    fn with(&self, tell: impl FnOnce(&mut Progress)) {
        tell(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Prints how fast the simulator was, if it ran: seconds of each run, on however many threads.
fn speed(done: &[RunResult]) {
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

    fn campaign() -> Campaign {
        let parse = |condition: &str| {
            let text = format!(
                "name = \"test\"\ncondition = \"{condition}\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\n\
                 hosts_per_leaf = 2\n[workload]\nkind = \"tornado\"\nbytes = 1\n[transport]\nbalancer = [\"ecmp\", \"reps\"]\n"
            );
            Scenario::parse(Path::new("test.toml"), &text).unwrap()
        };
        let seeds = Seeds { seed: None, seeds: None, threads: None };
        let scenarios = ["healthy", "slow"].map(parse).to_vec();
        Campaign { scenarios, ..Campaign::new(Engine::Sim, parse("healthy"), &seeds) }
    }

    #[test]
    fn runs_go_condition_by_condition_with_the_scenarios_own_balancers_or_those_asked_for() {
        let mut campaign = campaign();
        let titles: Vec<String> = campaign.jobs().iter().map(|job| campaign.title(job)).collect();
        assert_eq!(titles, ["healthy, ecmp", "healthy, reps", "slow, ecmp", "slow, reps"]);
        campaign.scenarios.iter_mut().for_each(|scenario| scenario.transport.balancer = vec![BalancerKind::Ops]);
        campaign.seeds = vec![42];
        let jobs = campaign.jobs();
        assert!(jobs.len() == 2 && jobs.iter().all(|job| job.balancer == BalancerKind::Ops && job.seed == 42));
    }

    #[test]
    fn every_run_ends_once_and_answers_are_in_order() {
        let out = std::env::temp_dir().join(format!("spray-campaign-{}", std::process::id()));
        let campaign = Campaign { seeds: vec![1, 2, 3], threads: 2, ..campaign() };
        let done = campaign.each(&out, |job, ended| Ok((*job, ended.is_ok()))).unwrap();
        assert!(done.iter().all(|(_, ok)| *ok));
        assert_eq!(done.into_iter().map(|(job, _)| job).collect::<Vec<_>>(), campaign.jobs());
        let _ = std::fs::remove_dir_all(out);
    }
}
