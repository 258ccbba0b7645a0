//! Runs a figure.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use spray_core::units::Gbps;
use toml::Value;

use super::file::{Condition, Figure, Scale, Series, Tune};
use super::measures::{Measures, OF_BOUND, of_run};
use super::models;
use super::plan::Settings;
use super::port_series::{PortSeries, port_series};
use crate::results::Spread;
use crate::sim::Simulation;

/// The results of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureResults {
    /// Scale of the runs.
    pub scale: Scale,
    /// By series and condition.
    pub cells: Vec<Vec<Cell>>,
    /// Ports over time, by series; may be empty.
    pub port_series: Vec<Vec<PortSeries>>,
}

/// The runs of a series under a condition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The best value of the tuned setting.
    pub tuned: Option<String>,
    /// The measures of the figure over the seeds. Times are lower bounds if flows never ended.
    pub values: BTreeMap<String, Spread>,
    /// Number of flows that never ended, over all runs.
    pub incomplete: u64,
}

impl Cell {
    /// Returns a measure's mean; infinity for a time if a flow never ended.
    pub fn value(&self, key: &str) -> Option<f64> {
        match self.incomplete > 0 && is_time(key) {
            true => Some(f64::INFINITY),
            false => self.values.get(key).map(|spread| spread.mean),
        }
    }

    fn of(figure: &Figure, runs: &[&FigureRun], tuned: Option<String>) -> Self {
        let spread = |key: &String| {
            let values: Vec<f64> = runs.iter().filter_map(|run| run.measures.get(key).copied()).collect();
            let lower_bound = is_time(key) && runs.iter().any(|run| run.incomplete > 0);
            (values.len() == runs.len()).then(|| (key.clone(), Spread { lower_bound, ..Spread::of(&values) }))
        };
        let values = figure.measure.iter().filter_map(|measure| spread(&measure.key)).collect();
        Self { tuned, values, incomplete: runs.iter().map(|run| run.incomplete).sum() }
    }
}

/// Whether a measure follows from completion times.
fn is_time(key: &str) -> bool {
    key.ends_with("_us") || key == "above_percent" || key.contains("slowdown") || key == "jct_ratio"
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureRun {
    measures: Measures,
    incomplete: u64,
    port_series: Vec<PortSeries>,
}

#[derive(Debug)]
struct Job {
    /// Condition and series, for display. Other cells may share the run.
    cell: String,
    settings: Settings,
    seed: u64,
    watch: bool,
}

/// Jobs of a cell: by tried value, one for each seed.
type Tried<'a> = Vec<(Option<&'a Value>, Vec<usize>)>;

/// All runs of a figure at a scale. Cells with the same settings share runs.
#[derive(Debug)]
pub struct Plan<'a> {
    figure: &'a Figure,
    scale: Scale,
    jobs: Vec<Job>,
    known: HashMap<String, usize>,
    /// By series and condition.
    cells: Vec<Vec<Tried<'a>>>,
}

impl<'a> Plan<'a> {
    /// Adds the jobs of a cell; `watch` is whether its ports are plotted.
    fn cell(&mut self, series: &'a Series, condition: &'a Condition, watch: bool) -> Tried<'a> {
        let values = series.tune.as_ref().map_or_else(|| vec![None], |tune| tune.values.iter().map(Some).collect());
        let seeds = self.figure.size(self.scale).seeds;
        let of = |value| {
            let settings = Settings::new(self.figure, self.scale, series, condition, value);
            let cell = format!("{}, {}", condition.name, series.name);
            let job = |seed| Job { cell: cell.clone(), settings: settings.clone(), seed, watch };
            (value, (1..=seeds).map(|seed| self.add(job(seed))).collect())
        };
        values.into_iter().map(of).collect()
    }

    fn add(&mut self, job: Job) -> usize {
        let next = self.jobs.len();
        let number = *self.known.entry(job.key()).or_insert(next);
        if number == next {
            self.jobs.push(job);
        }
        number
    }

    /// Returns the number of runs.
    pub fn runs(&self) -> usize {
        self.jobs.len()
    }

    /// Returns everything that determines a run, except the program. Figures may share runs.
    pub fn key(&self, run: usize) -> String {
        let Job { watch, .. } = self.jobs[run];
        format!("{}{}watch={watch}\n", self.figure.common_settings(), self.jobs[run].key())
    }

    /// Returns a run's title: `a slow uplink, REPS, seed 3`.
    pub fn title(&self, run: usize) -> String {
        let Job { cell, seed, .. } = &self.jobs[run];
        format!("{cell}, seed {seed}")
    }

    /// Executes a run.
    ///
    /// # Errors
    /// The reason why the simulator rejects the scenario.
    pub fn run(&self, run: usize) -> Result<FigureRun, String> {
        self.figure.make(&self.jobs[run])
    }

    /// Returns the cells of the figure from all of its runs, by number.
    ///
    /// # Panics
    /// When a run is missing.
    pub fn results(&self, runs: &[FigureRun]) -> FigureResults {
        let Self { figure, scale, cells, .. } = self;
        let row = |(row, series): (&Vec<Tried<'_>>, &Series)| {
            row.iter().map(|tried| figure.best(tried, series.tune.as_ref(), runs)).collect()
        };
        let port_series = |row: &Vec<Tried<'_>>| runs[row[0][0].1[0]].port_series.clone();
        FigureResults {
            scale: *scale,
            cells: cells.iter().zip(&figure.series).map(row).collect(),
            port_series: if figure.watch.is_some() { cells.iter().map(port_series).collect() } else { Vec::new() },
        }
    }
}

