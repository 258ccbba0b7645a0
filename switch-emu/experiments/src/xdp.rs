//! Scenarios on the testbed.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use spray_core::event::Event;
use spray_core::path::BalancerKind;
use spray_fabric::{LinkEvent, Network, Thresholds};
use spray_testbed::{
    Dilation, FabricSpec, Happened, Report, RunError, Subject, Testbed, TestbedFlow, TestbedOutcome, TestbedSpec,
};

use crate::engine::{Engine, EngineError, Prepared, Progress};
use crate::results::{
    EventKind, EventRow, FlowResult, LastDrop, PortResult, RunResult, TestbedLosses, TransportTotals, delivered,
    link_rows, port_series, reported, reroute_row,
};
use crate::scenario::{Chassis, MAX_XDP_QUEUE_BYTES, Paths, Scenario, SimulationSettings};
use crate::workload::Flow;

/// The engine that sends real packets through the kernel, one run at a time. Needs root. It keeps its testbed for the next
/// scenario on the same network; dropping the engine removes the testbed.
#[derive(Debug, Default)]
pub struct Xdp {
    /// `None` after a failed run, since the testbed may be in any state.
    standing: Mutex<Option<Standing>>,
}

/// A testbed and the network that it was made for.
#[derive(Debug)]
struct Standing {
    testbed: Testbed,
    network: Network,
    per_switch: bool,
}

impl Engine for Xdp {
    fn is_exclusive(&self) -> bool {
        true
    }

    fn prepare<'a>(
        &'a self,
        scenario: &'a Scenario,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Box<dyn Prepared + 'a>, EngineError> {
        check(scenario).map_err(RunError::Unsupported)?;
        let ready = Ready { engine: self, scenario, paths: scenario.paths() };
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        *standing = Some(ready.set_up(standing.take(), progress)?);
        drop(standing);
        Ok(Box::new(ready))
    }
}

/// A scenario and the testbed that runs it.
struct Ready<'a> {
    engine: &'a Xdp,
    scenario: &'a Scenario,
    paths: Paths,
}

impl Prepared for Ready<'_> {
    fn run(
        &self,
        balancer: BalancerKind,
        seed: u64,
        progress: &mut dyn FnMut(Progress),
        stop: &AtomicBool,
    ) -> Result<RunResult, EngineError> {
        let mut place = self.engine.standing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut standing = self.set_up(place.take(), progress)?;
        let result = self.run_on(&mut standing.testbed, (balancer, seed), progress, stop)?;
        *place = Some(standing);
        Ok(result)
    }
}

