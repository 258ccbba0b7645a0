//! The simulator engine: from a scenario to a `SimSpec`, and from an outcome to results.

use std::sync::atomic::AtomicBool;

use spray_capture::Observer;
use spray_core::event::Event;
use spray_core::flow::FlowConfig;
use spray_core::path::BalancerKind;

use crate::engine::{Engine, EngineError, OnProgress, Prepared, Progress};
use crate::results::{
    Collect, ConnectionEvs, EngineFigures, EventKind, EventRow, PfcFigures, RunResult, SimFigures, given_up, reported,
    us,
};
use crate::scenario::{Paths, Scenario};
use crate::workload::{classes, largest_bytes};
use spray_fabric::{FlowSpec, LinkEvent, PortOutcome, changes, check_rates, epoch_starts, first_flows};
use spray_sim::{SimOutcome, SimSpec, simulate_observed};

/// Runs under virtual time; any number of runs may run at once.
#[derive(Clone, Copy, Debug)]
pub struct Sim {
    /// Maximum number of threads of one run; 1 by default. Results do not depend on it.
    pub threads: usize,
}

impl Default for Sim {
    fn default() -> Self {
        Self { threads: 1 }
    }
}

impl Engine for Sim {
    fn is_exclusive(&self) -> bool {
        false
    }

    fn prepare<'a>(&'a self, scenario: &'a Scenario, _: OnProgress<'_>) -> Result<Box<dyn Prepared + 'a>, EngineError> {
        Ok(Box::new(Simulation::new(scenario).on_threads(self.threads)))
    }
}

impl Prepared for Simulation<'_> {
    fn run_observed(
        &self,
        balancer: BalancerKind,
        seed: u64,
        watch: Option<&Observer>,
        on_progress: OnProgress<'_>,
        _: &AtomicBool,
    ) -> Result<RunResult, EngineError> {
        let result = self.run_with(balancer, seed, &[], watch)?;
        if let Some(deadlock) = result.events.iter().find(|row| row.kind == EventKind::Deadlock) {
            let EventRow { time_us, detail, .. } = deadlock;
            on_progress(Progress::Notice(format!(
                "deadlock at {time_us:.0} us: links wait for each other for ever: {detail}"
            )));
        }
        Ok(result)
    }
}

/// A scenario prepared for any number of runs.
#[derive(Debug)]
pub struct Simulation<'a> {
    scenario: &'a Scenario,
    paths: Paths,
    threads: usize,
}

impl<'a> Simulation<'a> {
    /// Computes what all runs of `scenario` share.
    pub fn new(scenario: &'a Scenario) -> Self {
        Self { scenario, paths: scenario.paths(), threads: 1 }
    }

    /// Runs each run on at most `threads` threads. Results do not depend on it.
    pub fn on_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Runs once, with `events` besides the scenario's. All random choices follow from `seed`.
    ///
    /// # Errors
    /// [`EngineError::Refused`] when the scenario does not fit. Incomplete flows are no error.
    pub fn run(&self, balancer: BalancerKind, seed: u64, events: &[LinkEvent]) -> Result<RunResult, EngineError> {
        self.run_with(balancer, seed, events, None)
    }

