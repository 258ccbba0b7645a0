//! Figures of each workload of a run, by name.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::summary::{goodput_gbps, makespan_us, mean, of_some, percentile, round3, sorted_fcts};
use super::{FlowResult, RunResult, Spread, Summary, align};

/// What came of the flows of one workload, or of a part of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadSummary {
    /// Its name.
    pub name: String,
    /// What chose the paths of its packets.
    pub balancer: String,
    /// Its congestion control.
    pub congestion_control: String,
    /// Its flows.
    pub flows_total: u64,
    /// Those that completed.
    pub flows_completed: u64,
    /// Mean completion time of the completed flows, in us; null when none completed, as all times and ratios that follow.
    pub fct_mean_us: Option<f64>,
    /// Median of the completion times.
    pub fct_p50_us: Option<f64>,
    /// Their 99th percentile.
    pub fct_p99_us: Option<f64>,
    /// The longest.
    pub fct_max_us: Option<f64>,
    /// From the first start to the last end.
    pub makespan_us: Option<f64>,
    /// Payload of the completed flows over the makespan, in Gb/s.
    pub goodput_gbps: f64,
    /// Mean of the flows' completion times over those of the same messages alone in the fabric.
    pub slowdown_mean: Option<f64>,
    /// Their 99th percentile.
    pub slowdown_p99: Option<f64>,
    /// The slowdown by size of message, in up to ten groups with as many flows each; smaller ones first.
    pub slowdown_by_size: Vec<SizeSlowdown>,
    /// Jain's index of fairness over the flows' rates: 1 when all had the same, 1/n when one of n had everything.
    pub jain: Option<f64>,
    /// Packets sent again.
    pub retransmits: u64,
    /// Packets that arrived after one with a higher sequence number.
    pub reordered_packets: u64,
    /// Of workloads with collectives; others lack these keys.
    #[serde(flatten)]
    pub collectives: Option<Collectives>,
}

/// Slowdown of the flows of similar size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeSlowdown {
    /// The largest of their messages, in bytes.
    pub up_to_bytes: u64,
    /// How many there are.
    pub flows: u64,
    /// Median of their slowdowns.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// How long collectives took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Collectives {
    /// Those whose flows all completed.
    pub collectives: u64,
    /// Mean completion time of a collective, from the start of its first message to the end of its last, in us; null when none completed,
    /// as all that follow.
    pub cct_mean_us: Option<f64>,
    /// 99th percentile of these times.
    pub cct_p99_us: Option<f64>,
    /// The longest.
    pub cct_max_us: Option<f64>,
    /// Mean time from the end of a collective to the end of the next, what hosts compute in between included, in us.
    pub step_mean_us: Option<f64>,
}

/// Groups of sizes.
const SIZES: usize = 10;

impl WorkloadSummary {
    fn of(name: &str, flows: &[&FlowResult]) -> Self {
        let fcts = sorted_fcts(flows.iter().copied());
        let mut slowdowns: Vec<f64> = flows.iter().filter_map(|flow| flow.slowdown).collect();
        slowdowns.sort_by(f64::total_cmp);
        let completed = flows.iter().filter(|flow| flow.fct_us.is_some());
        Self {
            name: name.into(),
            balancer: flows[0].balancer.clone(),
            congestion_control: flows[0].congestion_control.clone(),
            flows_total: flows.len() as u64,
            flows_completed: fcts.len() as u64,
            fct_mean_us: of_some(&fcts, mean),
            fct_p50_us: of_some(&fcts, |fcts| percentile(fcts, 0.5)),
            fct_p99_us: of_some(&fcts, |fcts| percentile(fcts, 0.99)),
            fct_max_us: of_some(&fcts, |fcts| percentile(fcts, 1.0)),
            makespan_us: of_some(&fcts, |_| makespan_us(flows.iter().copied())),
            goodput_gbps: round3(goodput_gbps(flows.iter().copied())),
            slowdown_mean: of_some(&slowdowns, mean),
            slowdown_p99: of_some(&slowdowns, |slowdowns| percentile(slowdowns, 0.99)),
            slowdown_by_size: by_size(flows),
            jain: jain(completed.filter_map(|flow| Some(flow.bytes as f64 / flow.fct_us.filter(|us| *us > 0.0)?)))
                .map(round3),
            retransmits: flows.iter().map(|flow| flow.retransmits).sum(),
            reordered_packets: flows.iter().map(|flow| flow.reordered).sum(),
            collectives: Collectives::of(flows),
        }
    }
}

