//! Several runs on one testbed: progress while they last, a results folder for each, a table at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use spray_core::path::BalancerKind;
use spray_experiments::results::{self, RunResult};
use spray_experiments::scenario::Scenario;
use spray_experiments::testbed::{self, RunError, RunOptions, Testbed};

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use crate::stop::Stop;

/// What is to be run.
pub struct Campaign {
    /// Names the results folder.
    pub name: String,
    /// Fabrics of the same shape; what happens on them may differ.
    pub scenarios: Vec<Scenario>,
}

/// One run of a campaign.
struct Run<'a> {
    scenario: &'a Scenario,
    balancer: BalancerKind,
    seed: u64,
    /// `[3/9] silent uplink, reps`
    label: String,
}

impl Campaign {
    /// Runs everything, writes the results, prints the table.
    ///
    /// # Errors
    /// 2 when the machine or the scenario does not allow it, 1 when a run failed or did not deliver what was sent, 130 after
    /// Ctrl-C. The testbed is removed in every case.
    pub fn run(&self, common: &args::Common) -> Outcome {
        let out = location(common.out.as_deref(), &self.name);
        let done = self.results(common.seed, &out)?;
        conclude(&out, &done)
    }

    /// Runs everything, and writes each result as soon as it is there, in a folder of its own under `out`.
    ///
    /// # Errors
    /// As [`Campaign::run`], but for what was not delivered.
    pub fn results(&self, seed: Option<u64>, out: &Path) -> Outcome<Vec<RunResult>> {
        let runs = self.runs(seed);
        let Some(first) = runs.first() else { return Err(Failure::refused("there is nothing to run")) };
        let mut bench = Bench::new(first.scenario)?;
        make(out)?;
        let mut done = Vec::with_capacity(runs.len());
        for run in &runs {
            let result = bench.run(run.scenario, run.balancer, run.seed, &run.label)?;
            results::write_run(&out.join(result.folder()), &result).map_err(Failure::failed)?;
            done.push(result);
        }
        Ok(done)
    }

    fn runs(&self, seed: Option<u64>) -> Vec<Run<'_>> {
        let of = |scenario: &'_ Scenario| scenario.transport.balancer.clone();
        let pairs: Vec<(&Scenario, BalancerKind)> =
            self.scenarios.iter().flat_map(|s| of(s).into_iter().map(move |balancer| (s, balancer))).collect();
        let label = |index: usize, (scenario, balancer): (&Scenario, BalancerKind)| {
            format!("[{}/{}] {}, {balancer}", index + 1, pairs.len(), scenario.condition)
        };
        let labels: Vec<String> = pairs.iter().enumerate().map(|(index, pair)| label(index, *pair)).collect();
        let runs = pairs.into_iter().zip(labels);
        runs.map(|((scenario, balancer), label)| Run { scenario, balancer, seed: seed.unwrap_or(scenario.seed), label })
            .collect()
    }
}

/// A testbed, and the user who is told how its runs go and may stop them.
pub struct Bench {
    /// `None` after a run that failed, which may have left it in any state.
    testbed: Option<Testbed>,
    stop: Stop,
    progress: Progress,
}

impl Bench {
    /// Sets a testbed up for `scenario`.
    ///
    /// # Errors
    /// 2 when the machine or the scenario does not allow it.
    pub fn new(scenario: &Scenario) -> Outcome<Self> {
        let mut bench = Self { testbed: None, stop: Stop::on_signals()?, progress: Progress::new() };
        bench.testbed = Some(bench.set_up(scenario)?);
        Ok(bench)
    }

    /// Runs `scenario`, of the shape that the testbed was set up for, as `label` in the progress.
    ///
    /// # Errors
    /// As [`Campaign::run`], but for what was not delivered. Another run may follow.
    pub fn run(&mut self, scenario: &Scenario, balancer: BalancerKind, seed: u64, label: &str) -> Outcome<RunResult> {
        let mut testbed = match self.testbed.take() {
            Some(testbed) => testbed,
            None => self.set_up(scenario)?,
        };
        self.progress.phase(label);
        let Self { stop, progress, .. } = self;
        let mut options =
            RunOptions { balancer, seed, progress: &mut |news| show(label, news, progress), stop: stop.flag() };
        let result = testbed.run(scenario, &mut options).map_err(ended)?;
        self.testbed = Some(testbed);
        Ok(result)
    }

