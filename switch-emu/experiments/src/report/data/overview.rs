//! What the page that compares runs holds: a few curves and figures of each run. The page adds them up over seeds.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use spray_settings::AxisValue;

use super::series::count_at;
use super::{Num, Size};
use crate::results::{Finished, LayerDrops, Spread, Summary, WorkloadSummary, gbps};

/// Most runs on the page.
const RUNS: usize = 5_000;
/// About how many points all curves have together.
const POINTS: usize = 300_000;

/// The data of the page. Times are in us.
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
    /// Runs of one condition and one value of each axis.
    cells: Vec<Cell>,
    /// At which shares of the flows, in per cent, `fct` of a run is taken.
    percents: Vec<usize>,
    /// How many bins `goodput` of a run has.
    bins: usize,
    /// By how many standard errors the 95 % interval of the mean of 2, 3, ... values reaches to either side.
    t95: Vec<Num>,
    runs: Vec<RunPart>,
    /// Runs for which the page has no room.
    left_out: usize,
}

/// An axis of the sweep.
#[derive(Debug, Serialize)]
struct Axis {
    path: String,
    /// The last part of its path.
    name: String,
    values: Vec<String>,
    /// The values as numbers, where all are.
    numbers: Option<Vec<Num>>,
}

/// A measure that one can pick.
#[derive(Debug, Serialize)]
struct MeasureData {
    key: &'static str,
    title: &'static str,
    unit: &'static str,
}

/// A condition with values of the axes.
#[derive(Debug, Serialize)]
struct Cell {
    condition: usize,
    axes: Vec<usize>,
    /// The end of the last of its runs.
    end_us: Num,
}

/// A run.
#[derive(Debug, Serialize)]
struct RunPart {
    cell: usize,
    balancer: usize,
    seed: usize,
    folder: String,
    /// Values of the measures.
    values: Vec<Num>,
    /// The same of each workload, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    workloads: Vec<Option<Vec<Num>>>,
    /// Completion times at `percents` of all flows, as far as these completed.
    fct: Vec<Num>,
    /// Payload delivered in each bin of the cell's time, in Gb/s.
    goodput: Vec<Num>,
    sizes: Vec<Size>,
    /// By layer, as its index, what its ports dropped.
    drops: Vec<(usize, [u64; 5])>,
}

/// `None` where a run has no such figure.
type Of<T> = fn(&T) -> Option<f64>;

/// A measure of a run, and of one of its workloads where there is such a thing.
struct Measure {
    data: MeasureData,
    of_run: Of<Summary>,
    of_workload: Option<Of<WorkloadSummary>>,
}