impl RunResult {
    /// The figures of each workload, in the order of their first flows.
    #[must_use]
    pub fn workloads(&self) -> Vec<WorkloadSummary> {
        let mut names: Vec<&str> = Vec::new();
        let mut flows: HashMap<&str, Vec<&FlowResult>> = HashMap::new();
        for flow in &self.flows {
            let own = flows.entry(&flow.workload).or_default();
            if own.is_empty() {
                names.push(&flow.workload);
            }
            own.push(flow);
        }
        names.into_iter().map(|name| WorkloadSummary::of(name, &flows[name])).collect()
    }
}

impl Collectives {
    /// `None` where no flow belongs to one.
    //= docs/specs/collectives.md#COL-7 completion time of a collective
    fn of(flows: &[&FlowResult]) -> Option<Self> {
        let steps = flows.iter().map(|flow| flow.step?.checked_add(1)).collect::<Option<Vec<_>>>()?;
        let last = steps.into_iter().max()?;
        // By collective its first start and last end.
        let mut spans = vec![(f64::INFINITY, Some(f64::NEG_INFINITY)); last as usize];
        for flow in flows {
            let (start, end) = &mut spans[flow.step.unwrap_or(0) as usize];
            *start = start.min(flow.start_us);
            *end = end.zip(flow.end_us).map(|(end, own)| end.max(own));
        }
        let spans: Vec<(f64, f64)> = spans.into_iter().filter_map(|(start, end)| Some((start, end?))).collect();
        let mut times: Vec<f64> = spans.iter().map(|(start, end)| end - start).collect();
        times.sort_by(f64::total_cmp);
        let first = spans.first().map_or(0.0, |(start, _)| *start);
        let end = spans.iter().map(|(_, end)| *end).fold(first, f64::max);
        Some(Self {
            collectives: times.len() as u64,
            cct_mean_us: of_some(&times, mean),
            cct_p99_us: of_some(&times, |times| percentile(times, 0.99)),
            cct_max_us: of_some(&times, |times| percentile(times, 1.0)),
            step_mean_us: of_some(&times, |times| (end - first) / times.len() as f64),
        })
    }
}

/// Completed flows by size.
fn by_size(flows: &[&FlowResult]) -> Vec<SizeSlowdown> {
    let mut sizes: Vec<(u64, f64)> = flows.iter().filter_map(|flow| Some((flow.bytes, flow.slowdown?))).collect();
    sizes.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut groups = Vec::new();
    let mut from = 0;
    for group in 1..=SIZES {
        // Messages of one size are in one group.
        let last = (sizes.len() * group / SIZES).max(from);
        let to = sizes.iter().skip(last).position(|(bytes, _)| last == 0 || *bytes > sizes[last - 1].0);
        let to = to.map_or(sizes.len(), |more| last + more);
        if to > from {
            let mut own: Vec<f64> = sizes[from..to].iter().map(|(_, slowdown)| *slowdown).collect();
            own.sort_by(f64::total_cmp);
            groups.push(SizeSlowdown {
                up_to_bytes: sizes[to - 1].0,
                flows: own.len() as u64,
                p50: round3(percentile(&own, 0.5)),
                p99: round3(percentile(&own, 0.99)),
            });
        }
        from = to;
    }
    groups
}

/// The square of the sum over the sum of the squares, for each value; `None` where all are 0, or there is none.
pub(super) fn jain(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum, squares) = values
        .fold((0.0, 0.0, 0.0), |(count, sum, squares), value| (count + 1.0, sum + value, squares + value * value));
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

