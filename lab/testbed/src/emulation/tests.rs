//! The results of emulated hosts do not depend on when the machine polls them.

use spray_nic::device::DeviceHealth as _;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use spray_core::flow::FlowConfig;
use spray_core::link::serialisation_ceil_ps;
use spray_core::path::{BalancerKind, Path};
use spray_fabric::TieBreaker;
use spray_nic::device::{Impairments, MemoryConfig, MemoryDevice, MemoryNetwork, Received};
use spray_nic::endpoint::HandshakeConfig;
use spray_nic::{ConnectionId, EndpointConfig, EndpointEvent, Peer};
use spray_pipeline::last_port::Delivery;
use spray_pipeline::shim::{SHIM_BYTES, Shim};
use spray_wire::{Body, Common, Ecn, Envelope, EvPort, Kind, Ports, Probe, Time, emit, header_bytes};

use super::*;
use crate::host_port::LastPort;

const US: u64 = 1_000_000;
const MS: u64 = 1_000_000_000;
const LINK_BPS: u64 = 10_000_000_000;
const PAYLOAD: u32 = 1000;
const TIES: TieBreaker = TieBreaker::new(3);

type Host = Endpoint<EmulatedDevice<MemoryDevice>>;

fn address(host: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1).into()
}

fn mac(host: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, host as u8]
}

fn peer(host: usize) -> Peer {
    Peer { address: address(host), mac: mac(host) }
}

/// Bytes that differ by message and position.
fn content(seed: usize, bytes: usize) -> Bytes {
    (0..bytes).map(|at| (at.wrapping_mul(31).wrapping_add(at >> 8).wrapping_add(seed * 7)) as u8).collect()
}

fn network(impairments: Impairments) -> MemoryNetwork {
    MemoryNetwork::new(MemoryConfig { seed: 7, frame_size: 2048, impairments, ..MemoryConfig::default() })
}

/// A host on a link of 10 Gb/s and this latency.
fn host(network: &MemoryNetwork, number: usize, latency_ps: u64, turns: &Arc<TransmitOrder>) -> Host {
    let (base_rtt_ps, header) = (20 * US, header_bytes(false, Kind::Data) as u32);
    let path = Path { evs: 1024, bdp_packets: 25, ..Path::new(base_rtt_ps, LINK_BPS, PAYLOAD + header) };
    let config = EndpointConfig {
        max_connections: 16,
        seed: Some(1000 + number as u64),
        handshake: HandshakeConfig { retry_ps: 100 * US, attempts: 12 },
        idle_timeout_ps: 100 * MS,
        ..EndpointConfig::new(address(number), mac(number), FlowConfig::new(BalancerKind::Reps, path, header))
    };
    let emulation = Emulation {
        link_bps: LINK_BPS,
        link_latency_ps: latency_ps,
        link: None,
        port: None,
        max_hold_ps: 100 * MS,
        turn: turns.of(number),
    };
    Endpoint::new(EmulatedDevice::new(network.attach(mac(number)), Some(emulation)), config).unwrap()
}

/// Hosts, their network, and all their events.
struct Rig {
    network: MemoryNetwork,
    hosts: Vec<Host>,
    events: Vec<Vec<EndpointEvent>>,
    now_ps: u64,
}

impl Rig {
    fn new(hosts: usize, latency_ps: u64, impairments: Impairments) -> Self {
        let (network, turns) = (network(impairments), TransmitOrder::new(hosts, latency_ps, TIES));
        let endpoints = (0..hosts).map(|number| host(&network, number, latency_ps, &turns)).collect();
        Self { network, hosts: endpoints, events: vec![Vec::new(); hosts], now_ps: 0 }
    }

    fn connect(&mut self, from: usize, to: usize) -> ConnectionId {
        self.hosts[from].connect(Time::from_ps(self.now_ps), peer(to), None).unwrap()
    }

