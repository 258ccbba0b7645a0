//! Measures how much virtual time must be slowed for this machine to carry a scenario.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use rand_core::RngCore;
use spray_core::flow::FlowConfig;
use spray_core::loss::RtoConfig;
use spray_core::path::{BalancerKind, Path};
use spray_core::rng::stream;
use spray_nic::sys::{monotonic_ns, process_cpu_ns};

use super::drive::{Report, StopCondition, drive};
use super::emulation::DilatedClock;
use super::flows::Flows;
use super::hosts::{Setup, return_devices};
use super::machine_speed::{RateMeasurement, RateMeter, slower_than_alone, times};
use super::rig::Rig;
use spray_fabric::{BinScale, FlowSpec, Start};

use super::TestbedSpec;
use super::unlimited::{OPEN_QUEUE, RATE_BPS, RTO_PS, unpaced};
use spray_switch::{FabricSpec, RunError};

pub(super) struct Calibration {
    /// Estimated for an otherwise idle machine.
    pub frames_per_s: f64,
    /// Real over virtual time if the machine carries the hosts' full rate.
    pub dilation: f64,
    /// How many times slower the machine is because of other load, if that is much.
    pub slower: Option<f64>,
}

/// Maximum packets in flight to one host: veth's ring holds 256 frames.
const MAX_FAN_IN_PACKETS: u64 = 128;

/// Sends the flows of `spec` in real time, as fast as possible, and compares with the rate that
/// their links offer, at which they take `ideal_ps`.
pub(super) fn measure(
    rig: &mut Rig,
    spec: &TestbedSpec<'_>,
    ideal_ps: u64,
    stop: &AtomicBool,
) -> Result<Calibration, RunError> {
    let mut network = spec.fabric.network.clone();
    network.links.iter_mut().for_each(|link| link.rate_bps = RATE_BPS);
    let fast = FabricSpec { network: &network, events: &[], queue: &|_| OPEN_QUEUE, ..spec.fabric };
    let fabric = fast.compile(0)?;
    rig.drain()?;
    rig.configure(&fabric, fast.packet_bytes, BinScale::default())?;
    let pairs = pairs(spec.flows);
    if pairs.is_empty() {
        return Err(RunError::Calibration);
    }
    let own = (spec.flow_config)(0);
    let flow_config = |_| burst_config(&own, fast.packet_bytes, &pairs);
    let mut payload = vec![0; BURST_BYTES];
    stream(fast.seed, 0).fill_bytes(&mut payload);
    let flows = burst_flows(&pairs);
    let payloads = vec![Bytes::from(payload); flows.len()];
    let burst_spec = TestbedSpec {
        fabric: fast,
        flows: &flows,
        triggers: &[],
        payloads: &payloads,
        flow_config: &flow_config,
        watch: None,
        ..*spec
    };
    let plan = Flows::new(&burst_spec, 0);
    let setup = Setup { spec: &burst_spec, fabric: &fabric, ports: &[], links: &[], plan: &plan };
    let (begun_ns, ran_ns) = (monotonic_ns(), process_cpu_ns());
    let bytes_per_s = burst(rig, &setup, own.payload_bytes, stop)?;
    let slower = slower_than_alone(process_cpu_ns() - ran_ns, monotonic_ns() - begun_ns);
    let bytes_per_s = match (bytes_per_s, slower) {
        (Some(bytes_per_s), _) => bytes_per_s,
        (None, Some(slower)) => return Err(RunError::Busy { times: times(slower) }),
        (None, None) => return Err(RunError::Calibration),
    };
    // The other load may have ended by then. If not, the hosts' clock waits.
    let frames_per_s = bytes_per_s * slower.unwrap_or(1.0) / f64::from(own.payload_bytes);
    let total: u64 = spec.flows.iter().map(|flow| flow.bytes).sum();
    let offered = total as f64 / f64::from(own.payload_bytes) / (ideal_ps as f64 / 1e12);
    let dilation = (offered / frames_per_s).max(1.0);
    Ok(Calibration { frames_per_s, dilation, slower })
}

/// Returns one flow for each pair of hosts with flows.
fn pairs(flows: &[FlowSpec]) -> Vec<FlowSpec> {
    let mut pairs: Vec<FlowSpec> = Vec::new();
    for flow in flows {
        if !pairs.iter().any(|pair| (pair.src, pair.dst) == (flow.src, flow.dst)) {
            pairs.push(FlowSpec {
                bytes: BURST_BYTES as u64,
                connection: None,
                start: Start::At(0),
                on_sent: None,
                on_received: None,
                ..*flow
            });
        }
    }
    pairs
}

/// Returns several messages per pair, on one connection.
fn burst_flows(pairs: &[FlowSpec]) -> Vec<FlowSpec> {
    let before = |flow: usize| flow.checked_sub(pairs.len());
    (0..MESSAGES * pairs.len()).map(|flow| FlowSpec { connection: before(flow), ..pairs[flow % pairs.len()] }).collect()
}

/// Size and number of the messages per pair: more than a burst carries.
const BURST_BYTES: usize = 1 << 20;
const MESSAGES: usize = 240;

/// The initial timeout is also the handshake's. Round trips on a busy machine may take seconds.
const PATIENT_RTO: RtoConfig = RtoConfig { initial_ps: 10 * RTO_PS, min_ps: RTO_PS, max_ps: 200 * RTO_PS };
const GIVE_UP_PS: u64 = 60_000_000_000_000;

/// A fixed window that fits into veth's ring at the busiest receiver, without pacing.
fn burst_config(own: &FlowConfig, packet_bytes: u32, pairs: &[FlowSpec]) -> FlowConfig {
    let fan_in = |host| pairs.iter().filter(|pair| pair.dst == host || pair.src == host).count() as u64;
    let busiest = pairs.iter().map(|pair| fan_in(pair.dst)).max().unwrap_or(1).max(1);
    let window_bytes = (MAX_FAN_IN_PACKETS / busiest).max(4) * u64::from(packet_bytes);
    let flow = unpaced(BalancerKind::Ops, own.payload_bytes, own.header_bytes, window_bytes);
    FlowConfig {
        window_packets: own.window_packets,
        ack_every: own.ack_every,
        sack_gap_packets: None,
        rto: PATIENT_RTO,
        give_up_ps: GIVE_UP_PS,
        path: Path { evs: own.path.evs, ..flow.path },
        ..flow
    }
}

/// Returns the payload bytes per second carried between `setup`'s pairs; `None` if none arrive.
fn burst(rig: &mut Rig, setup: &Setup<'_>, payload_bytes: u32, stop: &AtomicBool) -> Result<Option<f64>, RunError> {
    let mut hosts = setup.hosts(rig, false)?;
    hosts.iter_mut().for_each(|running| running.book.discard = true);
    let hosts = setup.connect(hosts)?;
    let goal = StopCondition { plan: setup.plan, until_ps: u64::MAX };
    let mut count = RateMeter::new(monotonic_ns(), payload_bytes);
    let mut counted = RateMeasurement::Going;
    let outcome = drive(hosts, DilatedClock::new(1.0, u64::MAX), &goal, &mut |report: &Report| {
        if stop.load(Ordering::Relaxed) {
            return Err(RunError::Stopped);
        }
        counted = count.on_report(monotonic_ns(), report.delivered_bytes);
        Ok(if counted == RateMeasurement::Going { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    return_devices(outcome.hosts, rig);
    let counted = if counted == RateMeasurement::Going { count.end() } else { counted };
    Ok(if let RateMeasurement::Rate(bytes_per_s) = counted { Some(bytes_per_s) } else { None })
}
