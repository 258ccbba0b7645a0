//! Scenarios on the testbed.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use spray_capture::Observer;
use spray_core::path::BalancerKind;
use spray_fabric::{LinkEvent, MAX_IP_BYTES, Network, Node, Thresholds};
use spray_switch::{ExternalInterfaces, ExternalNetns, FabricSpec, MAX_CABLES, RunError};
use spray_testbed::{Dilation, ReportKind, Subject, Testbed, TestbedOutcome, TestbedSpec};

use crate::engine::{Engine, EngineError, OnProgress, PrepareResult, Prepared, Progress};
use crate::memory::fits_memory;
use crate::results::{
    Collect, ConnectionEvs, EngineFigures, EventRow, RunResult, TestbedLosses, given_up, reported, us,
};
use crate::scenario::{Chassis, MAX_XDP_QUEUE_BYTES, MarkAt, Paths, Scenario, SimulationSettings};
use crate::workload::{Flow, Payload, classes, largest_bytes};

/// Sends real packets through the kernel, as root and one run at a time. The testbed is kept for
/// the next scenario on the same network, until the engine is dropped.
#[derive(Debug, Default)]
pub struct Xdp {
    /// `None` after a failed run, which may leave the testbed in any state.
    kept: Mutex<Option<Kept>>,
}

#[derive(Debug)]
struct Kept {
    testbed: Testbed,
    network: Network,
    per_switch: bool,
}

impl Engine for Xdp {
    fn is_exclusive(&self) -> bool {
        true
    }

    fn prepare<'a>(&'a self, scenario: &'a Scenario, on_progress: OnProgress<'_>) -> PrepareResult<'a> {
        let ready = Ready { engine: self, scenario, paths: scenario.paths() };
        check(scenario, &ready.paths).map_err(RunError::Unsupported)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some(ready.set_up(kept.take(), on_progress)?);
        drop(kept);
        Ok(Box::new(ready))
    }
}

/// Sets up a scenario's hosts, links and switches for external traffic, without its workload and
/// failures. Hosts use the `external` namespaces; with `interfaces`, only switches are created,
/// between existing interfaces.
///
/// # Errors
/// When the scenario, the privileges or the kernel do not permit it; everything is removed then.
pub fn deploy(
    scenario: &Scenario,
    external: &[ExternalNetns],
    interfaces: Option<ExternalInterfaces<'_>>,
) -> Result<spray_switch::Deployment, EngineError> {
    let paths = scenario.paths();
    check(scenario, &paths).map_err(RunError::Unsupported)?;
    let queue = |rate_bps| scenario.thresholds(&paths, rate_bps);
    let spec = fabric(scenario, &queue, &[], scenario.seed);
    let parts = match interfaces {
        Some(ExternalInterfaces { node: Some(_), .. }) => Some("--node"),
        _ if spec.per_switch => Some(PER_SWITCH),
        _ => None,
    };
    parts.map_or(Ok(()), |what| check_bare_parts(scenario, what)).map_err(RunError::Unsupported)?;
    Ok(match interfaces {
        None => spray_switch::Deployment::new(&spec, scenario.convergence_ps, external)?,
        Some(interfaces) => spray_switch::Deployment::on_interfaces(&spec, scenario.convergence_ps, interfaces)?,
    })
}

const PER_SWITCH: &str = "`chassis` in [emulation] is `per-switch`";

fn is_per_switch(scenario: &Scenario) -> bool {
    scenario.emulation.chassis == Chassis::PerSwitch
}

fn fabric<'a>(
    scenario: &'a Scenario,
    queue: &'a dyn Fn(u64) -> Thresholds,
    events: &'a [LinkEvent],
    seed: u64,
) -> FabricSpec<'a> {
    FabricSpec {
        network: &scenario.network,
        events,
        queue,
        packet_bytes: scenario.packet_bytes(),
        per_switch: is_per_switch(scenario),
        seed,
    }
}

struct Ready<'a> {
    engine: &'a Xdp,
    scenario: &'a Scenario,
    paths: Paths,
}

impl Prepared for Ready<'_> {
    fn run_observed(
        &self,
        balancer: BalancerKind,
        seed: u64,
        watch: Option<&Observer>,
        on_progress: OnProgress<'_>,
        stop: &AtomicBool,
    ) -> Result<RunResult, EngineError> {
        let mut place = self.engine.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = self.set_up(place.take(), on_progress)?;
        let result = self.run_on(&mut kept.testbed, balancer, seed, watch, on_progress, stop)?;
        *place = Some(kept);
        Ok(result)
    }
}

