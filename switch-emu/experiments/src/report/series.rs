//! The series of the plots, computed from a run's samples.

use spray_fabric::{LinkPattern, PortOutcome, PortSamples};

use super::chart::Line;
use crate::results::{EventKind, Finished, RunResult, Spread, gbps, us};

/// Most points per line. More than a screen can show would only make the page larger.
const BINS: usize = 160;

/// Rate of delivered payload over time, in Gb/s.
pub(super) fn goodput(run: &RunResult) -> Vec<Line> {
    vec![Line {
        name: "delivered payload".into(),
        points: rates(run.delivered.iter().copied(), 1.0),
        ..Line::default()
    }]
}

/// Bytes waiting at the `count` ports with the longest queues, in kB.
pub(super) fn queues(run: &RunResult, count: usize) -> Vec<Line> {
    let mut series: Vec<_> = run.port_samples.iter().filter(|s| !s.samples.is_empty()).collect();
    series.sort_by_key(|s| std::cmp::Reverse(peak(&s.samples)));
    let line =
        |s: &&PortSamples| Line { name: run.ports[s.port].name.clone(), points: maxima(&s.samples), ..Line::default() };
    series.truncate(count);
    series.sort_by_key(|s| &run.ports[s.port].name);
    series.iter().map(line).collect()
}

/// Use of the uplinks of one switch over time, in per cent of their full rate. It is a switch at which a link failed, if there
/// is one.
pub(super) fn uplinks(run: &RunResult, count: usize) -> Vec<Line> {
    let switch = interesting_switch(run);
    let sampled = run.port_samples.iter().filter(|s| !s.samples.is_empty()).map(|s| (s, &run.ports[s.port]));
    let shown = sampled.filter(|(_, port)| is_uplink(port) && switch == Some(switch_of(&port.name))).take(count);
    let line = |(series, port): (&PortSamples, &PortOutcome)| {
        let sent = series.samples.iter().map(|(ps, _, sent_bytes)| (*ps, *sent_bytes));
        Line { name: port.name.clone(), points: rates(sent, port.rate_bps as f64 / 1e9 / 100.0), ..Line::default() }
    };
    shown.map(line).collect()
}

/// The share of flows that completed within a time, in percent.
pub(super) fn fct_cdf(name: &str, run: &RunResult) -> Line {
    let fcts = run.sorted_fcts();
    let percent = |done: usize| done as f64 * 100.0 / run.flows.len().max(1) as f64;
    let steps = fcts.iter().enumerate().flat_map(|(i, fct)| [(*fct, percent(i)), (*fct, percent(i + 1))]);
    Line { name: name.into(), points: steps.collect(), ..Line::default() }
}

/// The share of flows that completed within a time, in percent: at each hundredth the mean time over `runs`, with its 95 % interval.
pub(super) fn fct_cdf_of(name: &str, runs: &[&Finished]) -> Line {
    let shortest = runs.iter().map(|run| run.fct_us.len()).min().unwrap_or(0);
    let at = |percent: usize| (percent as f64, spread(runs, |run| run.fct_us[percent]));
    let steps: Vec<(f64, Spread)> = (0..shortest).map(at).collect();
    let side =
        |sign: f64| steps.iter().map(move |(percent, time)| (time.mean + sign * time.ci95.unwrap_or(0.0), *percent));
    Line { name: name.into(), points: side(0.0).collect(), band: band(runs, side(-1.0), side(1.0)) }
}

/// Rate of delivered payload over time in Gb/s: the mean over `runs`, with its 95 % interval.
pub(super) fn goodput_of(name: &str, runs: &[&Finished]) -> Line {
    const BINS: usize = 80;
    let end = runs.iter().filter_map(|run| run.delivered.last()).map(|(time, _)| *time).fold(0.0, f64::max);
    if end <= 0.0 {
        return Line { name: name.into(), ..Line::default() };
    }
    let time = |bin: usize| end * bin as f64 / BINS as f64;
    let rate = |run: &Finished, bin: usize| {
        let bytes = delivered(&run.delivered, time(bin + 1)) - delivered(&run.delivered, time(bin));
        gbps(bytes.max(0.0) as u64, end / BINS as f64)
    };
    let at = |bin: usize| (f64::midpoint(time(bin), time(bin + 1)), spread(runs, |run| rate(run, bin)));
    let bins: Vec<(f64, Spread)> = (0..BINS).map(at).collect();
    let side = |sign: f64| {
        bins.iter().map(move |(time, rate)| (*time, (rate.mean + sign * rate.ci95.unwrap_or(0.0)).max(0.0)))
    };
    Line { name: name.into(), points: side(0.0).collect(), band: band(runs, side(-1.0), side(1.0)) }
}

