//! From a scenario to a spec, and from an outcome to results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::event::Event;
use spray_core::flow::FlowConfig;
use spray_core::path::BalancerKind;

use crate::results::{
    EventKind, EventRow, FlowResult, LastDrop, PortResult, PortSeries, RunResult, SimFigures, TransportTotals,
    delivered, link_rows, port_series, reported, reroute_row,
};
use crate::scenario::{Mistake, Paths, Scenario};
use crate::workload::Flow;
use spray_fabric::{FailureContext, LinkEvent, PortOutcome, PortSamples, epoch_starts};
use spray_sim::{FlowOutcome, FrameBytes, SimError, SimFlow, SimOutcome, SimSpec, Start, simulate};

/// When a flow counts as complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum FctEnd {
    /// When the receiver has the last byte, as in the testbed.
    #[default]
    Received,
    /// When the sender has the last acknowledgement, as in the published simulations.
    Acked,
}

/// What differs between runs of one scenario.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// What chooses paths.
    pub balancer: BalancerKind,
    /// Root of every random choice.
    pub seed: u64,
    /// Link events in addition to the scenario's own, such as failures drawn from the seed.
    pub events: Vec<LinkEvent>,
}

/// A scenario made ready for any number of runs, on any number of threads.
#[derive(Debug)]
pub struct Simulation<'a> {
    scenario: &'a Scenario,
    paths: Paths,
}

impl<'a> Simulation<'a> {
    /// Computes what all runs of `scenario` have in common.
    pub fn new(scenario: &'a Scenario) -> Self {
        Self { scenario, paths: scenario.paths() }
    }

    /// The time in ps at which a run with root `seed` is stopped.
    pub fn until_ps(&self, seed: u64) -> u64 {
        self.scenario.time_limit_over_ps(&self.paths, &self.scenario.flows(seed))
    }

    /// The failures that a run with root `seed` draws.
    ///
    /// # Errors
    /// When there are more than the fabric takes.
    pub fn failures(&self, seed: u64) -> Result<Vec<LinkEvent>, Mistake> {
        let Some(failures) = &self.scenario.failures else { return Ok(Vec::new()) };
        let context = FailureContext {
            network: &self.scenario.network,
            seed,
            until_ps: self.until_ps(seed),
            packet_bytes: self.scenario.packet_bytes(),
        };
        failures.file.events(&context).map_err(|error| failures.mistake(&error))
    }

    /// Runs it once.
    ///
    /// # Errors
    /// When the scenario does not fit the simulator. Flows that do not complete are no error: the result says so.
    pub fn run(&self, options: &SimOptions) -> Result<RunResult, SimError> {
        let scenario = self.scenario;
        let flows = scenario.flows(options.seed);
        let (paths, base_rtt_ps) = (&self.paths, scenario.longest_rtt_ps(&self.paths));
        let triggers = scenario.workload.triggers();
        let events = [scenario.link_events.as_slice(), &options.events].concat();
        let window_packets = window_packets(scenario, &flows);
        let sim_flows: Vec<SimFlow> = flows.iter().map(|flow| sim_flow(scenario, flow, options.seed)).collect();
        let spec = SimSpec {
            network: &scenario.network,
            events: &events,
            queue: &|rate| scenario.queue.config(rate, base_rtt_ps, scenario.packet_bytes()),
            flows: &sim_flows,
            triggers: triggers.map_or(&[], |triggers| &triggers.list),
            flow_config: &|from, to| FlowConfig {
                window_packets,
                ..scenario.flow_config(paths, options.balancer, from, to)
            },
            ideal_code: scenario.transport.erasure,
            frames: match scenario.simulation.control_bytes {
                Some(bytes) => FrameBytes::all(bytes),
                None => FrameBytes::wire(scenario.is_v6()),
            },
            seed: options.seed,
            until_ps: scenario.time_limit_over_ps(paths, &flows),
            sample_ps: scenario.sample_ps,
        };
        let begun = now();
        let outcome = simulate(&spec)?;
        let wall_s = begun.elapsed().as_secs_f64();
        Ok(Collect { scenario, options, flows: &flows, events: &events, outcome: &outcome }.result(wall_s))
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a run took is for people; nothing in it depends on that")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// The window in packets that a connection keeps track of: the scenario's, but no more than its one message has. The cut saves
/// memory and changes nothing else.
fn window_packets(scenario: &Scenario, flows: &[Flow]) -> u32 {
    let packets = |flow: &Flow| flow.bytes.div_ceil(u64::from(scenario.transport.payload_bytes));
    let most = flows.iter().map(packets).max().unwrap_or(0).min(u64::from(u32::MAX / 4)) as u32;
    most.next_power_of_two().max(LEAST_WINDOW_PACKETS).min(scenario.transport.window_packets)
}

/// Least number of packets that senders and receivers keep track of: what a selective acknowledgement spans.
const LEAST_WINDOW_PACKETS: u32 = 256;

fn sim_flow(scenario: &Scenario, flow: &Flow, seed: u64) -> SimFlow {
    let triggers =
        scenario.workload.triggers().map(|triggers| triggers.of_flow[flow.flow as usize]).unwrap_or_default();
    SimFlow {
        src: flow.src,
        dst: flow.dst,
        bytes: flow.bytes,
        path_seed: Some(flow.path_seed(seed)),
        start: triggers.start.map_or(Start::At(flow.start_ps), Start::On),
        on_sent: triggers.on_sent,
        on_received: triggers.on_received,
    }
}

struct Collect<'a> {
    scenario: &'a Scenario,
    options: &'a SimOptions,
    flows: &'a [Flow],
    events: &'a [LinkEvent],
    outcome: &'a SimOutcome,
}

impl Collect<'_> {
    fn result(&self, wall_s: f64) -> RunResult {
        let (scenario, outcome) = (self.scenario, self.outcome);
        RunResult {
            engine: "sim".into(),
            scenario: scenario.name.clone(),
            condition: scenario.condition.clone(),
            balancer: self.options.balancer.to_string(),
            congestion_control: scenario.transport.cc.to_string(),
            seed: self.options.seed,
            dilation: 1.0,
            wall_s,
            flows: self.flows.iter().zip(&outcome.flows).map(|(flow, found)| self.flow(flow, found)).collect(),
            ports: self.ports(),
            port_samples: self.port_samples(),
            delivered: delivered(&outcome.delivered),
            events: self.event_rows(),
            transport: self.transport(),
            recovery_us: self.last_drop().map(|last| last.after_us),
            sim: Some(SimFigures {
                packet_hops: outcome.packet_hops,
                packet_hops_per_s: (outcome.packet_hops as f64 / wall_s.max(1e-9)).round(),
                peak_rss_mb: peak_rss_mb(),
            }),
            ..RunResult::default()
        }
    }