impl Ready<'_> {
    /// The present testbed if it was made for this network, otherwise a new one.
    fn set_up(&self, standing: Option<Standing>, progress: &mut dyn FnMut(Progress)) -> Result<Standing, EngineError> {
        let Scenario { network, emulation, link_events, seed, .. } = self.scenario;
        let per_switch = emulation.chassis == Chassis::PerSwitch;
        if let Some(standing) = standing
            && (&standing.network, standing.per_switch) == (network, per_switch)
        {
            return Ok(standing);
        }
        progress(Progress::Phase("setting up namespaces, links and programs".into()));
        let queue = |rate| self.queue(rate);
        let testbed = Testbed::new(&self.fabric(&queue, link_events, *seed))?;
        Ok(Standing { testbed, network: network.clone(), per_switch })
    }

    fn queue(&self, rate_bps: u64) -> Thresholds {
        let base_rtt_ps = self.scenario.longest_rtt_ps(&self.paths);
        self.scenario.queue.config(rate_bps, base_rtt_ps, self.scenario.packet_bytes())
    }

    fn fabric<'b>(
        &'b self,
        queue: &'b dyn Fn(u64) -> Thresholds,
        events: &'b [LinkEvent],
        seed: u64,
    ) -> FabricSpec<'b> {
        FabricSpec {
            network: &self.scenario.network,
            events,
            queue,
            packet_bytes: self.scenario.packet_bytes(),
            per_switch: self.scenario.emulation.chassis == Chassis::PerSwitch,
            seed,
        }
    }

    fn run_on(
        &self,
        testbed: &mut Testbed,
        (balancer, seed): (BalancerKind, u64),
        progress: &mut dyn FnMut(Progress),
        stop: &AtomicBool,
    ) -> Result<RunResult, RunError> {
        let scenario = self.scenario;
        let flows = scenario.flows(seed);
        let testbed_flow = |flow: &Flow| TestbedFlow {
            src: flow.src,
            dst: flow.dst,
            bytes: flow.bytes,
            start_ps: flow.start_ps,
            path_seed: flow.path_seed(seed),
        };
        let queue = |rate| self.queue(rate);
        let spec = TestbedSpec {
            fabric: self.fabric(&queue, &scenario.link_events, seed),
            flows: &flows.iter().map(testbed_flow).collect::<Vec<_>>(),
            payloads: &flows.iter().map(|flow| scenario.workload.payload(flow, seed)).collect::<Vec<Bytes>>(),
            flow_config: &|from, to| scenario.flow_config(&self.paths, balancer, from, to),
            v6: scenario.is_v6(),
            base_rtt_ps: scenario.longest_rtt_ps(&self.paths),
            until_ps: scenario.time_limit_ps(&flows),
            sample_ps: scenario.sample_ps,
            dilation: self.dilation(&flows),
            threads: scenario.emulation.threads.map(|threads| threads as usize),
        };
        let outcome = testbed.run(&spec, progress, stop)?;
        Ok(Collect { scenario, balancer, seed, flows: &flows, outcome: &outcome }.result())
    }

    fn dilation(&self, flows: &[Flow]) -> Dilation {
        let measured = || {
            let together: Vec<Flow> = flows.iter().map(|flow| Flow { start_ps: 0, ..*flow }).collect();
            Dilation::Measured { ideal_ps: self.scenario.ideal_ps(&together) }
        };
        self.scenario.emulation.dilation.map_or_else(measured, Dilation::Given)
    }
}

/// Refuses what `scenario` asks for and real packets cannot do.
//= docs/specs/erasure.md#ERA-6 an ideal code
fn check(scenario: &Scenario) -> Result<(), String> {
    if scenario.workload.triggers().is_some() {
        return Err("triggers start flows of other hosts in no time, which packets cannot; use `--engine sim`".into());
    }
    if scenario.transport.erasure {
        return Err("`erasure` in [transport] is an ideal code, which no payload can go in; use `--engine sim`".into());
    }
    if scenario.simulation != SimulationSettings::default() {
        return Err("the settings in [simulation] are those of the simulator alone; use `--engine sim`".into());
    }
    let base_rtt_ps = scenario.base_rtt_ps();
    let limit = |rate_bps| scenario.queue.config(rate_bps, base_rtt_ps, scenario.packet_bytes()).limit_bytes;
    let too_long = scenario.network.links.iter().find(|link| limit(link.rate_bps) > MAX_XDP_QUEUE_BYTES);
    too_long.map_or(Ok(()), |link| {
        let (bytes, name) = (limit(link.rate_bps), &link.name);
        let allowed = format!("allowed: at most {MAX_XDP_QUEUE_BYTES}, or `--engine sim`");
        Err(format!("`limit` in [queue] is {bytes} bytes at {name}; {allowed}"))
    })
}

impl From<RunError> for EngineError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Stopped => Self::Stopped,
            error if error.is_usage() => Self::Refused(error.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}

struct Collect<'a> {
    scenario: &'a Scenario,
    balancer: BalancerKind,
    seed: u64,
    flows: &'a [Flow],
    outcome: &'a TestbedOutcome,
}