    fn run_with(
        &self,
        balancer: BalancerKind,
        seed: u64,
        events: &[LinkEvent],
        watch: Option<&Observer>,
    ) -> Result<RunResult, EngineError> {
        let scenario = self.scenario;
        let plan = scenario.plan(seed);
        let (flows, classes) = (&plan.flows, classes(&scenario.workloads));
        let paths = &self.paths;
        let until_ps = scenario.time_limit_ps(paths, &plan);
        let drawn = scenario.drawn_failures(seed, until_ps);
        let drawn = drawn.map_err(|mistake| EngineError::Refused(mistake.to_string()))?;
        let events = [scenario.link_events.as_slice(), events, &drawn].concat();
        let slowed = check_rates(&scenario.network, &changes(&events, scenario.network.links.len()));
        slowed.map_err(|error| EngineError::Refused(error.to_string()))?;
        let epochs_ps = epoch_starts(&events);
        let specs = plan.specs(seed);
        let window_packets = window_packets(scenario, &specs);
        let largest_bytes = largest_bytes(flows);
        let spec = SimSpec {
            network: &scenario.network,
            events: &events,
            queue: &|rate_bps| scenario.thresholds(paths, rate_bps),
            short_slow_queues: scenario.simulation.short_slow_queues,
            flows: &specs,
            triggers: plan.trigger_list(),
            pfc: scenario.pfc(),
            flow_config: &|flow| FlowConfig {
                window_packets,
                ..scenario.connection(paths, balancer, &classes, &flows[flow], largest_bytes)
            },
            ideal_code: scenario.transport.erasure,
            v6: scenario.is_v6(),
            frames: scenario.frames(),
            seed,
            until_ps,
            sample_ps: scenario.sample_ps,
        };
        let begun = now();
        let outcome = simulate_observed(&spec, self.threads, watch);
        let outcome = outcome.map_err(|error| EngineError::Refused(error.to_string()))?;
        let wall_s = begun.elapsed().as_secs_f64();
        let collect = Collect {
            scenario,
            paths,
            balancer,
            seed,
            plan: &plan,
            link_events: &events,
            reroutes_ps: epochs_ps.get(1..).unwrap_or_default(),
            ports: &outcome.ports,
            end_ps: outcome.end_ps,
            limit_ps: until_ps,
        };
        if let Some(watch) = watch {
            let first = first_flows(specs.iter().map(|flow| flow.connection));
            let mut watch = watch.lock();
            watch.flush(i64::MAX);
            for (at_ps, flow, event) in &outcome.events {
                watch.report(at_ps.cast_signed(), first[*flow as usize], event);
            }
        }
        Ok(result(&collect, &outcome, wall_s))
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a run took is for people; nothing in it depends on that")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// Returns the window that connections track, no larger than their messages to save memory.
fn window_packets(scenario: &Scenario, flows: &[FlowSpec]) -> u32 {
    let mut packets = vec![0u64; flows.len()];
    for (flow, first) in flows.iter().zip(first_flows(flows.iter().map(|flow| flow.connection))) {
        packets[first] += flow.bytes.div_ceil(u64::from(scenario.transport.payload_bytes)).max(1);
    }
    let most = packets.into_iter().max().unwrap_or(0).min(u64::from(u32::MAX / 4)) as u32;
    most.next_power_of_two().max(LEAST_WINDOW_PACKETS).min(scenario.transport.window_packets)
}

/// Minimum of that window: the span of a selective acknowledgement.
const LEAST_WINDOW_PACKETS: u32 = 256;

fn result(collect: &Collect<'_>, outcome: &SimOutcome, wall_s: f64) -> RunResult {
    let Scenario { network, queue, .. } = collect.scenario;
    let common = collect.result("sim", &outcome.flows, rows(collect, outcome));
    // The switches' ports, and hosts' links that dropped something.
    let (ports, hosts) = outcome.ports.split_at(outcome.ports.len() - network.hosts.len());
    let dropped = |port: &&PortOutcome| port.counters.drops_link() + port.counters.drops_random > 0;
    RunResult {
        engine_figures: EngineFigures {
            dilation: 1.0,
            wall_s,
            invalid_frames: outcome.flows.iter().map(|flow| flow.receiver.invalid).sum(),
            ..common.engine_figures
        },
        ports: ports.iter().chain(hosts.iter().filter(dropped)).cloned().collect(),
        port_samples: outcome.samples.clone(),
        delivered: outcome.delivered.clone(),
        evs: outcome
            .ev_lives
            .iter()
            .map(|(flow, life)| ConnectionEvs::new(&collect.name(*flow as usize), life, 0))
            .collect(),
        scheme_counters: outcome.scheme_counters.clone(),
        sim: Some(SimFigures {
            packet_hops: outcome.packet_hops,
            packet_hops_per_s: (outcome.packet_hops as f64 / wall_s.max(1e-9)).round(),
            peak_rss_mb: peak_rss_mb(),
        }),
        pfc: queue.pfc.then(|| PfcFigures {
            pauses: outcome.ports.iter().map(|port| port.pauses).sum(),
            paused_us: us(outcome.ports.iter().map(|port| port.paused_ps).sum()),
            deadlock_us: outcome.deadlock.as_ref().map(|deadlock| us(deadlock.at_ps)),
        }),
        ..common
    }
}

/// Returns rows of the senders' events, of connections given up and of a deadlock.
fn rows(collect: &Collect<'_>, outcome: &SimOutcome) -> impl Iterator<Item = EventRow> {
    let row = |(ps, flow, event): &(u64, u32, Event)| reported(*event, us(*ps), &collect.name(*flow as usize));
    let failed = outcome.flows.iter().enumerate().filter_map(|(flow, of)| Some((flow, of.given_up_ps?)));
    let failed = failed.map(|(flow, at_ps)| given_up(us(at_ps), &collect.name(flow), ""));
    let deadlock = outcome.deadlock.iter().map(|deadlock| EventRow {
        time_us: us(deadlock.at_ps),
        kind: EventKind::Deadlock,
        subject: deadlock.links.first().cloned().unwrap_or_default(),
        detail: deadlock.links.join(" "),
        ..EventRow::default()
    });
    outcome.events.iter().filter_map(row).chain(failed).chain(deadlock)
}

/// Returns the peak memory of this process in MB; 0 where the system does not report it.
fn peak_rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0.0);
    (kib * 1.024).round() / 1e3
}

#[cfg(test)]
mod tests;