    fn host(&self, host: usize) -> &str {
        &self.scenario.network.hosts[host]
    }

    fn flow(&self, flow: &Flow, found: &FlowOutcome) -> FlowResult {
        let start_us = us(found.started_ps.unwrap_or(flow.start_ps));
        let end_us = match self.scenario.simulation.fct_end {
            FctEnd::Received => found.received_ps,
            FctEnd::Acked => found.acked_ps,
        };
        let end_us = end_us.map(us);
        FlowResult {
            flow: flow.flow,
            src: self.host(flow.src).into(),
            dst: self.host(flow.dst).into(),
            bytes: flow.bytes,
            start_us,
            end_us,
            fct_us: end_us.map(|end| end - start_us),
            retransmits: found.sender.retransmits,
            reordered: found.receiver.reordered,
            drained_us: us(found.sender.drained_ps),
        }
    }

    /// The switches' ports, and hosts' own links that dropped something.
    fn ports(&self) -> Vec<PortResult> {
        let (ports, hosts) = self.outcome.ports.split_at(self.outcome.ports.len() - self.scenario.network.hosts.len());
        let dropped = |port: &&PortOutcome| port.counters.drops_link() + port.counters.drops_random > 0;
        ports.iter().chain(hosts.iter().filter(dropped)).map(PortResult::from).collect()
    }

    fn port_samples(&self) -> Vec<PortSeries> {
        let between = |samples: &&PortSamples| self.outcome.ports[samples.port].uplink;
        let series = |samples| port_series(&self.outcome.ports, samples);
        self.outcome.samples.iter().filter(between).map(series).collect()
    }

    fn transport(&self) -> TransportTotals {
        let mut totals = TransportTotals::default();
        for flow in &self.outcome.flows {
            totals.packets_sent += flow.sender.packets_sent;
            totals.retransmits += flow.sender.retransmits;
            totals.timeouts += flow.sender.timeouts;
            totals.reordered_packets += flow.receiver.reordered;
            totals.duplicates += flow.receiver.duplicates;
            totals.invalid_frames += flow.receiver.invalid;
        }
        let frozen = self.outcome.events.iter().filter(|(.., event)| *event == Event::FreezeEntered);
        totals.freeze_entries = frozen.count() as u64;
        totals
    }

    fn event_rows(&self) -> Vec<EventRow> {
        let mut rows = link_rows(self.events);
        rows.extend(epoch_starts(self.events).into_iter().skip(1).map(|ps| reroute_row(us(ps))));
        let end_us = us(self.outcome.end_ps);
        rows.retain(|row| row.time_us <= end_us);
        rows.extend(self.last_drop().map(|last| last.row()));
        rows.extend(self.reported());
        rows.sort_by(|a, b| a.time_us.total_cmp(&b.time_us));
        rows
    }

    /// What the senders' algorithms reported, and connections that were given up.
    fn reported(&self) -> Vec<EventRow> {
        let subject = |flow: usize| format!("{}->{}", self.host(self.flows[flow].src), self.host(self.flows[flow].dst));
        let row = |(ps, flow, event): &(u64, u32, Event)| {
            let (kind, detail) = reported(*event)?;
            Some(EventRow { time_us: us(*ps), kind, subject: subject(*flow as usize), detail })
        };
        let failed = self.outcome.flows.iter().enumerate().filter(|(_, flow)| flow.failed);
        let failed = failed.map(|(flow, _)| EventRow {
            time_us: us(self.outcome.end_ps),
            kind: EventKind::Failure,
            subject: subject(flow),
            detail: "the connection was given up".into(),
        });
        self.outcome.events.iter().filter_map(row).chain(failed).collect()
    }

    fn last_drop(&self) -> Option<LastDrop> {
        LastDrop::of(&self.scenario.network, self.events, &self.outcome.ports)
    }
}

fn us(ps: u64) -> f64 {
    ps as f64 / 1e6
}

/// Most memory that this process has held so far, in MB; 0 where the system does not say.
fn peak_rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0.0);
    (kib * 1.024).round() / 1e3
}

#[cfg(test)]
mod tests;