    /// Advances by `tick_ps` at a time until `done` or `limit_ps`.
    fn run(&mut self, tick_ps: u64, limit_ps: u64, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end_ps = self.now_ps + limit_ps;
        while self.now_ps < end_ps {
            self.network.advance(Time::from_ps(self.now_ps));
            poll_all(&mut self.hosts, self.now_ps, |_, _| false);
            for (host, events) in self.hosts.iter_mut().zip(&mut self.events) {
                events.extend(std::iter::from_fn(|| host.poll_event()));
            }
            if done(self) {
                return true;
            }
            self.now_ps += tick_ps;
        }
        false
    }

    fn received(&self, host: usize) -> Vec<Bytes> {
        let pick = |event: &EndpointEvent| match event {
            EndpointEvent::Received { data, .. } => Some(data.clone()),
            _ => None,
        };
        self.events[host].iter().filter_map(pick).collect()
    }

    fn delivered(&self, host: usize) -> usize {
        self.events[host].iter().filter(|event| matches!(event, EndpointEvent::Delivered { .. })).count()
    }

    fn late(&self) -> u64 {
        self.hosts.iter().map(late).sum()
    }

    /// Checks that no device has lost a frame, and that no host holds one.
    fn audit(self) {
        for host in self.hosts {
            let device = host.into_device().into_inner();
            device.audit().unwrap();
            assert_eq!(device.frame_counts().held, 0);
        }
        self.network.audit().unwrap();
    }
}

fn late(host: &Host) -> u64 {
    host.device().lateness().unwrap().late_frames()
}

/// Connects two hosts, then sends `bytes` at `start_ps`; returns the events of both.
fn transfer(
    bytes: usize,
    start_ps: u64,
    tick_ps: u64,
    latency_ps: u64,
    physical: Impairments,
) -> Vec<Vec<EndpointEvent>> {
    let mut rig = Rig::new(2, latency_ps, physical);
    let connection = rig.connect(0, 1);
    rig.hosts[0].send_at(connection, content(1, bytes), Time::from_ps(start_ps)).unwrap();
    assert!(rig.run(tick_ps, 500 * MS, |rig| rig.delivered(0) == 1 && rig.received(1).len() == 1));
    assert!(rig.received(1)[0] == content(1, bytes));
    assert_eq!(rig.late(), 0);
    let events = rig.events.clone();
    rig.audit();
    events
}

fn received_ps(events: &[EndpointEvent]) -> (u64, u64) {
    let pick = |event: &EndpointEvent| match event {
        EndpointEvent::Received { started_at, completed_at, .. } => Some((started_at.ps(), completed_at.ps())),
        _ => None,
    };
    events.iter().find_map(pick).unwrap()
}

fn delivered_ps(events: &[EndpointEvent]) -> (u64, u64) {
    let pick = |event: &EndpointEvent| match event {
        EndpointEvent::Delivered { started_at, at, .. } => Some((started_at.ps(), at.ps())),
        _ => None,
    };
    events.iter().find_map(pick).unwrap()
}

//= docs/specs/emulation.md#EMU-1 order of events
//= docs/specs/emulation.md#EMU-2 the host's link
#[test]
fn the_duration_of_a_flow_is_that_of_its_formula() {
    // Within one window only the link and its latency matter.
    let (packets, start_ps) = (12, 100 * US);
    let events = transfer(packets * PAYLOAD as usize, start_ps, US, US, Impairments::default());
    let header = header_bytes(false, Kind::Data) as u64;
    let data_ps = packets as u64 * serialisation_ceil_ps(u64::from(PAYLOAD) + header, LINK_BPS);
    let in_steps = |ps| Time::from_ps(ps).ps();
    assert_eq!(received_ps(&events[1]), (start_ps, in_steps(start_ps + data_ps + US)));
    let ack_ps = serialisation_ceil_ps(header_bytes(false, Kind::Ack) as u64, LINK_BPS);
    assert_eq!(delivered_ps(&events[0]), (start_ps, in_steps(start_ps + data_ps + US + ack_ps + US)));
}

