//! The runs of a campaign: their folders, their keys, and which of them are done.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use sha2::Digest;
use spray_core::path::BalancerKind;
use spray_experiments::results::{self, FinishedRun, PART, Summary};
use spray_experiments::scenario::{Axis, MAX_RUNS, Scenario};
use spray_tools::failure::{Failure, Outcome};

use super::{COMMIT, Campaign, VERSION};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Index of its scenario.
    pub scenario: usize,
    pub balancer: BalancerKind,
    pub seed: u64,
}

#[derive(Debug)]
pub struct Planned {
    pub job: Job,
    pub folder: String,
    /// Hash of everything that determines its results, see [`key`](results::Record::key).
    pub(super) key: String,
    /// Hash of what all runs of its table share, see [`table_key`](results::Record::table_key).
    pub(super) table_key: String,
    /// Whether its folder exists, with these results.
    pub is_done: bool,
}

impl Campaign {
    pub fn plan(&self, out: &Path) -> Outcome<Vec<Planned>> {
        let jobs = self.jobs();
        if jobs.is_empty() || jobs.len() > MAX_RUNS {
            return Err(Failure::refused(format!("there are {} runs; allowed: 1 to {MAX_RUNS}", jobs.len())));
        }
        self.check_neighbours(out)?;
        let (mut names, mut files) = (HashSet::new(), HashMap::new());
        let table_keys = self.scenarios.iter().map(|scenario| self.table_key(scenario, &mut files));
        let table_keys: Vec<String> = table_keys.collect::<Outcome<_>>()?;
        let plan = jobs.into_iter().map(|job| {
            let folder = self.folder(&job, &mut names);
            let key = self.key(&job, &mut files)?;
            let is_done = is_done(&out.join(&folder), &key)?;
            Ok(Planned { job, folder, key, table_key: table_keys[job.scenario].clone(), is_done })
        });
        let plan = plan.collect::<Outcome<Vec<Planned>>>()?;
        let own: HashSet<&str> = plan.iter().map(|planned| planned.folder.as_str()).collect();
        let others = runs_in(out).into_iter().filter(|name| !own.contains(name.as_str()));
        for name in others {
            let record = FinishedRun::record(&out.join(&name)).unwrap_or_default();
            if !table_keys.contains(&record.table_key) {
                return Err(Failure::refused(format!(
                    "{} has results of other settings, see its scenario.toml, and cannot be in the same table; \
                    allowed: another folder with --out",
                    out.join(name).display()
                )));
            }
        }
        Ok(plan)
    }

    fn table_key(&self, scenario: &Scenario, files: &mut HashMap<PathBuf, String>) -> Outcome<String> {
        let hash = scenario.settings.hash_of_table(files).map_err(unreadable)?;
        Ok(format!("{:x}", hash.chain_update(self.program()).finalize()))
    }

    fn program(&self) -> String {
        [self.engine.name(), VERSION, COMMIT].join("\0")
    }

    /// Refuses a folder with another scenario or other axes, which do not fit one table.
    fn check_neighbours(&self, out: &Path) -> Outcome {
        let summary = |run: String| std::fs::read(out.join(run).join("summary.json")).ok();
        let Some(summary) = runs_in(out).into_iter().find_map(summary) else {
            return Ok(());
        };
        let summary: Summary = serde_json::from_slice(&summary).unwrap_or_default();
        let fits = |Scenario { name, settings, .. }: &Scenario| {
            let paths: HashSet<&String> = settings.axes.iter().map(|axis| &axis.path).collect();
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

    fn folder(&self, job: &Job, names: &mut HashSet<String>) -> String {
        let Scenario { condition, settings, network, .. } = &self.scenarios[job.scenario];
        let name = results::folder_name(condition, &settings.axes, &network.switching, job.balancer.name(), job.seed);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| names.insert(name.clone()));
        free.unwrap_or(name)
    }

    /// Returns a unique title, as in `silent uplink, evs 64, reps, seed 3`.
    pub(super) fn title(&self, job: &Job) -> String {
        let Scenario { condition, settings, seeds, transport, .. } = &self.scenarios[job.scenario];
        let axis = |axis: &Axis| format!("{} {}", axis.path.rsplit('.').next().unwrap_or(&axis.path), axis.value);
        let others = self.scenarios.iter().any(|other| other.condition != *condition);
        let several = if self.seeds.is_empty() { seeds } else { &self.seeds }.len() > 1;
        let alone = self.scenarios.len() == 1 && !several && transport.balancer.len() == 1;
        let first = (others || alone).then(|| condition.clone());
        let axes = settings.axes.iter().map(axis);
        let seed = several.then(|| format!("seed {}", job.seed));
        first.into_iter().chain(axes).chain([job.balancer.to_string()]).chain(seed).collect::<Vec<_>>().join(", ")
    }

    fn key(&self, job: &Job, files: &mut HashMap<PathBuf, String>) -> Outcome<String> {
        let settings = &self.scenarios[job.scenario].settings;
        let hash = settings.hash(job.balancer, job.seed, files).map_err(unreadable)?;
        Ok(format!("{:x}", hash.chain_update(self.program()).finalize()))
    }

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
}

fn unreadable(error: std::io::Error) -> Failure {
    Failure::refused(format!("a file of the scenario cannot be read: {error}"))
}

/// Returns the folders in `out` with the results of a run, in ascending order.
pub(super) fn runs_in(out: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(out).into_iter().flatten().flatten();
    let is_run = |path: &PathBuf| path.join("run.json").is_file();
    let runs = entries.map(|entry| entry.path()).filter(|path| is_run(path) && !path.to_string_lossy().ends_with(PART));
    let mut names: Vec<String> =
        runs.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

/// Returns whether the folder has the results with this key; refuses other content.
fn is_done(dir: &Path, key: &str) -> Outcome<bool> {
    if !dir.exists() {
        return Ok(false);
    }
    let why = match FinishedRun::record(dir) {
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
