//! Queues and loads of ports over time, and drops by port.

use std::collections::HashSet;

use serde::Serialize;
use spray_fabric::{LinkPattern, PortOutcome, PortSamples};

use super::series::{count_at, end_us};
use crate::results::{Drops, EventKind, RunResult, us};

/// Maximum number of ports with a row.
const ROWS: usize = 64;
/// Maximum number of time bins.
const BINS: usize = 160;
/// Maximum number of ports that are initially selected: one for each colour.
const SHOWN: usize = 8;
/// Maximum number of ports in the list of drops.
const PLACES: usize = 24;

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Ports {
    pub bin_us: f64,
    pub rows: Vec<Row>,
    pub sampled: usize,
    pub shown: Vec<usize>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Row {
    pub name: String,
    /// The maximum of each bin, as the mean would hide peaks.
    pub queue_kb: Vec<f64>,
    /// Sent bytes in per cent of the link's nominal capacity.
    pub load: Vec<f64>,
}

/// Returns (time in us, cumulative bytes sent) of a port.
pub(super) fn sent(series: &PortSamples) -> Vec<(f64, f64)> {
    series.sent().map(|(ps, bytes)| (us(ps), bytes as f64)).collect()
}

impl Ports {
    pub(super) fn of(run: &RunResult) -> Self {
        let failed = failed_ports(run);
        let shown = shown(run);
        let mut series: Vec<&PortSamples> = run.port_samples.iter().filter(|s| !s.bins.is_empty()).collect();
        let sampled = series.len();
        series.sort_by_cached_key(|s| {
            let is_named = shown.contains(&s.port) || failed.contains(&s.port);
            (!is_named, std::cmp::Reverse(s.peak_bytes()))
        });
        series.truncate(ROWS);
        series.sort_by_key(|s| s.port);
        let most = series.iter().map(|s| s.bins.len()).max().unwrap_or(0);
        let bins = most.clamp(1, BINS);
        let bin_us = end_us(run) / bins as f64;
        let rows = series.iter().map(|s| Row::of(&run.ports[s.port], s, bins, bin_us)).collect();
        let row_of = |port: &usize| series.iter().position(|s| s.port == *port);
        Self { bin_us, rows, sampled, shown: shown.iter().filter_map(row_of).collect() }
    }
}

impl Row {
    fn of(port: &PortOutcome, series: &PortSamples, bins: usize, bin_us: f64) -> Self {
        let mut queues = vec![f64::NAN; bins];
        for (number, counted) in (0..).zip(&series.bins) {
            let middle = us(number * series.bin_ps + series.bin_ps / 2);
            let bin = ((middle / bin_us.max(1e-9)) as usize).min(bins - 1);
            queues[bin] = queues[bin].max(counted.queue_max as f64 / 1e3);
        }
        let sent = sent(series);
        let full = port.rate_bps as f64 * bin_us / 8e6;
        let load = |bin: usize| {
            let bytes = count_at(&sent, bin_us * (bin + 1) as f64) - count_at(&sent, bin_us * bin as f64);
            (bytes / full * 1e3).round() / 10.0
        };
        let tenths = |value: f64| (value * 10.0).round() / 10.0;
        Self {
            name: port.name.clone(),
            queue_kb: queues.into_iter().map(tenths).collect(),
            load: (0..bins).map(load).collect(),
        }
    }
}

fn drops(port: &PortOutcome, name: &str) -> Drops {
    let c = &port.counters;
    Drops { name: name.into(), counts: [c.drops_queue, c.drops_link(), c.drops_random, c.drops_ttl, c.trims] }
}

/// Returns the ports with the most drops and trims, and the number of further ones.
pub(super) fn places(run: &RunResult) -> (Vec<Drops>, usize) {
    let places = run.ports.iter().map(|port| drops(port, &port.name));
    let mut places: Vec<Drops> = places.filter(|place| place.total() > 0).collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.total()));
    let more = places.len().saturating_sub(PLACES);
    places.truncate(PLACES);
    (places, more)
}

pub(super) fn layers(run: &RunResult) -> Vec<Drops> {
    Drops::sums(run.ports.iter().map(|port| drops(port, &port.layer)))
}

