//! Measures by workload.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::field::figures;
use super::flow_figures::{Bounds, gbps};
use super::statistics::{Censored, round3};
use super::{FlowFigures, FlowResult, RunResult, grouped};

/// Measures of a workload, or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadSummary {
    /// Name.
    pub name: String,
    /// The balancer's name.
    pub balancer: String,
    /// The congestion control's name.
    pub congestion_control: String,
    /// Measures of its flows.
    #[serde(flatten)]
    pub flows: FlowFigures,
    /// Keys of the measures that are lower bounds, as flows are incomplete.
    #[serde(default)]
    pub lower_bounds: Vec<String>,
    /// Measures of collectives; absent without.
    #[serde(flatten)]
    pub collectives: Option<Collectives>,
}

figures! {
    /// Times of collectives that started; an incomplete one counts with its elapsed time.
    Collectives;
    /// Number of collectives.
    collectives_total: u64, "collectives in all", "Collectives", "", 0, Neither;
    /// Number of collectives with all flows completed.
    collectives: u64, "collectives", "Collectives completed", "", 0, Neither;
    /// Mean collective completion time (CCT), from the first start to the last end of a message.
    cct_mean_us: Option<f64>, "CCT mean us", "Mean completion time of collectives", "us", 1, Less;
    /// 99th percentile of the collective completion times.
    cct_p99_us: Option<f64>, "CCT p99 us", "99th percentile of the completion time of collectives", "us", 1, Less;
    /// Maximum collective completion time.
    cct_max_us: Option<f64>, "CCT max us", "Slowest collective's completion time", "us", 1, Less;
    /// Bus bandwidth: mean payload sent by a host in a collective over the mean completion time, as
    /// collective benchmarks define it. Null unless all collectives completed.
    bus_bandwidth_gbps: Option<f64>, "bus Gb/s", "Bus bandwidth of collectives", "Gb/s", 1, More;
    /// Mean time between ends of collectives, with computation; null unless all completed.
    step_mean_us: Option<f64>, "step us", "Mean step of collectives", "us", 1, Less;
}

impl WorkloadSummary {
    fn of(name: &str, flows: &[&FlowResult], end_us: f64) -> Self {
        let (figures, mut lower_bounds) = FlowFigures::of(flows.iter().copied(), end_us);
        let collectives = Collectives::of(flows, end_us).map(|(figures, bounds)| {
            lower_bounds.extend(bounds);
            figures
        });
        Self {
            name: name.into(),
            balancer: flows[0].balancer.clone(),
            congestion_control: flows[0].congestion_control.clone(),
            flows: figures,
            lower_bounds,
            collectives,
        }
    }
}

impl RunResult {
    /// Computes the measures of each workload, in the order of their first flows.
    pub fn workloads(&self) -> Vec<WorkloadSummary> {
        let flows = grouped(self.flows.iter().map(|flow| (&flow.workload, flow)));
        flows.into_iter().map(|(name, flows)| WorkloadSummary::of(name, &flows, self.end_us)).collect()
    }
}

impl Collectives {
    /// Returns measures and keys of lower bounds; `None` if flows do not belong to collectives.
    //= docs/specs/collectives.md#COL-7 completion time of a collective
    fn of(flows: &[&FlowResult], end_us: f64) -> Option<(Self, Vec<String>)> {
        let spans = spans(flows)?;
        let time = |span: &Span| {
            let start = span.start_us?;
            Some((span.end_us.unwrap_or(end_us) - start, span.end_us.is_none()))
        };
        let times = Censored::new(spans.iter().filter_map(time));
        let ends: Option<Vec<f64>> = spans.iter().map(|span| span.end_us).collect();
        let senders: HashSet<&str> = flows.iter().map(|flow| flow.src.as_str()).collect();
        let bytes: u64 = flows.iter().map(|flow| flow.bytes).sum();
        let count = spans.len() as f64;
        // Mean time and last end, if all collectives completed.
        let whole =
            ends.as_ref().and_then(|ends| Some((times.mean()?.value, ends.iter().copied().fold(0.0, f64::max))));
        let first = spans.iter().filter_map(|span| span.start_us).fold(f64::INFINITY, f64::min);
        let mut bounds = Bounds::default();
        let figures = Self {
            collectives_total: spans.len() as u64,
            collectives: spans.iter().filter(|span| span.end_us.is_some()).count() as u64,
            cct_mean_us: bounds.note("cct_mean_us", times.mean()),
            cct_p99_us: bounds.note("cct_p99_us", times.percentile(0.99)),
            cct_max_us: bounds.note("cct_max_us", times.percentile(1.0)),
            bus_bandwidth_gbps: whole.map(|(mean, _)| round3(gbps(bytes, mean) / count / senders.len() as f64)),
            step_mean_us: whole.map(|(_, end)| round3((end - first) / count)),
        };
        Some((figures, bounds.0))
    }
}

#[derive(Clone, Copy)]
struct Span {
    /// Start of its first message; `None` if none started.
    start_us: Option<f64>,
    /// End of its last message; `None` if one is incomplete.
    end_us: Option<f64>,
}