impl Job {
    fn key(&self) -> String {
        format!("{}seed={}", self.settings.key(), self.seed)
    }
}

impl Figure {
    /// Plans the runs.
    pub fn plan(&self, scale: Scale) -> Plan<'_> {
        let mut plan = Plan { figure: self, scale, jobs: Vec::new(), known: HashMap::new(), cells: Vec::new() };
        for series in &self.series {
            let conditions = self.conditions(scale).enumerate();
            let watches = |column| self.watch.is_some() && column == 0;
            let row = conditions.map(|(column, condition)| plan.cell(series, condition, watches(column))).collect();
            plan.cells.push(row);
        }
        plan
    }

    /// Describes the size of its runs, or why there are none.
    pub fn what_was_run(&self, results: Option<&FigureResults>) -> String {
        match (results, &self.not_shown) {
            (Some(FigureResults { scale, .. }), _) => format!("{} ({})", self.size(*scale).about, scale.name()),
            (None, Some(why)) => format!("not shown: {why}"),
            (None, None) => "not run".into(),
        }
    }

    fn needs_bound(&self) -> bool {
        self.at_bound_rate || self.measure.iter().any(|measure| OF_BOUND.contains(&&*measure.key))
    }

    /// Returns the settings of all its runs as text. A scenario's name changes no run.
    fn common_settings(&self) -> String {
        let Self { preset, model, watch, at_bound_rate, scenario, .. } = self;
        let mut scenario = scenario.clone();
        scenario.remove("name");
        format!("{preset:?} {model:?} {watch:?} {at_bound_rate} {}\n{scenario}", self.needs_bound())
    }

    fn make(&self, job: &Job) -> Result<FigureRun, String> {
        if let Some(model) = &self.model {
            let measures = models::run(model, &job.settings.parameters(self), job.seed)?;
            return Ok(FigureRun { measures, incomplete: 0, port_series: Vec::new() });
        }
        let mut scenario = job.settings.scenario(self)?;
        let mut bound = None;
        if self.needs_bound() {
            let failed = scenario.drawn_failures(job.seed, u64::MAX).map_err(|error| error.to_string())?;
            bound = Some(scenario.bound(job.seed, &failed));
        }
        if let Some(bound) = bound.as_ref().filter(|_| self.at_bound_rate) {
            scenario.transport.cc_schemes.fixed_rate.rate_gbps = Some(Gbps::from_bps(bound.rate_bps as u64));
        }
        let balancer = scenario.transport.balancer[0];
        let run = Simulation::new(&scenario).run(balancer, job.seed, &[]).map_err(|error| error.to_string())?;
        let port_series = match &self.watch {
            Some(switch) if job.watch => port_series(&run, switch),
            _ => Vec::new(),
        };
        let measures = of_run(&run, bound.as_ref(), &port_series);
        let incomplete = run.flows.iter().filter(|flow| flow.fct_us.is_none()).count() as u64;
        Ok(FigureRun { measures, incomplete, port_series })
    }

    fn best(&self, tried: &Tried<'_>, tune: Option<&Tune>, runs: &[FigureRun]) -> Cell {
        let mean = |jobs: &[usize], key: &str| {
            let of = |job: &usize| match runs[*job].incomplete {
                0 => runs[*job].measures.get(key).copied().unwrap_or(f64::INFINITY),
                _ => f64::INFINITY,
            };
            jobs.iter().map(of).sum::<f64>() / jobs.len() as f64
        };
        let cost = |jobs: &[usize]| {
            let Some(Tune { least, limit, .. }) = tune else { return (0.0, 0.0) };
            let beyond = limit.as_ref().map_or(0.0, |limit| (mean(jobs, &limit.key) - limit.most).max(0.0));
            (beyond, mean(jobs, least))
        };
        let order = |a: (f64, f64), b: (f64, f64)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1));
        let best = tried.iter().min_by(|a, b| order(cost(&a.1), cost(&b.1)));
        best.map_or_else(Cell::default, |(value, jobs)| {
            let runs: Vec<&FigureRun> = jobs.iter().map(|job| &runs[*job]).collect();
            Cell::of(self, &runs, value.map(ToString::to_string))
        })
    }
}

#[cfg(test)]
mod tests;
