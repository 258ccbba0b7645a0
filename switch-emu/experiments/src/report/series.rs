//! The series of the plots, computed from a run's samples.

use std::collections::BTreeMap;

use super::chart::Line;
use crate::results::{EventKind, PortResult, PortSample, RunResult};

/// Most points per line. More than a screen can show would only make the page larger.
const BINS: usize = 160;

/// Rate of delivered payload over time, in Gb/s.
pub(super) fn goodput(run: &RunResult) -> Vec<Line> {
    let cumulative: Vec<(f64, u64)> = run.delivered.iter().map(|s| (s.time_us, s.bytes)).collect();
    vec![Line { name: "delivered payload".into(), points: rates(&cumulative, 1.0) }]
}

/// Bytes waiting at the `count` ports with the longest queues, in kB.
pub(super) fn queues(run: &RunResult, count: usize) -> Vec<Line> {
    let peak = |samples: &[PortSample]| samples.iter().map(|s| s.queue_bytes).max().unwrap_or(0);
    let mut series: Vec<_> = run.port_samples.iter().filter(|s| !s.samples.is_empty()).collect();
    series.sort_by_key(|s| std::cmp::Reverse(peak(&s.samples)));
    let line = |s: &&crate::results::PortSeries| Line { name: s.name.clone(), points: maxima(&s.samples) };
    series.truncate(count);
    series.sort_by(|a, b| a.name.cmp(&b.name));
    series.iter().map(line).collect()
}

/// Use of the uplinks of one switch over time, in per cent of their full rate. It is a switch at which a link failed, if there
/// is one.
pub(super) fn uplinks(run: &RunResult, count: usize) -> Vec<Line> {
    let ports: BTreeMap<&str, &PortResult> =
        run.ports.iter().filter(|p| p.uplink && p.rate_gbps > 0.0).map(|p| (p.name.as_str(), p)).collect();
    let switch = interesting_switch(run, &ports);
    let mut lines = Vec::new();
    for series in run.port_samples.iter().filter(|s| !s.samples.is_empty()) {
        let Some(port) = ports.get(series.name.as_str()).filter(|p| switch == Some(switch_of(&p.name))) else {
            continue;
        };
        let cumulative: Vec<(f64, u64)> = series.samples.iter().map(|s| (s.time_us, s.sent_bytes)).collect();
        lines.push(Line { name: series.name.clone(), points: rates(&cumulative, port.rate_gbps / 100.0) });
    }
    lines.truncate(count);
    lines
}

/// The share of flows that completed within a time, in percent.
pub(super) fn fct_cdf(name: &str, run: &RunResult) -> Line {
    let fcts = run.sorted_fcts();
    let percent = |done: usize| done as f64 * 100.0 / run.flows.len().max(1) as f64;
    let steps = fcts.iter().enumerate().flat_map(|(i, fct)| [(*fct, percent(i)), (*fct, percent(i + 1))]);
    Line { name: name.into(), points: steps.collect() }
}

/// The times at which links failed and recovered.
pub(super) fn moments(run: &RunResult) -> Vec<f64> {
    let changes = run.events.iter().filter(|e| matches!(e.kind, EventKind::Failure | EventKind::Recovered));
    changes.map(|e| e.time_us).filter(|t| t.is_finite()).take(16).collect()
}

/// The times of the events of each kind; kinds are in the order of their first event.
pub(super) fn event_rows(run: &RunResult) -> Vec<(String, Vec<f64>)> {
    let mut rows: Vec<(String, Vec<f64>)> = Vec::new();
    for event in run.events.iter().filter(|e| e.time_us.is_finite()) {
        let kind = event.kind.to_string().replace('_', " ");
        match rows.iter_mut().find(|(name, _)| *name == kind) {
            Some((_, times)) => times.push(event.time_us),
            None => rows.push((kind, vec![event.time_us])),
        }
    }
    for (_, times) in &mut rows {
        thin(times);
    }
    rows
}

/// Keeps at most [`BINS`] of the times, evenly spread.
fn thin(times: &mut Vec<f64>) {
    let step = times.len().div_ceil(BINS).max(1);
    let mut index = 0;
    times.retain(|_| {
        index += 1;
        (index - 1) % step == 0
    });
}

fn interesting_switch<'a>(run: &'a RunResult, ports: &BTreeMap<&'a str, &'a PortResult>) -> Option<&'a str> {
    let failed = run.events.iter().filter(|e| e.kind == EventKind::Failure).map(|e| e.subject.as_str());
    let failed = failed.filter(|subject| ports.contains_key(subject)).map(switch_of).next();
    let busiest = || ports.values().max_by_key(|p| p.bytes).map(|p| switch_of(&p.name));
    failed.or_else(busiest)
}

/// `leaf0` of `leaf0->spine1`.
fn switch_of(port: &str) -> &str {
    port.split("->").next().unwrap_or(port)
}

/// Rates in `unit_gbps` between ascending cumulative byte counts, one per bin, at the bins' middles.
fn rates(cumulative: &[(f64, u64)], unit_gbps: f64) -> Vec<(f64, f64)> {
    let step = cumulative.len().div_ceil(BINS).max(1);
    let marks: Vec<&(f64, u64)> = cumulative.iter().step_by(step).chain(cumulative.last()).collect();
    let rate = |pair: &[&(f64, u64)]| {
        let (from, to) = (pair[0], pair[1]);
        let gbps = crate::results::gbps(to.1.saturating_sub(from.1), to.0 - from.0);
        (to.0 > from.0).then(|| (f64::midpoint(from.0, to.0), gbps / unit_gbps))
    };
    marks.windows(2).filter_map(rate).collect()
}

/// The largest queue of each bin, in kB. The mean would hide peaks.
fn maxima(samples: &[PortSample]) -> Vec<(f64, f64)> {
    let step = samples.len().div_ceil(BINS).max(1);
    let largest = |bin: &[PortSample]| {
        let peak = bin.iter().map(|s| s.queue_bytes).max().unwrap_or(0);
        (bin[0].time_us, peak as f64 / 1e3)
    };
    samples.chunks(step).map(largest).collect()
}