/// A figure of a workload: its title, its value where it has one, and how many digits it has behind the point.
type Figure = (&'static str, fn(&WorkloadSummary) -> Option<f64>, usize);

const FIGURES: [Figure; 6] = [
    ("Gb/s", |w| Some(w.goodput_gbps), 1),
    ("mean us", |w| w.fct_mean_us, 1),
    ("p99 us", |w| w.fct_p99_us, 1),
    ("max us", |w| w.fct_max_us, 1),
    ("slowdown p99", |w| w.slowdown_p99, 2),
    ("Jain", |w| w.jain, 3),
];
/// Figures of workloads with collectives.
const COLLECTIVE_FIGURES: [Figure; 3] = [
    ("CCT mean us", |w| w.collectives?.cct_mean_us, 1),
    ("CCT p99 us", |w| w.collectives?.cct_p99_us, 1),
    ("step us", |w| w.collectives?.step_mean_us, 1),
];

/// A table with a line for each workload under each condition and balancer, with means over the seeds and their 95 % intervals;
/// `None` where the table of runs says it all: runs of one workload without collectives.
#[must_use]
pub fn workload_table(runs: &[Summary]) -> Option<String> {
    workload_lines(runs).map(|Lines { header, words, rows }| {
        align(&header.iter().map(String::as_str).collect::<Vec<_>>(), words, &rows)
    })
}

/// What [`workload_table`] shows.
pub(crate) struct Lines {
    pub header: Vec<String>,
    /// How many columns at the beginning hold words.
    pub words: usize,
    pub rows: Vec<Vec<String>>,
}

pub(crate) fn workload_lines(runs: &[Summary]) -> Option<Lines> {
    let collectives = runs.iter().flat_map(|run| &run.workloads).any(|own| own.collectives.is_some());
    if !collectives && runs.iter().all(|run| run.workloads.len() < 2) {
        return None;
    }
    let axes: Vec<&String> = runs.first().map_or_else(Vec::new, |run| run.axes.keys().collect());
    let words = |run: &Summary| {
        let values = axes.iter().map(|axis| run.axes.get(*axis).map(ToString::to_string).unwrap_or_default());
        std::iter::once(run.condition.clone()).chain(values).chain([run.balancer.clone()]).collect::<Vec<String>>()
    };
    // Lines in the order of their first runs, each with what its workload came to in all of them.
    let mut lines: Vec<(Vec<String>, Vec<&WorkloadSummary>)> = Vec::new();
    let mut places: HashMap<Vec<String>, usize> = HashMap::new();
    for run in runs {
        for own in &run.workloads {
            let key: Vec<String> = words(run).into_iter().chain([own.name.clone()]).collect();
            let place = *places.entry(key.clone()).or_insert_with(|| {
                lines.push((key, Vec::new()));
                lines.len() - 1
            });
            lines[place].1.push(own);
        }
    }
    let figures: Vec<Figure> =
        FIGURES.into_iter().chain(COLLECTIVE_FIGURES.into_iter().filter(|_| collectives)).collect();
    let row = |(words, own): &(Vec<String>, Vec<&WorkloadSummary>)| {
        let (done, total) =
            own.iter().fold((0, 0), |(done, total), own| (done + own.flows_completed, total + own.flows_total));
        let cell = |(_, of, digits): &Figure| {
            let values: Vec<f64> = own.iter().filter_map(|own| of(own)).collect();
            Spread::of(&values).text(*digits)
        };
        let flows = [own[0].balancer.clone(), format!("{done}/{total}")];
        words.iter().cloned().chain(flows).chain(figures.iter().map(cell)).collect::<Vec<String>>()
    };
    let words = std::iter::once("condition").chain(axes.iter().map(|axis| axis.as_str()));
    let words = words.chain(["run", "workload", "balancer", "flows"]);
    let header = words.chain(figures.iter().map(|(title, ..)| *title)).map(String::from).collect();
    Some(Lines { header, words: 4 + axes.len(), rows: lines.iter().map(row).collect() })
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    fn flow(workload: &str, bytes: u64, [start_us, fct_us]: [f64; 2], step: Option<u32>) -> FlowResult {
        let end_us = Some(start_us + fct_us);
        let (workload, fct_us, slowdown) = (workload.into(), Some(fct_us), Some(fct_us / 10.0));
        FlowResult { workload, bytes, start_us, end_us, fct_us, slowdown, step, ..FlowResult::default() }
    }

    #[test]
    fn jains_index_is_one_when_all_have_the_same_and_a_share_when_one_has_all() {
        assert_eq!(jain([3.0, 3.0, 3.0].into_iter()), Some(1.0));
        assert_eq!(jain([9.0, 0.0, 0.0].into_iter()), Some(1.0 / 3.0));
        assert!((jain([1.0, 2.0, 3.0].into_iter()).unwrap() - 36.0 / 42.0).abs() < 1e-12);
        assert_eq!(jain(std::iter::empty()), None);
    }

    #[test]
    fn figures_are_those_of_the_workloads_own_flows() {
        let flows = vec![
            flow("a", 1_000, [0.0, 10.0], None),
            flow("b", 4_000, [5.0, 40.0], None),
            flow("a", 1_000, [10.0, 30.0], None),
            FlowResult { fct_us: None, end_us: None, slowdown: None, ..flow("b", 1, [0.0, 1.0], None) },
        ];
        let run = RunResult { flows, ..sample("reps", "healthy", &[]) };
        let [a, b] = &run.workloads()[..] else { panic!("two") };
        assert_eq!(
            (a.name.as_str(), a.flows_total, a.flows_completed, a.fct_mean_us, a.fct_max_us),
            ("a", 2, 2, Some(20.0), Some(30.0))
        );
        let slowdowns = (a.slowdown_mean, a.slowdown_p99);
        assert_eq!((a.makespan_us, a.goodput_gbps, slowdowns), (Some(40.0), 0.4, (Some(2.0), Some(3.0))));
        // Rates of 100 and 33 1/3 bytes a microsecond.
        assert_eq!(a.jain, Some(0.8));
        assert_eq!(
            (b.flows_total, b.flows_completed, b.fct_p99_us, b.jain, b.collectives),
            (2, 1, Some(40.0), Some(1.0), None)
        );
        assert!(workload_table(&[run.summary()]).unwrap().lines().nth(3).unwrap().contains("1/2"));
    }

    #[test]
    fn figures_of_what_never_completed_are_not_there() {
        let never = FlowResult { fct_us: None, end_us: None, slowdown: None, ..flow("r", 1, [0.0, 1.0], Some(0)) };
        let run = RunResult { flows: vec![never], ..sample("reps", "healthy", &[]) };
        let table = workload_table(&[run.summary()]).unwrap();
        let line: Vec<&str> = table.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!(line[3..], ["0/1", "0.0", "-", "-", "-", "-", "-", "-", "-", "-"], "{table}");
        assert_eq!(run.workloads()[0].collectives, Some(Collectives::default()));
    }

    #[test]
    fn a_run_of_one_workload_has_no_table_of_its_own() {
        assert_eq!(workload_table(&[sample("reps", "healthy", &[1.0, 2.0]).summary()]), None);
    }

    //= docs/specs/collectives.md#COL-7 completion time of a collective
    #[test]
    fn collectives_last_from_their_first_start_to_their_last_end() {
        let flows = vec![
            flow("r", 1, [0.0, 10.0], Some(0)),
            flow("r", 1, [2.0, 10.0], Some(0)),
            flow("r", 1, [20.0, 10.0], Some(1)),
            flow("r", 1, [22.0, 18.0], Some(1)),
        ];
        let run = RunResult { flows, ..sample("reps", "healthy", &[]) };
        let found = run.workloads()[0].collectives.unwrap();
        let [cct_mean_us, longest] = [16.0, 20.0].map(Some);
        let expected = Collectives {
            collectives: 2,
            cct_mean_us,
            cct_p99_us: longest,
            cct_max_us: longest,
            step_mean_us: longest,
        };
        assert_eq!(found, expected);
        let beside = RunResult { flows: vec![flow("s", 1, [0.0, 1.0], None)], ..sample("reps", "healthy", &[]) };
        let table = workload_table(&[run.summary(), beside.summary()]).unwrap();
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].contains("CCT mean us") && lines[2].contains(" 16.0 ") && lines[3].ends_with(" -"), "{table}");
    }

    #[test]
    fn sizes_are_in_groups_of_as_many_flows_and_one_size_in_one_group() {
        let of = |sizes: &[u64]| {
            let flows: Vec<FlowResult> =
                sizes.iter().map(|bytes| flow("a", *bytes, [0.0, *bytes as f64 * 10.0], None)).collect();
            by_size(&flows.iter().collect::<Vec<_>>())
        };
        let twenty = of(&(1..=20).collect::<Vec<_>>());
        assert_eq!(twenty.len(), 10);
        assert!(twenty.iter().zip(1..).all(|(group, number)| (group.up_to_bytes, group.flows) == (2 * number, 2)));
        assert_eq!((twenty[9].p50, twenty[9].p99), (19.0, 20.0));
        let same = of(&[7; 30]);
        assert_eq!(same.iter().map(|group| (group.up_to_bytes, group.flows)).collect::<Vec<_>>(), [(7, 30)]);
        let two = of(&[1, 1, 1, 1, 1, 9]);
        assert_eq!(two.iter().map(|group| (group.up_to_bytes, group.flows)).collect::<Vec<_>>(), [(1, 5), (9, 1)]);
        assert!(of(&[]).is_empty());
    }
}