//= docs/specs/emulation.md#EMU-2 the host's link
#[test]
fn a_round_trip_is_the_sum_of_its_parts() {
    let delivered = transfer(500, 50 * US, US, 8 * US, Impairments::default());
    let data_ps = serialisation_ceil_ps(500 + header_bytes(false, Kind::Data) as u64, LINK_BPS);
    let ack_ps = serialisation_ceil_ps(header_bytes(false, Kind::Ack) as u64, LINK_BPS);
    assert_eq!(delivered_ps(&delivered[0]), (50 * US, 50 * US + data_ps + 8 * US + ack_ps + 8 * US));
}

//= docs/specs/emulation.md#EMU-3 deterministic results
#[test]
fn late_polls_and_slow_frames_do_not_change_results() {
    // A frame has 4 us of virtual time between hosts: polling and real delays together stay below.
    // Losses hit the same frames in every run, as long as the frames are the same.
    let fabric = |delay_ps, jitter_ps| Impairments { loss_ppm: 30_000, delay_ps, jitter_ps, ..Impairments::default() };
    let exact = transfer(400_000, 50 * US, 100_000, 4 * US, fabric(0, 0));
    assert_eq!(exact, transfer(400_000, 50 * US, 3 * US, 4 * US, fabric(0, 0)));
    assert_eq!(exact, transfer(400_000, 50 * US, US, 4 * US, fabric(2 * US, 0)));
    let lossless = |jitter_ps| Impairments { loss_ppm: 0, ..fabric(US, jitter_ps) };
    let exact = transfer(400_000, 50 * US, 100_000, 4 * US, lossless(0));
    assert_eq!(exact, transfer(400_000, 50 * US, US, 4 * US, lossless(US)), "reordering between hosts has no effect");
}

#[test]
fn a_seed_determines_the_run() {
    let lossy = Impairments { loss_ppm: 50_000, jitter_ps: 300_000, ..Impairments::default() };
    assert_eq!(transfer(100_000, 0, 200_000, US, lossy), transfer(100_000, 0, 200_000, US, lossy));
}

//= docs/specs/emulation.md#EMU-3 deterministic results
#[test]
fn late_frames_are_handled_at_once_and_counted() {
    let mut rig = Rig::new(2, US, Impairments::delay(20 * US));
    let connection = rig.connect(0, 1);
    rig.hosts[0].send(connection, content(1, 300_000)).unwrap();
    assert!(rig.run(US, 500 * MS, |rig| rig.delivered(0) == 1));
    assert!(rig.late() > 0);
    rig.audit();
}

/// A port that serialises frames, loses some, and records arrivals and their sources.
#[derive(Debug, Default)]
struct Port {
    arrived: Vec<(u64, u8)>,
    busy_until_ps: u64,
}

#[derive(Debug)]
struct Shared(Arc<Mutex<Port>>);

const PORT_LATENCY_PS: u64 = 2 * US;
const PORT_FRAME_PS: u64 = 300_000;

impl LastPort for Shared {
    fn latency_ps(&self) -> u64 {
        PORT_LATENCY_PS
    }

    fn deliver(&mut self, frame: &mut [u8]) -> Option<Delivery> {
        let mut port = self.0.lock().unwrap();
        let time_ps = Shim::read(frame.first_chunk().unwrap()).unwrap().virtual_time_ps;
        port.arrived.push((time_ps, frame[11]));
        port.busy_until_ps = port.busy_until_ps.max(time_ps) + PORT_FRAME_PS;
        let kept = !port.arrived.len().is_multiple_of(20);
        kept.then_some(Delivery { due_ps: port.busy_until_ps + PORT_LATENCY_PS, len: frame.len() as u32 })
    }
}

