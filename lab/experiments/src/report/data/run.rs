//! Data of the page of a run.

use serde::Serialize;
use spray_core::event::Choice;
use spray_fabric::BANDS;

use super::Line;
use super::ports::{Ports, layers, places};
use super::series::{distribution, end_us, is_change, rates, thinned};
use super::topology::Topology;
use crate::results::{
    ConnectionEvs, Drops, EvBin, EventKind, EventRow, FlowResult, RunResult, SizeClass, grouped, size_classes,
    slowdown, us,
};

/// Maximum number of workloads with a line.
const WORKLOADS: usize = 8;
/// Maximum number of marked times in plots over time.
const MOMENTS: usize = 24;
/// Maximum number of plotted events of one kind.
const EVENTS: usize = 300;

/// Data of the page. Times are in us.
#[derive(Debug, Serialize)]
pub(in crate::report) struct RunData {
    kind: &'static str,
    balancer: String,
    end_us: f64,
    moments: Vec<Moment>,
    /// Delivered payload in Gb/s.
    goodput: Line,
    /// Per cent of flows completed within a time: all, and by workload if there are several.
    fct: Vec<Line>,
    sizes: Vec<Sizes>,
    ports: Ports,
    topology: Option<Topology>,
    causes: [&'static str; 5],
    places: Vec<Drops>,
    /// Number of ports with drops that are not among `places`.
    more_places: usize,
    layers: Vec<Drops>,
    events: Vec<Events>,
    choices: [&'static str; 4],
    evs: Vec<Evs>,
}

#[derive(Debug, Serialize)]
struct Sizes {
    name: String,
    sizes: Vec<SizeClass>,
}

#[derive(Debug, Serialize)]
struct Evs {
    connection: String,
    begin_us: f64,
    bin_us: f64,
    /// Packets by choice, in each bin.
    packets: [Vec<u64>; 4],
    /// Number of bands with packets in each bin.
    used: Vec<usize>,
    /// By band, lowest first, a character for each bin: the choice of most packets, or `.`.
    bands: Vec<(u8, String)>,
}

impl Evs {
    fn of(own: &ConnectionEvs) -> Self {
        let bands = (0..BANDS as u8).filter_map(|band| {
            let kind = |bin: &EvBin| {
                let counts = bin.bands.iter().find(|(of, _)| *of == band).map(|(_, counts)| counts);
                let most = |counts: &[u32; 4]| (0..4).max_by_key(|choice| counts[*choice]).unwrap_or(0);
                counts.map_or('.', |counts| char::from(b'0' + most(counts) as u8))
            };
            let kinds: String = own.bins.iter().map(kind).collect();
            kinds.contains(|kind| kind != '.').then_some((band, kinds))
        });
        Self {
            connection: own.connection.clone(),
            begin_us: own.begin_us,
            bin_us: own.bin_us,
            packets: std::array::from_fn(|choice| own.bins.iter().map(|bin| bin.packets[choice]).collect()),
            used: own.bins.iter().map(|bin| bin.bands.len()).collect(),
            bands: bands.collect(),
        }
    }
}

#[derive(Debug, Serialize)]
struct Moment {
    at_us: f64,
    what: String,
}

#[derive(Debug, Serialize)]
struct Events {
    kind: String,
    /// The total; `times` may have fewer.
    count: usize,
    times: Vec<f64>,
}

impl RunData {
    pub(in crate::report) fn of(run: &RunResult) -> Self {
        let delivered: Vec<(f64, f64)> = run.delivered.iter().map(|(ps, bytes)| (us(*ps), *bytes as f64)).collect();
        let groups = groups(run);
        let (places, more_places) = places(run);
        Self {
            kind: "run",
            balancer: run.balancer.clone(),
            end_us: end_us(run),
            moments: moments(run),
            goodput: Line::new("delivered payload", rates(&delivered).into_iter()),
            fct: groups.iter().map(|(name, flows)| completion(name, flows)).collect(),
            sizes: groups.iter().map(|(name, flows)| sizes(name, flows)).collect(),
            ports: Ports::of(run),
            topology: Topology::of(run),
            causes: Drops::CAUSES,
            places,
            more_places,
            layers: layers(run),
            events: events(run),
            choices: Choice::ALL.map(Choice::name),
            evs: run.evs.iter().map(Evs::of).collect(),
        }
    }

    /// Returns the plots, each with whether it has data.
    pub(in crate::report) fn plots(&self) -> [(&'static str, bool); 8] {
        [
            ("goodput", !self.goodput.x.is_empty()),
            ("topology", self.topology.is_some()),
            ("ports", !self.ports.rows.is_empty()),
            ("fct", self.fct.iter().any(|line| !line.x.is_empty())),
            ("sizes", self.sizes.iter().any(|own| !own.sizes.is_empty())),
            ("drops", !self.places.is_empty()),
            ("evs", self.evs.iter().any(|own| !own.bands.is_empty())),
            ("events", !self.events.is_empty()),
        ]
    }

    pub(in crate::report) fn is_whole(&self) -> bool {
        self.topology.as_ref().is_none_or(|topology| topology.is_whole)
    }

    /// Returns the number of ports with a row in the heat map, and of sampled ports.
    pub(in crate::report) fn rows(&self) -> (usize, usize) {
        (self.ports.rows.len(), self.ports.sampled)
    }
}

fn moments(run: &RunResult) -> Vec<Moment> {
    let changes = run.events.iter().filter(|event| is_change(event.kind) && event.time_us.is_finite());
    let moment = |event: &EventRow| {
        let words = event.words();
        let words = if words.is_empty() { String::new() } else { format!(" ({words})") };
        Moment { at_us: event.time_us, what: format!("{}: {}{words}", name(event.kind), event.subject) }
    };
    changes.take(MOMENTS).map(moment).collect()
}

fn name(kind: EventKind) -> String {
    kind.to_string().replace('_', " ")
}

/// Groups the flows: all of them, and those of each workload if there are several.
fn groups(run: &RunResult) -> Vec<(&str, Vec<&FlowResult>)> {
    let mut names: Vec<&str> = Vec::new();
    for flow in &run.flows {
        if names.len() <= WORKLOADS && !names.contains(&flow.workload.as_str()) {
            names.push(&flow.workload);
        }
    }
    let mut groups = vec![("all flows", run.flows.iter().collect())];
    if (2..=WORKLOADS).contains(&names.len()) {
        let of = |name: &str| run.flows.iter().filter(|flow| flow.workload == name).collect();
        groups.extend(names.into_iter().map(|name| (name, of(name))));
    }
    groups
}

fn completion(name: &str, flows: &[&FlowResult]) -> Line {
    let mut times: Vec<f64> = flows.iter().filter_map(|flow| flow.fct_us).collect();
    times.sort_by(f64::total_cmp);
    Line::new(name, distribution(&times, flows.len()).into_iter())
}

fn sizes(name: &str, flows: &[&FlowResult]) -> Sizes {
    let slowed = flows.iter().filter_map(|flow| Some((flow.bytes, slowdown(flow)?.0)));
    Sizes { name: name.into(), sizes: size_classes(slowed) }
}

/// Groups the events by kind, in the order of first occurrence.
fn events(run: &RunResult) -> Vec<Events> {
    let all = run.events.iter().filter(|event| event.time_us.is_finite());
    let row = |(kind, times): (String, Vec<f64>)| Events { kind, count: times.len(), times: thinned(times, EVENTS) };
    grouped(all.map(|event| (name(event.kind), event.time_us))).into_iter().map(row).collect()
}