const fn measure(
    [key, title, unit]: [&'static str; 3],
    of_run: Of<Summary>,
    of_workload: Option<Of<WorkloadSummary>>,
) -> Measure {
    Measure { data: MeasureData { key, title, unit }, of_run, of_workload }
}

fn drops(s: &Summary) -> Option<f64> {
    Some((s.drops_queue + s.drops_link + s.drops_random) as f64)
}

/// The mean slowdown over all completed flows.
fn slowdown(s: &Summary) -> Option<f64> {
    let flows: u64 = s.workloads.iter().map(|own| own.flows_completed).sum();
    let sum = |own: &WorkloadSummary| Some(own.slowdown_mean? * own.flows_completed as f64);
    (flows > 0).then(|| s.workloads.iter().filter_map(sum).sum::<f64>() / flows as f64)
}

const MEASURES: [Measure; 14] = [
    measure(["fct_max_us", "Slowest flow's completion time", "us"], |s| s.fct_max_us, Some(|w| w.fct_max_us)),
    measure(["fct_mean_us", "Mean completion time", "us"], |s| s.fct_mean_us, Some(|w| w.fct_mean_us)),
    measure(["fct_p50_us", "Median completion time", "us"], |s| s.fct_p50_us, Some(|w| w.fct_p50_us)),
    measure(["fct_p99_us", "99th percentile of the completion time", "us"], |s| s.fct_p99_us, Some(|w| w.fct_p99_us)),
    measure(
        ["goodput_gbps", "Goodput (more is better)", "Gb/s"],
        |s| Some(s.goodput_gbps),
        Some(|w| Some(w.goodput_gbps)),
    ),
    measure(["makespan_us", "From the first start to the last end", "us"], |s| s.makespan_us, Some(|w| w.makespan_us)),
    measure(["slowdown_mean", "Mean slowdown", "times"], slowdown, Some(|w| w.slowdown_mean)),
    measure(["drops", "Frames dropped", "frames"], drops, None),
    measure(["trims", "Frames trimmed", "frames"], |s| Some(s.trims as f64), None),
    measure(["ecn_marks", "Frames marked", "frames"], |s| Some(s.ecn_marks as f64), None),
    measure(
        ["retransmits", "Packets sent again", "packets"],
        |s| Some(s.retransmits as f64),
        Some(|w| Some(w.retransmits as f64)),
    ),
    measure(
        ["reordered_packets", "Packets reordered", "packets"],
        |s| Some(s.reordered_packets as f64),
        Some(|w| Some(w.reordered_packets as f64)),
    ),
    measure(["queue_max_bytes", "Longest queue", "bytes"], |s| Some(s.queue_max_bytes as f64), None),
    measure(["recovery_us", "Recovery from the first failure", "us"], |s| s.recovery_us, None),
];

impl OverviewData {
    pub(in crate::report) fn of(all: &[Finished]) -> Self {
        let runs = &all[..all.len().min(RUNS)];
        let of = |name: fn(&Summary) -> String| distinct(runs.iter().map(|run| name(&run.summary)));
        let mut names = Names {
            balancers: of(|s| s.balancer.clone()),
            conditions: of(|s| s.condition.clone()),
            seeds: distinct(runs.iter().map(|run| run.summary.seed)),
            workloads: distinct(runs.iter().flat_map(|run| run.summary.workloads.iter().map(|own| own.name.clone()))),
            layers: distinct(runs.iter().flat_map(|run| run.drops.iter().map(|own| own.layer.clone()))),
            axes: axes(runs),
        };
        if names.workloads.len() < 2 {
            names.workloads.clear();
        }
        let (cell_of, mut cells) = cells(runs, &names);
        for (run, cell) in runs.iter().zip(&cell_of) {
            let end = run.delivered.last().map_or(0.0, |(time, _)| *time);
            cells[*cell].end_us = Num(cells[*cell].end_us.0.max(end));
        }
        let (percents, bins) = detail(runs.len());
        let part = |(run, cell): (&Finished, &usize)| names.part(run, (*cell, cells[*cell].end_us.0), &percents, bins);
        let parts = runs.iter().zip(&cell_of).map(part).collect();
        let Names { balancers, conditions, seeds, workloads, layers, axes } = names;
        Self {
            kind: "overview",
            t95: (2..=seeds.len().clamp(2, 200)).map(|runs| Num(Spread::t95(runs))).collect(),
            balancers,
            conditions,
            axes: axes.into_iter().map(|(axis, _)| axis).collect(),
            seeds,
            workloads,
            measures: MEASURES.map(|measure| measure.data).into(),
            causes: LayerDrops::CAUSES,
            layers,
            cells,
            percents,
            bins,
            runs: parts,
            left_out: all.len() - runs.len(),
        }
    }

    /// Names of the plots that have something to show.
    pub(in crate::report) fn plots(&self) -> Vec<&'static str> {
        let any = |is_there: fn(&RunPart) -> bool| self.runs.iter().any(is_there);
        let is_numeric = |axis: &Axis| axis.numbers.is_some() && axis.values.len() > 1;
        let all = [
            ("measure", !self.runs.is_empty()),
            ("axis", self.axes.iter().any(is_numeric)),
            ("fct", any(|run| !run.fct.is_empty())),
            ("goodput", any(|run| !run.goodput.is_empty())),
            ("sizes", any(|run| !run.sizes.is_empty())),
            ("drops", any(|run| !run.drops.is_empty())),
        ];
        all.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
    }

    /// Runs for which the page has no room.
    pub(in crate::report) fn left_out(&self) -> usize {
        self.left_out
    }
}

/// How many points the curves of so many runs have: shares of the flows, and bins of time.
fn detail(runs: usize) -> (Vec<usize>, usize) {
    let step = [1, 2, 4, 5, 10, 20, 25].into_iter().find(|step| runs * 180 / step <= POINTS).unwrap_or(50);
    ((0..=100).step_by(step).collect(), (80 / step).max(10))
}

/// The names that runs refer to by their index.
struct Names {
    balancers: Vec<String>,
    conditions: Vec<String>,
    seeds: Vec<u64>,
    workloads: Vec<String>,
    layers: Vec<String>,
    /// With the values as the scenario has them.
    axes: Vec<(Axis, Vec<AxisValue>)>,
}