impl Ready<'_> {
    /// Returns `kept` if it was made for this network, otherwise a new testbed.
    fn set_up(&self, kept: Option<Kept>, on_progress: OnProgress<'_>) -> Result<Kept, EngineError> {
        let Scenario { network, seed, .. } = self.scenario;
        let per_switch = is_per_switch(self.scenario);
        if let Some(kept) = kept
            && (&kept.network, kept.per_switch) == (network, per_switch)
        {
            return Ok(kept);
        }
        on_progress(Progress::Phase("setting up namespaces, links and programs".into()));
        let queue = |rate_bps| self.scenario.thresholds(&self.paths, rate_bps);
        let events = self.events(*seed, self.scenario.time_limit_ps(&self.paths, &self.scenario.plan(*seed)))?;
        let testbed = Testbed::new(&fabric(self.scenario, &queue, &events, *seed)).map_err(|error| match error {
            RunError::NotRoot => EngineError::Refused(format!("{error}, or use `--engine sim`")),
            error => error.into(),
        })?;
        Ok(Kept { testbed, network: network.clone(), per_switch })
    }

    fn events(&self, seed: u64, until_ps: u64) -> Result<Vec<LinkEvent>, RunError> {
        let drawn = self.scenario.drawn_failures(seed, until_ps);
        let drawn = drawn.map_err(|mistake| RunError::Unsupported(mistake.to_string()))?;
        Ok([self.scenario.link_events.as_slice(), &drawn].concat())
    }

    fn run_on(
        &self,
        testbed: &mut Testbed,
        balancer: BalancerKind,
        seed: u64,
        watch: Option<&Observer>,
        on_progress: OnProgress<'_>,
        stop: &AtomicBool,
    ) -> Result<RunResult, RunError> {
        let scenario = self.scenario;
        let plan = scenario.plan(seed);
        let (flows, classes) = (&plan.flows, classes(&scenario.workloads));
        let until_ps = scenario.time_limit_ps(&self.paths, &plan);
        let events = self.events(seed, until_ps)?;
        let queue = |rate_bps| scenario.thresholds(&self.paths, rate_bps);
        let largest_bytes = largest_bytes(flows);
        let config = |flow: usize| scenario.connection(&self.paths, balancer, &classes, &flows[flow], largest_bytes);
        let spec = TestbedSpec {
            fabric: fabric(scenario, &queue, &events, seed),
            flows: &plan.specs(seed),
            triggers: plan.trigger_list(),
            payloads: &flows.iter().map(|flow| scenario.payload(&classes, flow, seed)).collect::<Vec<Bytes>>(),
            flow_config: &config,
            v6: scenario.is_v6(),
            base_rtt_ps: scenario.base_rtt_ps(&self.paths),
            until_ps,
            sample_ps: scenario.sample_ps,
            dilation: self.dilation(flows),
            watch,
        };
        let outcome = testbed.run(&spec, on_progress, stop)?;
        let collect = Collect {
            scenario,
            paths: &self.paths,
            balancer,
            seed,
            plan: &plan,
            link_events: &events,
            reroutes_ps: &outcome.reroutes_ps,
            ports: &outcome.ports,
            end_ps: outcome.end_ps,
            limit_ps: until_ps,
        };
        Ok(result(&collect, &outcome))
    }

    fn dilation(&self, flows: &[Flow]) -> Dilation {
        let measured = || {
            let together: Vec<Flow> = flows.iter().map(|flow| Flow { start_ps: 0, ..*flow }).collect();
            Dilation::Measured { ideal_ps: self.scenario.ideal_ps(&self.paths, &together) }
        };
        self.scenario.emulation.dilation.map_or_else(measured, Dilation::Given)
    }
}

const ETHERNET_BYTES: u32 = 14;

/// Returns an error if `scenario` needs what real packets cannot do.
//= docs/specs/erasure.md#ERA-6 an ideal code
fn check(scenario: &Scenario, paths: &Paths) -> Result<(), String> {
    if scenario.transport.erasure {
        return Err("`erasure` in [transport] is an ideal code, which no payload can go in; use `--engine sim`".into());
    }
    let SimulationSettings { failures, dead_cables_percent, .. } = scenario.simulation.clone();
    if scenario.simulation != (SimulationSettings { failures, dead_cables_percent, ..SimulationSettings::default() }) {
        let rule = "are those of the simulator alone, but for failures";
        return Err(format!("the settings in [simulation] {rule}; use `--engine sim`"));
    }
    if scenario.queue.mark_at == MarkAt::Departure {
        let why = "frames leave an XDP program before those behind them have come";
        return Err(format!("`mark_at` in [queue] is `departure`: {why}; allowed: arrival, or `--engine sim`"));
    }
    if scenario.queue.shared_buffer.is_some() {
        let why = "an XDP program sees one port at a time";
        return Err(format!("`shared_buffer` in [queue] is set: {why}; use `--engine sim`"));
    }
    if is_per_switch(scenario) {
        check_parts(scenario, PER_SWITCH)?;
    }
    //= docs/specs/conweave.md#CWV-21 supported engines and fabrics
    if let Some(scheme) = scenario.network.switching.schemes.iter().find(|scheme| scheme.holds()) {
        let why = "an XDP program can neither hold a frame, nor make one, nor wait for a time";
        return Err(format!("`scheme` in [switch] is `{scheme}`: {why}; use `--engine sim`, or another scheme"));
    }
    if scenario.queue.pfc {
        return Err("`pfc` in [queue] is on: an XDP program cannot hold a frame back; use `--engine sim`".into());
    }
    check_machine(scenario)?;
    //= docs/specs/switch.md#SW-22 the largest packet
    let most = scenario.transport.payload_bytes + MAX_IP_BYTES + ETHERNET_BYTES - scenario.packet_bytes();
    if scenario.transport.payload_bytes > most {
        let bytes = scenario.transport.payload_bytes;
        return Err(format!(
            "`payload_bytes` in [transport] is {bytes}; allowed: at most {most} here, or `--engine sim`"
        ));
    }
    let limit = |rate_bps| scenario.thresholds(paths, rate_bps).limit_bytes;
    let too_long = scenario.network.links.iter().find(|link| limit(link.rate_bps) > MAX_XDP_QUEUE_BYTES);
    too_long.map_or(Ok(()), |link| {
        let (bytes, name) = (limit(link.rate_bps), &link.name);
        let allowed = format!("allowed: at most {MAX_XDP_QUEUE_BYTES}, or `--engine sim`");
        Err(format!("`limit` in [queue] is {bytes} bytes at {name}; {allowed}"))
    })
}