/// Payload delivered by `time`, between the samples in proportion.
fn delivered(samples: &[(f64, f64)], time: f64) -> f64 {
    let next = samples.partition_point(|(at, _)| *at < time);
    match (next.checked_sub(1).map(|before| samples[before]), samples.get(next)) {
        (Some((from, a)), Some((to, b))) => a + (b - a) * (time - from) / (to - from),
        (Some((_, bytes)), None) => bytes,
        (None, first) => first.map_or(0.0, |(_, bytes)| *bytes),
    }
}

fn spread(runs: &[&Finished], of: impl Fn(&Finished) -> f64) -> Spread {
    Spread::of(&runs.iter().map(|run| of(run)).collect::<Vec<_>>())
}

/// The outline between two lines; none around the line of a single run.
fn band(
    runs: &[&Finished],
    low: impl Iterator<Item = (f64, f64)>,
    high: impl DoubleEndedIterator<Item = (f64, f64)>,
) -> Vec<(f64, f64)> {
    if runs.len() > 1 { low.chain(high.rev()).collect() } else { Vec::new() }
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

fn is_uplink(port: &PortOutcome) -> bool {
    port.uplink && port.rate_bps > 0
}

fn interesting_switch(run: &RunResult) -> Option<&str> {
    let uplinks: Vec<&PortOutcome> = run.ports.iter().filter(|port| is_uplink(port)).collect();
    let failed = run.events.iter().filter(|event| event.kind == EventKind::Failure);
    let first = |subject: &str| {
        let pattern = LinkPattern::new(subject);
        uplinks.iter().find(|port| pattern.means(&port.name))
    };
    let failed = failed.filter_map(|event| first(&event.subject)).next();
    let busiest = || uplinks.iter().max_by_key(|port| port.counters.bytes);
    failed.or_else(busiest).map(|port| switch_of(&port.name))
}

/// `leaf0` of `leaf0->spine1`.
fn switch_of(port: &str) -> &str {
    port.split("->").next().unwrap_or(port)
}

/// Rates in `unit_gbps` between ascending (time in ps, bytes so far), one per bin, at the bins' middles.
fn rates(cumulative: impl Iterator<Item = (u64, u64)>, unit_gbps: f64) -> Vec<(f64, f64)> {
    let cumulative: Vec<(f64, u64)> = cumulative.map(|(ps, bytes)| (us(ps), bytes)).collect();
    let step = cumulative.len().div_ceil(BINS).max(1);
    let marks: Vec<&(f64, u64)> = cumulative.iter().step_by(step).chain(cumulative.last()).collect();
    let rate = |pair: &[&(f64, u64)]| {
        let (from, to) = (pair[0], pair[1]);
        let gbps = gbps(to.1.saturating_sub(from.1), to.0 - from.0);
        (to.0 > from.0).then(|| (f64::midpoint(from.0, to.0), gbps / unit_gbps))
    };
    marks.windows(2).filter_map(rate).collect()
}

/// The largest queue of each bin, in kB. The mean would hide peaks.
fn maxima(samples: &[(u64, u64, u64)]) -> Vec<(f64, f64)> {
    let step = samples.len().div_ceil(BINS).max(1);
    samples.chunks(step).map(|bin| (us(bin[0].0), peak(bin) as f64 / 1e3)).collect()
}

/// Most bytes waiting in any of the samples.
fn peak(samples: &[(u64, u64, u64)]) -> u64 {
    samples.iter().map(|(_, queue_bytes, _)| *queue_bytes).max().unwrap_or(0)
}
