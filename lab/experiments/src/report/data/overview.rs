//! Data of the page that compares runs; the page averages over seeds.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use spray_settings::AxisValue;

use super::series::count_at;
use crate::results::measures::{self, Better, Measure};
use crate::results::{Drops, FinishedRun, SizeClass, Spread, Summary, gbps};

/// Maximum number of runs on the page.
const RUNS: usize = 5_000;
/// Approximate maximum number of points of all curves.
const POINTS: usize = 300_000;

/// Data of the page. Times are in us.
#[derive(Debug, Serialize)]
pub(in crate::report) struct OverviewData {
    kind: &'static str,
    balancers: Vec<String>,
    conditions: Vec<String>,
    axes: Vec<Axis>,
    seeds: Vec<u64>,
    workloads: Vec<String>,
    measures: Vec<MeasureData>,
    causes: [&'static str; 5],
    layers: Vec<String>,
    cells: Vec<Cell>,
    /// Shares of the flows, in per cent, at which `fct` of a run is taken.
    percents: Vec<usize>,
    /// Number of bins of each run's `goodput`.
    bins: usize,
    /// Half-widths, in standard errors, of the 95 % interval of the mean of 2, 3, ... values.
    t95: Vec<f64>,
    runs: Vec<RunPart>,
    pub(in crate::report) left_out: usize,
}

#[derive(Debug, Serialize)]
struct Axis {
    path: String,
    name: String,
    values: Vec<String>,
    /// The values as numbers, if all are.
    numbers: Option<Vec<f64>>,
}

#[derive(Debug, Serialize)]
struct MeasureData {
    key: &'static str,
    title: String,
    unit: &'static str,
}

impl MeasureData {
    fn of(Measure { key, name, unit, better, .. }: &'static Measure) -> Self {
        let title = if *better == Better::More { format!("{name} (more is better)") } else { (*name).into() };
        Self { key, title, unit }
    }
}

/// Returns the measures that are present and not 0 in some run.
fn non_zero(runs: &[FinishedRun]) -> Vec<&'static Measure> {
    let is_non_zero = |one: &&Measure, run: &FinishedRun| one.of(&run.summary).is_some_and(|value| value != 0.0);
    measures::all().filter(|measure| runs.iter().any(|run| is_non_zero(measure, run))).collect()
}

/// A combination of condition and axis values.
#[derive(Debug, Serialize)]
struct Cell {
    condition: usize,
    axes: Vec<usize>,
}

#[derive(Debug, Serialize)]
struct RunPart {
    cell: usize,
    balancer: usize,
    seed: usize,
    folder: String,
    values: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bounds: Vec<usize>,
    /// Share of completed flows in per cent.
    completed: f64,
    /// By workload the measures, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    workloads: Vec<Option<Vec<Option<f64>>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    workload_bounds: Vec<Vec<usize>>,
    #[serde(flatten)]
    completion: CompletionPart,
    /// By workload, if there are several and few enough points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    completions: Vec<Option<CompletionPart>>,
    /// End of the last run of this cell and balancer.
    end_us: f64,
    /// Gb/s of delivered payload in each bin up to `end_us`.
    goodput: Vec<f64>,
    /// Index of a layer, and drops of its ports by cause.
    drops: Vec<(usize, [u64; 5])>,
}

#[derive(Debug, Serialize)]
struct CompletionPart {
    /// Completion times at `percents` of the flows, up to the share that completed.
    fct: Vec<f64>,
    sizes: Vec<SizeClass>,
}

impl CompletionPart {
    fn of(fct_us: &[f64], sizes: &[SizeClass], percents: &[usize]) -> Self {
        let fct = percents.iter().map_while(|percent| fct_us.get(*percent)).copied().collect();
        Self { fct, sizes: sizes.to_vec() }
    }
}