impl Names {
    fn part(&self, run: &Finished, (cell, end_us): (usize, f64), percents: &[usize], bins: usize) -> RunPart {
        let s = &run.summary;
        let layer = |own: &LayerDrops| Some((place(&self.layers, &own.layer)?, own.counts));
        RunPart {
            cell,
            balancer: place(&self.balancers, &s.balancer).unwrap_or(0),
            seed: place(&self.seeds, &s.seed).unwrap_or(0),
            folder: run.folder.clone(),
            values: MEASURES.iter().map(|measure| number((measure.of_run)(s))).collect(),
            workloads: self.workloads.iter().map(|name| of_workload(s, name)).collect(),
            fct: percents.iter().map_while(|percent| run.fct_us.get(*percent)).map(|us| Num(*us)).collect(),
            goodput: goodput(&run.delivered, end_us, bins),
            sizes: run.sizes.iter().map(Size::from).collect(),
            drops: run.drops.iter().filter_map(layer).collect(),
        }
    }
}

/// What has no value is null on the page.
fn number(value: Option<f64>) -> Num {
    Num(value.unwrap_or(f64::NAN))
}

fn of_workload(s: &Summary, name: &str) -> Option<Vec<Num>> {
    let own = s.workloads.iter().find(|own| own.name == name)?;
    let value = |measure: &Measure| number(measure.of_workload.and_then(|of| of(own)));
    Some(MEASURES.iter().map(value).collect())
}

/// Payload delivered in each bin, in Gb/s.
fn goodput(delivered: &[(f64, f64)], end_us: f64, bins: usize) -> Vec<Num> {
    if end_us <= 0.0 {
        return Vec::new();
    }
    let at = |bin: usize| count_at(delivered, end_us * bin as f64 / bins as f64);
    (0..bins).map(|bin| Num(gbps((at(bin + 1) - at(bin)).max(0.0) as u64, end_us / bins as f64))).collect()
}

/// The axes of the sweep, each value once; numbers ascend.
fn axes(runs: &[Finished]) -> Vec<(Axis, Vec<AxisValue>)> {
    let mut found: BTreeMap<&str, Vec<AxisValue>> = BTreeMap::new();
    for (path, value) in runs.iter().flat_map(|run| &run.summary.axes) {
        let values = found.entry(path).or_default();
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    let axis = |(path, mut values): (&str, Vec<AxisValue>)| {
        let numbers: Option<Vec<f64>> = values.iter().map(AxisValue::number).collect();
        if numbers.is_some() {
            let number = |value: &AxisValue| value.number().unwrap_or(0.0);
            values.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        let numbers = numbers.map(|mut numbers| {
            numbers.sort_by(f64::total_cmp);
            numbers.into_iter().map(Num).collect()
        });
        let name = path.rsplit('.').next().unwrap_or(path).into();
        let shown = values.iter().map(ToString::to_string).collect();
        (Axis { path: path.into(), name, values: shown, numbers }, values)
    };
    found.into_iter().map(axis).collect()
}

/// The cell of each run, and the cells.
fn cells(runs: &[Finished], names: &Names) -> (Vec<usize>, Vec<Cell>) {
    let mut cells = Vec::new();
    let mut places: HashMap<(usize, Vec<usize>), usize> = HashMap::new();
    let mut cell_of = Vec::new();
    for Finished { summary, .. } in runs {
        let condition = place(&names.conditions, &summary.condition).unwrap_or(0);
        let value = |(axis, values): &(Axis, Vec<AxisValue>)| {
            summary.axes.get(&axis.path).and_then(|value| place(values, value)).unwrap_or(0)
        };
        let axes: Vec<usize> = names.axes.iter().map(value).collect();
        let cell = *places.entry((condition, axes.clone())).or_insert_with(|| {
            cells.push(Cell { condition, axes, end_us: Num(0.0) });
            cells.len() - 1
        });
        cell_of.push(cell);
    }
    (cell_of, cells)
}

fn place<T: PartialEq>(all: &[T], one: &T) -> Option<usize> {
    all.iter().position(|other| other == one)
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
        let of = |runs| {
            let (percents, bins) = detail(runs);
            (percents.len(), bins, percents.last().copied())
        };
        assert_eq!(of(9), (101, 80, Some(100)));
        assert_eq!(of(3_000), (51, 40, Some(100)));
        assert_eq!(of(RUNS), (26, 20, Some(100)));
    }

    #[test]
    fn goodput_of_a_bin_is_what_arrived_in_it() {
        assert_eq!(goodput(&[(0.0, 0.0), (10.0, 1250.0)], 20.0, 4), [1.0, 1.0, 0.0, 0.0].map(Num));
        assert!(goodput(&[], 0.0, 4).is_empty());
    }
}