/// Two hosts, one later by `apart_ps`, send to a third that emulates its port; returns its events,
/// and the arrivals at the port.
fn incast(apart_ps: u64, tick_ps: u64, physical: Impairments) -> (Vec<EndpointEvent>, Vec<(u64, u8)>) {
    let mut rig = Rig::new(3, 2 * US, physical);
    let port = Arc::new(Mutex::new(Port::default()));
    rig.hosts[2].device_mut().set_port(Box::new(Shared(Arc::clone(&port))));
    for from in 0..2 {
        let apart_ps = apart_ps * from as u64;
        let connection = rig.hosts[from].connect(Time::from_ps(apart_ps), peer(2), None).unwrap();
        rig.hosts[from].send_at(connection, content(from, 100_000), Time::from_ps(50 * US + apart_ps)).unwrap();
    }
    assert!(rig.run(tick_ps, 500 * MS, |rig| rig.delivered(0) + rig.delivered(1) == 2 && rig.received(2).len() == 2));
    assert_eq!(rig.late(), 0);
    let events = rig.events[2].clone();
    rig.audit();
    let arrived = std::mem::take(&mut port.lock().unwrap().arrived);
    (events, arrived)
}

//= docs/specs/emulation.md#EMU-4 a port that the host emulates
#[test]
fn frames_arrive_at_the_hosts_port_in_order_of_time() {
    let fabric = |jitter_ps| Impairments { jitter_ps, ..Impairments::default() };
    for apart_ps in [0, 1_125] {
        let exact = incast(apart_ps, 100_000, fabric(0));
        assert!(exact.1.len() > 200 && exact.1.is_sorted_by_key(|(at_ps, _)| *at_ps), "{:?}", exact.1);
        // Overtaking frames and late polls change nothing.
        assert!(exact == incast(apart_ps, 500_000, fabric(US)));
    }
}

//= docs/specs/emulation.md#EMU-9 an order drawn
#[test]
fn synchronised_hosts_are_first_at_the_port_equally_often() {
    let (_, arrived) = incast(0, 100_000, Impairments::default());
    let firsts: Vec<u8> = arrived.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].1).collect();
    let share = firsts.iter().filter(|host| **host == 0).count() as f64 / firsts.len() as f64;
    assert!(firsts.len() > 30 && (0.25..0.75).contains(&share), "{share} of {}", firsts.len());
}

//= docs/specs/endpoint.md#END-15 late path selection
#[test]
fn the_link_is_shared_round_robin_and_never_overrun() {
    let mut rig = Rig::new(5, US, Impairments::default());
    for to in 1..5 {
        let connection = rig.connect(0, to);
        rig.hosts[0].send_at(connection, content(to, 50_000), Time::from_ps(100 * US)).unwrap();
    }
    assert!(rig.run(US, 100 * MS, |rig| rig.delivered(0) == 4));
    let packet_ps = serialisation_ceil_ps(1000 + header_bytes(false, Kind::Data) as u64, LINK_BPS);
    let mut ends: Vec<u64> = (1..5).map(|host| received_ps(&rig.events[host]).1).collect();
    ends.sort_unstable();
    let last = 100 * US + 200 * packet_ps + US;
    assert!(ends[3] >= last, "faster than the link: {ends:?} < {last}");
    assert!(ends[3] < last + 20 * US, "the link was idle: {ends:?} > {last}");
    assert!(ends[3] - ends[0] <= 40 * packet_ps, "one flow waited for another: {ends:?}");
    rig.audit();
}

//= docs/specs/emulation.md#EMU-7 implausible times
#[test]
fn a_time_far_ahead_does_not_delay_a_frame() {
    let mut rig = Rig::new(2, US, Impairments::default());
    let mut other = rig.network.attach(mac(9));
    other.flush().unwrap();
    let envelope = Envelope {
        src_mac: mac(9),
        dst_mac: mac(1),
        src: address(0),
        dst: address(1),
        src_port: EvPort::new(1),
        dst_port: Ports::DEFAULT.first(),
        dscp: 0,
        ecn: Ecn::NotEct,
        ttl: 64,
    };
    let shim = Shim { virtual_time_ps: u64::MAX, ..Shim::default() };
    for _ in 0..100 {
        let frame = other.allocate().unwrap();
        let body = Body::Probe(Probe { token: 1, timestamp: Time::ZERO });
        let (head, space) = other.frame_mut(&frame).split_at_mut(SHIM_BYTES);
        let bytes = emit(space, &envelope, &Common::default(), &body, &[]).unwrap();
        head.copy_from_slice(&shim.before(space));
        other.transmit(frame, (SHIM_BYTES + bytes) as u32).unwrap();
        other.flush().unwrap();
    }
    rig.run(US, 10 * US, |_| false);
    assert_eq!(rig.hosts[1].device().lost(), 100);
    assert!(rig.hosts[1].is_idle());
    rig.audit();
}

