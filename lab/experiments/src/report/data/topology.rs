//! The drawing of the fabric: switches, links, their load between events, and failures.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;
use spray_fabric::LinkPattern;

use super::ports::sent;
use super::series::{count_at, end_us, is_change, thinned};
use crate::results::{EventKind, EventRow, RunResult, Shape, drops_all, us};

/// Above this number of directed links, similar switches are merged.
const LINKS: usize = 384;
/// Maximum number of switches at failed links that are not merged.
const ALONE: usize = 6;
/// Number of equal time slices, in addition to event times.
const SLICES: usize = 24;
/// Maximum number of events that begin an interval.
const EVENTS: usize = 40;
/// Maximum number of failures drawn.
const FAILURES: usize = 200;

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Topology {
    pub nodes: Vec<NodeData>,
    pub links: Vec<LinkData>,
    /// Start of each interval, and end of the last.
    pub times: Vec<f64>,
    pub failures: Vec<Failed>,
    pub is_whole: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct NodeData {
    pub name: String,
    pub tier: usize,
    pub hosts: usize,
    /// Number of switches merged into it.
    pub switches: usize,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct LinkData {
    pub name: String,
    pub from: usize,
    pub to: usize,
    /// Number of links merged into it.
    pub links: usize,
    /// Bytes sent in each interval, in per cent of the capacity.
    pub load: Vec<f64>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Failed {
    pub links: Vec<usize>,
    pub from_us: f64,
    /// `None` if it is permanent.
    pub until_us: Option<f64>,
    /// Whether the links drop all frames, permanently or in outages.
    pub drops_all: bool,
    pub what: String,
}

impl Topology {
    /// Returns `None` without links between switches.
    pub(super) fn of(run: &RunResult) -> Option<Self> {
        let shape = &run.shape;
        if shape.links.is_empty() {
            return None;
        }
        let is_whole = shape.links.len() <= LINKS;
        let alone = if is_whole { (0..shape.switches.len()).collect() } else { failed_switches(run) };
        let (node_of, nodes) = nodes(shape, &alone);
        let (link_of, mut links) = links(shape, &node_of, &nodes, is_whole);
        let times = times(run);
        loads(run, &times, &link_of, &mut links);
        let failures = failures(run, &link_of);
        Some(Self { nodes, links, times, failures, is_whole })
    }
}

/// Returns the node of each switch, and the nodes: one a tier, and one a switch of `alone`.
fn nodes(shape: &Shape, alone: &HashSet<usize>) -> (Vec<usize>, Vec<NodeData>) {
    let mut nodes: Vec<NodeData> = Vec::new();
    let mut rest: HashMap<usize, usize> = HashMap::new();
    let mut node_of = Vec::new();
    for (index, switch) in shape.switches.iter().enumerate() {
        let place = if alone.contains(&index) { None } else { rest.get(&switch.tier).copied() };
        let place = place.unwrap_or_else(|| {
            nodes.push(NodeData { name: switch.name.clone(), tier: switch.tier, ..NodeData::default() });
            if !alone.contains(&index) {
                rest.insert(switch.tier, nodes.len() - 1);
            }
            nodes.len() - 1
        });
        nodes[place].switches += 1;
        nodes[place].hosts += switch.hosts;
        node_of.push(place);
    }
    for node in nodes.iter_mut().filter(|node| node.switches > 1) {
        let stem = node.name.trim_end_matches(|c: char| c.is_ascii_digit());
        node.name = format!("{} {stem}", node.switches);
    }
    (node_of, nodes)
}

fn failed_switches(run: &RunResult) -> HashSet<usize> {
    let mut found = HashSet::new();
    for pattern in failures_of(run).map(|event| LinkPattern::new(&event.subject)) {
        for link in run.shape.links.iter().filter(|link| pattern.matches(&link.name)) {
            found.extend([link.from, link.to]);
            if found.len() >= ALONE {
                return found;
            }
        }
    }
    found
}

/// Returns the drawn link by link name, and the drawn links.
fn links<'a>(
    shape: &'a Shape,
    node_of: &[usize],
    nodes: &[NodeData],
    is_whole: bool,
) -> (HashMap<&'a str, usize>, Vec<LinkData>) {
    let mut drawn: Vec<LinkData> = Vec::new();
    let mut by_ends: HashMap<(usize, usize), usize> = HashMap::new();
    let mut by_name = HashMap::new();
    for link in &shape.links {
        let (from, to) = (node_of[link.from], node_of[link.to]);
        let known = if is_whole { None } else { by_ends.get(&(from, to)).copied() };
        let place = known.unwrap_or_else(|| {
            let ends = || format!("{}->{}", nodes[from].name, nodes[to].name);
            let name = if is_whole { link.name.clone() } else { ends() };
            drawn.push(LinkData { name, from, to, ..LinkData::default() });
            drawn.len() - 1
        });
        by_ends.insert((from, to), place);
        drawn[place].links += 1;
        by_name.insert(link.name.as_str(), place);
    }
    (by_name, drawn)
}

fn failures_of(run: &RunResult) -> impl Iterator<Item = &EventRow> {
    run.events.iter().filter(|event| event.kind == EventKind::Failure && event.action != "given-up")
}

/// Returns the interval borders: event times and equal slices, if there are samples.
fn times(run: &RunResult) -> Vec<f64> {
    let end = end_us(run);
    let changes = run.events.iter().filter(|event| is_change(event.kind)).map(|event| event.time_us);
    let changes: BTreeSet<u64> =
        changes.filter(|time| *time > 0.0 && *time < end).map(|us| (us * 1e6) as u64).collect();
    let changes = thinned(changes.into_iter().collect(), EVENTS).into_iter().map(us);
    let is_sampled = run.port_samples.iter().any(|series| series.bins.len() > 1);
    let slices = if is_sampled { SLICES } else { 1 };
    let mut times: Vec<f64> = (0..=slices).map(|slice| end * slice as f64 / slices as f64).collect();
    if is_sampled {
        times.extend(changes);
    }
    times.sort_by(f64::total_cmp);
    times.dedup_by(|b, a| *b - *a < end / 1e5);
    times
}

/// Sets the loads of drawn links, from samples or else from the ports' totals.
fn loads(run: &RunResult, times: &[f64], link_of: &HashMap<&str, usize>, links: &mut [LinkData]) {
    let steps = times.len().saturating_sub(1);
    let mut bytes = vec![vec![0.0; steps]; links.len()];
    let mut rate_bps = vec![0.0; links.len()];
    let mut add = |port: usize, of: &dyn Fn(f64, f64) -> f64| {
        let port = &run.ports[port];
        let Some(&link) = link_of.get(port.name.as_str()) else { return };
        rate_bps[link] += port.rate_bps as f64;
        bytes[link].iter_mut().zip(times.windows(2)).for_each(|(sum, pair)| *sum += of(pair[0], pair[1]));
    };
    if steps == 1 {
        (0..run.ports.len()).for_each(|port| add(port, &|_, _| run.ports[port].counters.bytes as f64));
    } else {
        for series in &run.port_samples {
            let sent = sent(series);
            add(series.port, &|from, to| count_at(&sent, to) - count_at(&sent, from));
        }
    }
    for (place, link) in links.iter_mut().enumerate() {
        let load = |(bytes, pair): (&f64, &[f64])| {
            let full = rate_bps[place] * (pair[1] - pair[0]) / 8e6;
            (bytes / full * 1e3).round() / 10.0
        };
        link.load = bytes[place].iter().zip(times.windows(2)).map(load).collect();
    }
}

fn failures(run: &RunResult, link_of: &HashMap<&str, usize>) -> Vec<Failed> {
    let failed = |event: &EventRow| {
        let pattern = LinkPattern::new(&event.subject);
        let hit = run.shape.links.iter().filter(|link| pattern.matches(&link.name));
        let links: BTreeSet<usize> = hit.filter_map(|link| link_of.get(link.name.as_str()).copied()).collect();
        Failed {
            links: links.into_iter().collect(),
            from_us: event.time_us,
            until_us: event.until_us,
            drops_all: drops_all(event.action),
            what: format!("{}: {}", event.subject, event.words()),
        }
    };
    failures_of(run).take(FAILURES).map(failed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::sample;
    use spray_fabric::{LeafSpine, PortOutcome};

    fn run(leaves: usize, spines: usize) -> RunResult {
        let network = LeafSpine::uniform([leaves, spines, 2], 100_000_000_000, 1).network();
        let mut run = sample("reps", "broken", &[200.0]);
        run.shape = Shape::of(&network);
        let port = |name: &str| PortOutcome { name: name.into(), ..run.ports[0].clone() };
        run.ports = run.shape.links.iter().map(|link| port(&link.name)).collect();
        run
    }

    #[test]
    fn a_small_fabric_is_drawn_link_by_link_and_cut_at_its_events() {
        let run = run(2, 2);
        let drawn = Topology::of(&run).unwrap();
        assert!(drawn.is_whole);
        assert_eq!((drawn.nodes.len(), drawn.links.len(), drawn.links[0].links), (4, 8, 1));
        assert!(drawn.times.contains(&50.0) && drawn.times.contains(&120.0));
        let sum: f64 = drawn.links[0].load.iter().zip(drawn.times.windows(2)).map(|(l, t)| l * (t[1] - t[0])).sum();
        // 80 samples of 12,000 bytes in 200 us of 100 Gb/s.
        assert!((sum / 200.0 - 38.4).abs() < 0.2, "{sum}");
        let [failure] = drawn.failures.as_slice() else { panic!("{:?}", drawn.failures) };
        assert_eq!(
            (failure.from_us, failure.until_us, failure.drops_all),
            (50.0, Some(120.0), false),
            "the link is slow"
        );
        let names: Vec<&str> = failure.links.iter().map(|link| drawn.links[*link].name.as_str()).collect();
        assert_eq!(names, ["leaf0->spine0"]);
    }

    #[test]
    fn a_large_fabric_is_drawn_by_tiers_and_around_its_failures() {
        let run = run(32, 16);
        let drawn = Topology::of(&run).unwrap();
        assert!(!drawn.is_whole);
        let names: Vec<&str> = drawn.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names.len(), 4, "{names:?}");
        assert!(["leaf0", "spine0", "31 leaf", "15 spine"].iter().all(|name| names.contains(name)), "{names:?}");
        assert_eq!(drawn.links.iter().map(|link| link.links).sum::<usize>(), 2 * 32 * 16);
        assert!(drawn.failures[0].links.iter().all(|link| drawn.links[*link].name == "leaf0->spine0"));
        assert!(Topology::of(&sample("reps", "x", &[1.0])).is_none());
    }
}