    fn set_up(&mut self, scenario: &Scenario) -> Outcome<Testbed> {
        self.progress.phase("setting up namespaces, links and programs");
        Testbed::new(scenario).map_err(ended)
    }
}

fn show(label: &str, news: testbed::Progress, progress: &mut Progress) {
    use testbed::Progress as News;
    match news {
        News::SettingUp => progress.phase("setting up namespaces, links and programs"),
        News::Calibrating => progress.phase(&format!("{label}: measuring what this machine carries")),
        News::Dilation { dilation, frames_per_s: Some(rate) } => {
            let rate = rate / 1e3;
            progress.phase(&format!(
                "{label}: {rate:.0} thousand frames a second, so time runs {dilation:.0} times slower"
            ));
        }
        News::Running { time_us, delivered_bytes, total_bytes, flows_completed, flows_total } => {
            let percent = delivered_bytes as f64 * 100.0 / total_bytes.max(1) as f64;
            progress.update(|| {
                format!("{label}: {percent:.0} % delivered, {flows_completed}/{flows_total} flows, {time_us:.0} us")
            });
        }
        _ => {}
    }
}

/// How a run's error ends the command.
fn ended(error: RunError) -> Failure {
    match error {
        RunError::Stopped => Failure::interrupted(),
        error if error.is_usage() => Failure::refused(error),
        error => Failure::failed(error),
    }
}

/// Writes the overview, prints the table, and says where everything is.
///
/// # Errors
/// As [`verdict`]; 1 when the overview cannot be written.
pub fn conclude(out: &Path, done: &[RunResult]) -> Outcome {
    results::write_overview(out, done).map_err(Failure::failed)?;
    println!("{}", results::table(done));
    println!("results   {}", out.display());
    println!("overview  {}", out.join("report.html").display());
    verdict(done)
}

/// Whether everything arrived.
///
/// # Errors
/// 1 when something did not.
pub fn verdict(done: &[RunResult]) -> Outcome {
    match done.iter().filter(|run| !run.summary().is_complete()).count() {
        0 => Ok(()),
        bad => Err(Failure::failed(format!("in {bad} of {} runs not everything arrived as it was sent", done.len()))),
    }
}

/// Makes the results folder, before anything runs that would be lost without it.
///
/// # Errors
/// 2 when it cannot be made.
pub fn folder(asked: Option<&Path>, name: &str) -> Outcome<PathBuf> {
    let path = location(asked, name);
    make(&path)?;
    Ok(path)
}

/// Where results go: where the user wants them, otherwise a folder with the time in its name.
pub fn location(asked: Option<&Path>, name: &str) -> PathBuf {
    asked.map_or_else(|| Path::new("results").join(format!("{name}-{}", stamp())), Path::to_path_buf)
}

/// Makes the results folder.
///
/// # Errors
/// 2 when it cannot be made.
pub fn make(folder: &Path) -> Outcome {
    fs::create_dir_all(folder)
        .map_err(|error| Failure::refused(format!("cannot make the results folder {}: {error}", folder.display())))
}

/// The time as `20261120-081036`, UTC.
#[expect(clippy::disallowed_methods, reason = "a folder's name tells people when they ran it")]
fn stamp() -> String {
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    time.replace(['-', ':', 'Z'], "").replace('T', "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Overrides;

    #[test]
    fn a_stamp_is_date_and_time() {
        let stamp = stamp();
        let (date, time) = stamp.split_once('-').unwrap();
        assert_eq!((date.len(), time.len()), (8, 6));
        assert!((date.to_owned() + time).bytes().all(|digit| digit.is_ascii_digit()), "{stamp}");
    }

    #[test]
    fn runs_go_condition_by_condition_with_the_scenarios_own_balancers_or_those_asked_for() {
        let campaign = crate::demo::campaign(&Overrides::default()).unwrap();
        let labels: Vec<String> = campaign.runs(None).into_iter().map(|run| run.label).collect();
        assert_eq!(labels.len(), 9);
        assert_eq!(labels[0], "[1/9] healthy, ecmp");
        assert!(labels[8].starts_with("[9/9] ") && labels[8].ends_with(", reps"), "{}", labels[8]);
        let mut overrides = Overrides::default();
        overrides.push("transport.balancer", "ops", "--balancer ops".into());
        let campaign = crate::demo::campaign(&overrides).unwrap();
        let runs = campaign.runs(Some(42));
        assert!(runs.len() == 3 && runs.iter().all(|run| run.balancer == BalancerKind::Ops && run.seed == 42));
    }
}