/// Returns the collectives' spans by number; `None` if a flow belongs to none.
fn spans(flows: &[&FlowResult]) -> Option<Vec<Span>> {
    let steps = flows.iter().map(|flow| flow.step?.checked_add(1)).collect::<Option<Vec<_>>>()?;
    let last = steps.into_iter().max()?;
    let mut spans = vec![Span { start_us: None, end_us: Some(f64::NEG_INFINITY) }; last as usize];
    for flow in flows {
        let span = &mut spans[flow.step.unwrap_or(0) as usize];
        let start_us = flow.time_us().map(|_| flow.start_us);
        span.start_us = span.start_us.into_iter().chain(start_us).min_by(f64::total_cmp);
        span.end_us = span.end_us.zip(flow.end_us).map(|(end, own)| end.max(own));
    }
    Some(spans)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{incomplete, sample};
    use super::super::{Incomplete, workload_table};
    use super::*;

    fn flow(workload: &str, bytes: u64, [start_us, fct_us]: [f64; 2], step: Option<u32>) -> FlowResult {
        let end_us = Some(start_us + fct_us);
        let (workload, fct_us, unloaded_fct_us) = (workload.into(), Some(fct_us), 10.0);
        FlowResult { workload, bytes, start_us, end_us, fct_us, unloaded_fct_us, step, ..FlowResult::default() }
    }

    fn cut_off(mut flow: FlowResult, end_us: f64) -> FlowResult {
        incomplete(&mut flow, Incomplete::CutOff, end_us);
        flow
    }

    #[test]
    fn figures_are_those_of_the_workloads_flows() {
        let flows = vec![
            flow("a", 1_000, [0.0, 10.0], None),
            flow("b", 4_000, [5.0, 40.0], None),
            flow("a", 1_000, [10.0, 30.0], None),
            cut_off(flow("b", 1, [0.0, 1.0], None), 100.0),
        ];
        let run = RunResult { flows, end_us: 100.0, ..sample("reps", "healthy", &[]) };
        let [a, b] = &run.workloads()[..] else { panic!("two") };
        assert_eq!(
            (a.name.as_str(), a.flows.flows_total, a.flows.flows_completed, a.flows.fct_mean_us, a.flows.fct_max_us),
            ("a", 2, 2, Some(20.0), Some(30.0))
        );
        let slowdowns = (a.flows.slowdown_mean, a.flows.slowdown_p99);
        assert_eq!((a.flows.makespan_us, a.flows.goodput_gbps, slowdowns), (Some(40.0), 0.4, (Some(2.0), Some(3.0))));
        // Rates of 100 and 33 1/3 bytes per microsecond.
        assert_eq!(a.flows.jain, Some(0.8));
        assert_eq!(
            (b.flows.flows_total, b.flows.flows_completed, b.flows.fct_p99_us, b.flows.jain, b.collectives),
            (2, 1, Some(100.0), Some(0.5), None)
        );
        let table = workload_table(&[run.summary()]).unwrap();
        assert!(table.lines().nth(3).unwrap().contains("1/2, 50.0 %"), "{table}");
        assert!(table.lines().nth(3).unwrap().contains("> 70.0"), "{table}");
        assert!(!table.lines().nth(2).unwrap().contains('>'), "{table}");
    }

    #[test]
    fn incomplete_workloads_have_no_figures() {
        let mut never = flow("r", 1, [0.0, 1.0], Some(0));
        incomplete(&mut never, Incomplete::NotStarted, 0.0);
        let run = RunResult { flows: vec![never], ..sample("reps", "healthy", &[]) };
        let table = workload_table(&[run.summary()]).unwrap();
        let line: Vec<&str> = table.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!(
            line[4..],
            ["0/1,", "0.0", "%", "0/1", "0.0", "-", "-", "-", "-", "-", "-", "-", "-", "-"],
            "{table}"
        );
        let none = Collectives { collectives_total: 1, ..Collectives::default() };
        assert_eq!(run.workloads()[0].collectives, Some(none));
    }

    #[test]
    fn a_run_of_one_workload_has_no_separate_table() {
        assert_eq!(workload_table(&[sample("reps", "healthy", &[1.0, 2.0]).summary()]), None);
    }

    //= docs/specs/collectives.md#COL-7 completion time of a collective
    #[test]
    fn collectives_last_from_the_first_start_to_the_last_end() {
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
            collectives_total: 2,
            collectives: 2,
            cct_mean_us,
            cct_p99_us: longest,
            cct_max_us: longest,
            // One host sent two bytes in each.
            bus_bandwidth_gbps: Some(0.001),
            step_mean_us: longest,
        };
        assert_eq!(found, expected);
        // The second collective is cut off 30 us after its start, and the third has not started.
        let mut cut = run.clone();
        (cut.end_us, cut.flows[3]) = (50.0, cut_off(cut.flows[3].clone(), 50.0));
        let mut waits = flow("r", 1, [0.0, 1.0], Some(2));
        incomplete(&mut waits, Incomplete::NotStarted, 0.0);
        cut.flows.push(waits);
        let own = &cut.workloads()[0];
        let Collectives { collectives_total, collectives, cct_mean_us, cct_max_us, .. } = own.collectives.unwrap();
        assert_eq!((collectives_total, collectives, cct_mean_us, cct_max_us), (3, 1, Some(21.0), Some(30.0)));
        let found = own.collectives.unwrap();
        assert_eq!((found.bus_bandwidth_gbps, found.step_mean_us), (None, None));
        assert!(["cct_mean_us", "cct_max_us"].iter().all(|key| own.lower_bounds.contains(&(*key).into())));
        let table = workload_table(&[cut.summary()]).unwrap();
        assert!(table.contains(" 1/3 ") && table.contains(" > 21.0 "), "{table}");
        let beside = RunResult { flows: vec![flow("s", 1, [0.0, 1.0], None)], ..sample("reps", "healthy", &[]) };
        let table = workload_table(&[run.summary(), beside.summary()]).unwrap();
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].contains("CCT mean us") && lines[2].contains(" 16.0 ") && lines[3].ends_with(" -"), "{table}");
    }
}