impl OverviewData {
    pub(in crate::report) fn of(all: &[FinishedRun]) -> Self {
        let runs = &all[..all.len().min(RUNS)];
        let workloads = || runs.iter().flat_map(|run| &run.workloads);
        let of = |name: fn(&Summary) -> String| distinct(runs.iter().map(|run| name(&run.summary)));
        let mut names = Names {
            balancers: of(|s| s.balancer.clone()),
            conditions: of(|s| s.condition.clone()),
            seeds: distinct(runs.iter().map(|run| run.summary.seed)),
            workloads: distinct(runs.iter().flat_map(|run| run.summary.workloads.iter().map(|own| own.name.clone()))),
            layers: distinct(runs.iter().flat_map(|run| run.drops.iter().map(|own| own.name.clone()))),
            measures: non_zero(runs),
            axes: axes(runs),
            has_room: workloads().map(|own| 3 + 4 * own.sizes.len()).sum::<usize>() <= POINTS,
        };
        if names.workloads.len() < 2 {
            names.workloads.clear();
        }
        let (cell_of, cells) = cells(runs, &names);
        let mut ends: HashMap<(usize, &str), f64> = HashMap::new();
        for (run, cell) in runs.iter().zip(&cell_of) {
            let own = run.delivered.last().map_or(0.0, |(time, _)| *time);
            let end = ends.entry((*cell, &run.summary.balancer)).or_default();
            *end = end.max(own);
        }
        let distributions = runs.len() + if names.has_room { workloads().count() } else { 0 };
        let (percents, bins) = detail(runs.len(), distributions);
        let part = |(run, cell): (&FinishedRun, &usize)| {
            let end_us = ends[&(*cell, run.summary.balancer.as_str())];
            names.part(run, *cell, end_us, &percents, bins)
        };
        let parts = runs.iter().zip(&cell_of).map(part).collect();
        let Names { balancers, conditions, seeds, workloads, layers, axes, .. } = names;
        Self {
            kind: "overview",
            t95: (2..=seeds.len().clamp(2, 200)).map(Spread::t95).collect(),
            balancers,
            conditions,
            axes: axes.into_iter().map(|(axis, _)| axis).collect(),
            seeds,
            workloads,
            measures: names.measures.iter().map(|measure| MeasureData::of(measure)).collect(),
            causes: Drops::CAUSES,
            layers,
            cells,
            percents,
            bins,
            runs: parts,
            left_out: all.len() - runs.len(),
        }
    }

    /// Returns the plots, each with whether it has data.
    pub(in crate::report) fn plots(&self) -> [(&'static str, bool); 6] {
        let any = |is_there: fn(&RunPart) -> bool| self.runs.iter().any(is_there);
        let is_numeric = |axis: &Axis| axis.numbers.is_some() && axis.values.len() > 1;
        [
            ("measure", !self.runs.is_empty()),
            ("axis", self.axes.iter().any(is_numeric)),
            ("fct", any(|run| !run.completion.fct.is_empty())),
            ("goodput", any(|run| !run.goodput.is_empty())),
            ("sizes", any(|run| !run.completion.sizes.is_empty())),
            ("drops", any(|run| !run.drops.is_empty())),
        ]
    }
}

/// Returns shares of flows and a number of time bins that keep the page within `POINTS`.
fn detail(runs: usize, distributions: usize) -> (Vec<usize>, usize) {
    let points = runs * 80 + distributions * 100;
    let step = [1, 2, 4, 5, 10, 20, 25].into_iter().find(|step| points / step <= POINTS).unwrap_or(50);
    ((0..=100).step_by(step).collect(), (80 / step).max(10))
}

/// Names that runs refer to by index.
struct Names {
    balancers: Vec<String>,
    conditions: Vec<String>,
    seeds: Vec<u64>,
    workloads: Vec<String>,
    layers: Vec<String>,
    measures: Vec<&'static Measure>,
    /// With the values as in the scenario.
    axes: Vec<(Axis, Vec<AxisValue>)>,
    /// Whether completion times and sizes are included by workload.
    has_room: bool,
}

impl Names {
    fn part(&self, run: &FinishedRun, cell: usize, end_us: f64, percents: &[usize], bins: usize) -> RunPart {
        let s = &run.summary;
        let layer = |own: &Drops| Some((place(&self.layers, &own.name)?, own.counts));
        let completion = |name: &String| {
            let (_, own) = s.workloads.iter().zip(&run.workloads).find(|(own, _)| own.name == *name)?;
            self.has_room.then(|| CompletionPart::of(&own.fct_us, &own.sizes, percents))
        };
        let several = if run.workloads.is_empty() { &[][..] } else { &self.workloads };
        RunPart {
            cell,
            balancer: place(&self.balancers, &s.balancer).unwrap_or(0),
            seed: place(&self.seeds, &s.seed).unwrap_or(0),
            folder: run.folder.clone(),
            values: self.measures.iter().map(|measure| measure.of(s)).collect(),
            bounds: (0..self.measures.len()).filter(|at| self.measures[*at].is_bound(s)).collect(),
            completed: s.flows.completed_percent,
            workloads: self.workloads.iter().map(|name| self.of_workload(s, name)).collect(),
            workload_bounds: self.workload_bounds(s),
            completion: CompletionPart::of(&run.fct_us, &run.sizes, percents),
            completions: several.iter().map(completion).collect(),
            end_us,
            goodput: goodput(&run.delivered, end_us, bins),
            drops: run.drops.iter().filter_map(layer).collect(),
        }
    }

    /// Returns by workload the measures that are lower bounds; empty if none is.
    fn workload_bounds(&self, s: &Summary) -> Vec<Vec<usize>> {
        let own = |name: &String| s.workloads.iter().find(|own| own.name == *name);
        let is_bound = |name, at: &usize| {
            own(name).is_some_and(|own| own.lower_bounds.iter().any(|key| key == self.measures[*at].key))
        };
        let of = |name| (0..self.measures.len()).filter(|at| is_bound(name, at)).collect();
        let bounds: Vec<Vec<usize>> = self.workloads.iter().map(of).collect();
        if bounds.iter().all(Vec::is_empty) { Vec::new() } else { bounds }
    }