const HOSTS: usize = 4;
const BYTES: usize = 200_000;

fn hosts(network: &MemoryNetwork, turns: &Arc<TransmitOrder>) -> Vec<Host> {
    (0..HOSTS).map(|number| host(network, number, US, turns)).collect()
}

/// Every host sends to the next; returns the completion of each message by receiver, and the number
/// of late frames.
fn ring() -> (Vec<(IpAddr, u64)>, u64) {
    let network = network(Impairments::default());
    let mut endpoints = hosts(&network, &TransmitOrder::new(HOSTS, US, TIES));
    for (host, endpoint) in endpoints.iter_mut().enumerate() {
        let connection = endpoint.connect(Time::ZERO, peer((host + 1) % HOSTS), None).unwrap();
        endpoint.send_at(connection, content(host, BYTES), Time::from_ps(20 * US)).unwrap();
    }
    // 100 times slower than the machine; steps below the 1 us of a link and the frame itself.
    let mut clock = DilatedClock::new(100.0, 900_000);
    let (mut completed, mut delivered, mut now_ps) = (Vec::new(), 0, clock.tick(0));
    while delivered < HOSTS {
        network.advance(Time::from_ps(now_ps));
        let handled_ps = poll_all(&mut endpoints, now_ps, |_, _| false);
        for endpoint in &mut endpoints {
            while let Some(event) = endpoint.poll_event() {
                match event {
                    EndpointEvent::Received { completed_at, .. } => {
                        completed.push((endpoint.config().address, completed_at.ps()));
                    }
                    EndpointEvent::Delivered { .. } => delivered += 1,
                    _ => {}
                }
            }
        }
        now_ps = clock.tick(handled_ps);
    }
    completed.sort();
    (completed, endpoints.iter().map(late).sum())
}

//= docs/specs/emulation.md#EMU-6 bounded clock
#[test]
fn stalls_do_not_affect_an_emulation() {
    let (first, late) = ring();
    assert_eq!((first.len(), late), (HOSTS, 0));
    assert_eq!(ring(), (first, 0));
}

/// Hosts repeatedly connect to a silent one.
//= docs/specs/emulation.md#EMU-5 order of sending
#[test]
fn hosts_that_send_in_turns_send_in_the_order_of_virtual_time() {
    const LONG: u64 = 20_000 * US;
    let network = network(Impairments::default());
    let mut hosts = hosts(&network, &TransmitOrder::new(HOSTS, US, TIES));
    for (host, endpoint) in hosts.iter_mut().enumerate() {
        for call in 0..3 {
            endpoint.connect(Time::from_ps((call * 7 + host as u64 * 3) * US), peer(HOSTS), None).unwrap();
        }
    }
    let mut silent = network.attach(mac(HOSTS));
    silent.flush().unwrap();
    // A clock that advances with every poll.
    let mut now_ps = 0;
    while hosts.iter().any(|host| host.device().done_ps() <= LONG) {
        now_ps += 300 * US;
        poll_all(&mut hosts, now_ps, |_, _| false);
    }
    network.advance(Time::from_ps(2 * LONG));
    let (mut times, mut arrivals) = (Vec::new(), Vec::with_capacity(64));
    while silent.receive(&mut arrivals, 64).unwrap() > 0 {
        for Received { frame, len, .. } in arrivals.drain(..) {
            times.extend(silent.frame(&frame, len).first_chunk().and_then(Shim::read).map(|shim| shim.virtual_time_ps));
            silent.release(frame);
        }
    }
    assert_eq!(times.len(), HOSTS * 3 * 12);
    assert!(times.is_sorted(), "{times:?}");
}