fn failed_ports(run: &RunResult) -> HashSet<usize> {
    let failures = run.events.iter().filter(|event| event.kind == EventKind::Failure);
    let named: HashSet<&str> = failures.map(|event| event.subject.as_str()).collect();
    let patterns: Vec<LinkPattern> = named.into_iter().map(LinkPattern::new).collect();
    let fails = |port: &PortOutcome| patterns.iter().any(|pattern| pattern.matches(&port.name));
    run.ports.iter().enumerate().filter(|(_, port)| fails(port)).map(|(index, _)| index).collect()
}

/// Returns the sampled uplinks of one switch: with a failed link, or else the busiest.
fn shown(run: &RunResult) -> Vec<usize> {
    let switch = interesting_switch(run);
    let sampled = run.port_samples.iter().filter(|s| !s.bins.is_empty()).map(|s| s.port);
    let is_meant = |port: &usize| {
        let port = &run.ports[*port];
        is_uplink(port) && switch == Some(switch_of(&port.name))
    };
    sampled.filter(is_meant).take(SHOWN).collect()
}

fn is_uplink(port: &PortOutcome) -> bool {
    port.uplink && port.rate_bps > 0
}

fn interesting_switch(run: &RunResult) -> Option<&str> {
    let uplinks: Vec<&PortOutcome> = run.ports.iter().filter(|port| is_uplink(port)).collect();
    let failed = run.events.iter().filter(|event| event.kind == EventKind::Failure);
    let first = |subject: &str| {
        let pattern = LinkPattern::new(subject);
        uplinks.iter().find(|port| pattern.matches(&port.name))
    };
    let failed = failed.filter_map(|event| first(&event.subject)).next();
    let busiest = || uplinks.iter().max_by_key(|port| port.counters.bytes);
    failed.or_else(busiest).map(|port| switch_of(&port.name))
}

/// `leaf0` of `leaf0->spine1`.
fn switch_of(port: &str) -> &str {
    port.split("->").next().unwrap_or(port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::sample;

    /// The sample's busiest uplink is leaf0's.
    #[test]
    fn lines_are_those_of_a_switch_with_a_failed_link() {
        for (failed, shown) in [
            ("leaf1->spine0", "leaf1->spine0"),
            ("leaf1-spine0", "leaf1->spine0"),
            ("spine0-leaf1", "leaf1->spine0"),
            ("leaf1", "leaf1->spine0"),
            ("leaf1*->spine*", "leaf1->spine0"),
            ("spine1", "leaf0->spine0"),
            ("h9->leaf1", "leaf0->spine0"),
        ] {
            let mut run = sample("reps", "broken", &[150.0]);
            (run.ports[0].counters.bytes, run.ports[2].counters.bytes) = (9_000_000, 10);
            run.events[0].subject = failed.into();
            let ports = Ports::of(&run);
            assert_eq!(ports.rows[ports.shown[0]].name, shown, "{failed}");
        }
    }

    #[test]
    fn bins_are_sums_of_the_samples() {
        let run = sample("reps", "broken", &[160.0]);
        let ports = Ports::of(&run);
        let (row, bin_us) = (&ports.rows[0], ports.bin_us);
        // The samples end at 160 us, the run's payload at 200.
        assert_eq!((ports.rows.len(), row.load.len(), bin_us), (3, 80, 2.5));
        let bytes: f64 = row.load.iter().map(|load| load / 100.0 * 100e9 / 8e6 * bin_us).sum();
        assert!((bytes / (80.0 * 12_000.0) - 1.0).abs() < 0.001, "{bytes}");
        let most = row.queue_kb.iter().copied().fold(0.0, f64::max);
        assert!((most - run.port_samples[0].peak_bytes() as f64 / 1e3).abs() <= 0.05);
    }

    #[test]
    fn rows_are_few_and_sorted_by_load() {
        let mut run = sample("reps", "broken", &[160.0]);
        run.ports = (0..40).map(|i| PortOutcome { name: format!("p{i}"), ..run.ports[i % 3].clone() }).collect();
        run.ports[7].counters.drops_ttl = 99;
        let (places, more) = places(&run);
        assert_eq!((places.len(), more, places[0].name.as_str(), places[0].counts), (24, 16, "p7", [1, 3, 0, 99, 1]));
        let all = layers(&run);
        assert_eq!(all.iter().map(|layer| layer.counts[1]).sum::<u64>(), 120);
    }
}