    fn of_workload(&self, s: &Summary, name: &str) -> Option<Vec<Option<f64>>> {
        let own = s.workloads.iter().find(|own| own.name == name)?;
        Some(self.measures.iter().map(|measure| measure.of_workload(own)).collect())
    }
}

fn goodput(delivered: &[(f64, f64)], end_us: f64, bins: usize) -> Vec<f64> {
    if end_us <= 0.0 {
        return Vec::new();
    }
    let at = |bin: usize| count_at(delivered, end_us * bin as f64 / bins as f64);
    (0..bins).map(|bin| gbps((at(bin + 1) - at(bin)).max(0.0) as u64, end_us / bins as f64)).collect()
}

/// Pseudo-axis for runs with different switch schemes that no axis of the sweep sets.
const SWITCH: &str = "switch";

fn axes_of(run: &Summary, has_switches: bool) -> impl Iterator<Item = (&str, AxisValue)> {
    let switch = has_switches.then(|| (SWITCH, AxisValue::Text(run.switch.clone())));
    run.axes.iter().map(|(path, value)| (path.as_str(), value.clone())).chain(switch)
}

/// Returns the axes of the sweep with their distinct values; numbers ascend.
fn axes(runs: &[FinishedRun]) -> Vec<(Axis, Vec<AxisValue>)> {
    let several = has_several_switches(runs.iter().map(|run| &run.summary));
    let mut found: BTreeMap<&str, Vec<AxisValue>> = BTreeMap::new();
    for (path, value) in runs.iter().flat_map(|run| axes_of(&run.summary, several)) {
        let values = found.entry(path).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let axis = |(path, mut values): (&str, Vec<AxisValue>)| {
        if values.iter().all(|value| value.number().is_some()) {
            let number = |value: &AxisValue| value.number().unwrap_or(0.0);
            values.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        let numbers = values.iter().map(AxisValue::number).collect();
        let name = path.rsplit('.').next().unwrap_or(path).into();
        let shown = values.iter().map(ToString::to_string).collect();
        (Axis { path: path.into(), name, values: shown, numbers }, values)
    };
    found.into_iter().map(axis).collect()
}

/// Returns the cell of each run, and the cells.
fn cells(runs: &[FinishedRun], names: &Names) -> (Vec<usize>, Vec<Cell>) {
    let mut cells = Vec::new();
    let mut places: HashMap<(usize, Vec<usize>), usize> = HashMap::new();
    let mut cell_of = Vec::new();
    for FinishedRun { summary, .. } in runs {
        let condition = place(&names.conditions, &summary.condition).unwrap_or(0);
        let value = |(axis, values): &(Axis, Vec<AxisValue>)| {
            let own = axes_of(summary, true).find(|(path, _)| *path == axis.path);
            own.and_then(|(_, value)| place(values, &value)).unwrap_or(0)
        };
        let axes: Vec<usize> = names.axes.iter().map(value).collect();
        let cell = *places.entry((condition, axes.clone())).or_insert_with(|| {
            cells.push(Cell { condition, axes });
            cells.len() - 1
        });
        cell_of.push(cell);
    }
    (cell_of, cells)
}

fn place<T: PartialEq>(all: &[T], one: &T) -> Option<usize> {
    all.iter().position(|other| other == one)
}

/// Whether runs differ in the switch scheme, without an axis that sets it.
pub(in crate::report) fn has_several_switches<'a>(mut runs: impl Iterator<Item = &'a Summary>) -> bool {
    let Some(first) = runs.next() else { return false };
    !first.axes.keys().any(|path| path.starts_with("switch.")) && runs.any(|run| run.switch != first.switch)
}

pub(in crate::report) fn distinct<T: PartialEq + Clone + std::hash::Hash + Eq>(
    names: impl Iterator<Item = T>,
) -> Vec<T> {
    let mut seen = std::collections::HashSet::new();
    names.filter(|name| seen.insert(name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_runs_have_coarser_curves() {
        let of = |runs, workloads: usize| {
            let (percents, bins) = detail(runs, runs * (1 + workloads));
            (percents.len(), bins, percents.last().copied())
        };
        assert_eq!(of(9, 0), (101, 80, Some(100)));
        assert_eq!(of(3_000, 0), (51, 40, Some(100)));
        assert_eq!(of(3_000, 3), (21, 16, Some(100)));
        assert_eq!(of(RUNS, 0), (26, 20, Some(100)));
    }

    #[test]
    fn goodput_of_a_bin_is_what_arrived_in_it() {
        assert_eq!(goodput(&[(0.0, 0.0), (10.0, 1250.0)], 20.0, 4), [1.0, 1.0, 0.0, 0.0]);
        assert!(goodput(&[], 0.0, 4).is_empty());
    }
}