/// Returns an error if several programs, as `what` requires, would share state of a frame.
fn check_parts(scenario: &Scenario, what: &str) -> Result<(), String> {
    let scheme = &scenario.network.switching;
    if scheme.uses_trail() {
        let why = "what such switches tell each other about a frame stays within a chassis";
        return Err(format!("{what} with `{scheme}`: {why}; allowed: one chassis of all, the whole fabric"));
    }
    Ok(())
}

/// The same as [`check_parts`], where in addition nothing is prepended to frames.
fn check_bare_parts(scenario: &Scenario, what: &str) -> Result<(), String> {
    check_parts(scenario, what)?;
    match scenario.network.switching.schemes.iter().find(|scheme| scheme.needs_groups()) {
        Some(scheme) => Err(format!(
            "{what} with `{scheme}`: a frame that stands for anybody's has no room for its detour; allowed: one chassis of all, the whole fabric"
        )),
        None => Ok(()),
    }
}

/// Returns an error for more interfaces than a testbed has, or more payload than fits into memory.
fn check_machine(scenario: &Scenario) -> Result<(), String> {
    let links = &scenario.network.links;
    let of_hosts = || links.iter().filter(|link| matches!(link.from, Node::Host(_))).count();
    let pairs = if is_per_switch(scenario) { links.len() / 2 } else { of_hosts() };
    if pairs > MAX_CABLES {
        return Err(format!("it needs {pairs} veth pairs; allowed: at most {MAX_CABLES}, or `--engine sim`"));
    }
    let classes = classes(&scenario.workloads);
    let file_bytes = |flow: &Flow| match &scenario.workloads[classes[usize::from(flow.class)].workload].payload {
        Payload::File { bytes, .. } => bytes.len() as u64,
        Payload::Generated => 0,
    };
    // Receivers keep data until it has been compared.
    let held = |flow: &Flow| if flow.bytes > file_bytes(flow) { flow.bytes.saturating_mul(2) } else { flow.bytes };
    let payload = scenario.flows(scenario.seed).iter().fold(0u64, |sum, flow| sum.saturating_add(held(flow)));
    let rule = "smaller or fewer flows, or `--engine sim`, which sends no payload";
    fits_memory("what is sent and what arrives", payload, rule)
        .map_err(|message| format!("{}: {message}", scenario.workload_place))
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

fn result(collect: &Collect<'_>, outcome: &TestbedOutcome) -> RunResult {
    let losses = outcome.losses;
    let common = collect.result("xdp", &outcome.flows, rows(collect, outcome));
    RunResult {
        scheme_counters: outcome.scheme_counters.clone(),
        ports: outcome.ports.clone(),
        port_samples: outcome.samples.clone(),
        delivered: outcome.delivered.clone(),
        evs: outcome
            .ev_lives
            .iter()
            .map(|(flow, life)| ConnectionEvs::new(&collect.name(*flow), life, outcome.lead_in_ps))
            .collect(),
        testbed_losses: TestbedLosses {
            veth: losses.veth,
            rx_ring_full: losses.rx_ring_full,
            fill_ring_empty: losses.fill_ring_empty,
            other: losses.other,
        },
        payload_verified: Some(outcome.payload_verified),
        engine_figures: EngineFigures {
            dilation: outcome.dilation,
            wall_s: outcome.wall.as_secs_f64(),
            invalid_frames: outcome.invalid_frames,
            late_packets: outcome.late_frames,
            lateness_p99_us: us(outcome.lateness_p99_ps),
            ..common.engine_figures
        },
        ..common
    }
}

fn rows(collect: &Collect<'_>, outcome: &TestbedOutcome) -> impl Iterator<Item = EventRow> {
    outcome.log.iter().filter_map(|report| {
        let subject = match report.subject {
            Subject::Flow(flow) => collect.name(flow),
            Subject::Host(host) => collect.host(host).into(),
        };
        let time_us = report.at_ps as f64 / 1e6;
        match &report.kind {
            ReportKind::Event(event) => reported(*event, time_us, &subject),
            ReportKind::Failed(why) => Some(given_up(time_us, &subject, why)),
        }
    })
}