impl Collect<'_> {
    fn result(&self) -> RunResult {
        let (scenario, outcome) = (self.scenario, self.outcome);
        let losses = outcome.losses;
        RunResult {
            engine: "xdp".into(),
            scenario: scenario.name.clone(),
            condition: scenario.condition.clone(),
            balancer: self.balancer.to_string(),
            congestion_control: scenario.transport.cc.to_string(),
            seed: self.seed,
            dilation: outcome.dilation,
            wall_s: outcome.wall.as_secs_f64(),
            flows: self.flows(),
            ports: outcome.ports.iter().map(PortResult::from).collect(),
            port_samples: outcome.samples.iter().map(|samples| port_series(&outcome.ports, samples)).collect(),
            delivered: delivered(&outcome.delivered),
            events: self.event_rows(),
            transport: self.transport(),
            testbed_losses: TestbedLosses {
                veth: losses.veth,
                rx_ring_full: losses.rx_ring_full,
                fill_ring_empty: losses.fill_ring_empty,
                other: losses.other,
            },
            late_packets: outcome.late_frames,
            lateness_p99_us: us(outcome.lateness_p99_ps),
            payload_verified: outcome.payload_verified,
            sim: None,
            recovery_us: self.last_drop().map(|last| last.after_us),
        }
    }

    fn host(&self, host: usize) -> &str {
        &self.scenario.network.hosts[host]
    }

    fn flows(&self) -> Vec<FlowResult> {
        let result = |(flow, found): (&Flow, &spray_testbed::FlowOutcome)| {
            let (start_us, end_us) = (us(flow.start_ps), found.received_ps.map(us));
            FlowResult {
                flow: flow.flow,
                src: self.host(flow.src).into(),
                dst: self.host(flow.dst).into(),
                bytes: flow.bytes,
                start_us,
                end_us,
                fct_us: end_us.map(|end| end - start_us),
                retransmits: found.retransmits,
                reordered: found.reordered,
                drained_us: us(found.drained_ps),
            }
        };
        self.flows.iter().zip(&self.outcome.flows).map(result).collect()
    }

    fn transport(&self) -> TransportTotals {
        let frozen = |report: &&Report| report.what == Happened::Event(Event::FreezeEntered);
        let mut totals = TransportTotals {
            invalid_frames: self.outcome.invalid_frames,
            freeze_entries: self.outcome.log.iter().filter(frozen).count() as u64,
            ..TransportTotals::default()
        };
        for stats in &self.outcome.connections {
            totals.packets_sent += stats.sender.packets_sent;
            totals.retransmits += stats.sender.retransmits;
            totals.timeouts += stats.sender.timeouts;
            totals.reordered_packets += stats.receiver.reordered;
            totals.duplicates += stats.receiver.duplicates;
        }
        totals
    }

    fn event_rows(&self) -> Vec<EventRow> {
        let mut rows = link_rows(&self.scenario.link_events);
        rows.extend(self.outcome.reroutes_ps.iter().map(|ps| reroute_row(us(*ps))));
        let end_us = us(self.outcome.end_ps);
        rows.retain(|row| row.time_us <= end_us);
        rows.extend(self.last_drop().map(|last| last.row()));
        rows.extend(self.log());
        rows.sort_by(|a, b| a.time_us.total_cmp(&b.time_us));
        rows
    }

    /// The rows of what the hosts' balancers and connections reported.
    fn log(&self) -> impl Iterator<Item = EventRow> {
        self.outcome.log.iter().filter_map(|report| {
            let (kind, detail) = match &report.what {
                Happened::Event(event) => reported(*event)?,
                Happened::Failed(why) => (EventKind::Failure, why.clone()),
            };
            let subject = self.name(report.subject);
            Some(EventRow { time_us: report.at_ps as f64 / 1e6, kind, subject, detail })
        })
    }

    fn name(&self, subject: Subject) -> String {
        match subject {
            Subject::Flow(flow) => {
                format!("{}->{}", self.host(self.flows[flow].src), self.host(self.flows[flow].dst))
            }
            Subject::Host(host) => self.host(host).into(),
        }
    }

    fn last_drop(&self) -> Option<LastDrop> {
        LastDrop::of(&self.scenario.network, &self.scenario.link_events, &self.outcome.ports)
    }
}

fn us(ps: u64) -> f64 {
    ps as f64 / 1e6
}
