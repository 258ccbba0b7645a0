//! An interface taken over for the length of a command: steering program, AF_XDP socket, endpoint and clock.

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::Path as FilePath;
use std::time::{Duration, Instant};

use spray_core::cc::CcConfig;
use spray_core::event::Event;
use spray_core::flow::FlowConfig;
use spray_core::loss::RtoConfig;
use spray_experiments::scenario::{ConnectionPath, Document, Transport};
use spray_nic::clock::DilatedClock;
use spray_nic::device::{BindMode, Device, OpenError, XskConfig, XskDevice};
use spray_nic::driver::{self, Idle};
use spray_nic::{ConnectionId, Endpoint, EndpointConfig, Mode};
use spray_testbed::program::{AttachMode, SteerProgram};
use spray_wire::Kind;

use super::network;
use crate::args;
use crate::failure::{Failure, Outcome};
use crate::progress::now;
use crate::say::note;
use crate::settings::Overrides;
use crate::stop::Stop;

/// An endpoint on a real interface. Dropping it detaches the program and closes the socket.
pub struct Session {
    endpoint: Endpoint<XskDevice>,
    clock: DilatedClock,
    pub interface: network::Interface,
    pub address: IpAddr,
    pub flow: FlowConfig,
    /// Times that a balancer froze (REPS §3.2).
    pub freezes: u64,
    outage: Outage,
    _steer: SteerProgram,
}

/// The answer of a command's step: go on, or end with this outcome.
pub type Step = ControlFlow<Outcome>;

/// What a connection must know about the path and the kernel does not know.
pub struct Path {
    pub transport: Transport,
    /// Settings that the command line gives.
    pub given: Document,
    /// First guesses, for where the connection has not learned the path yet.
    pub gbps: Option<f64>,
    pub rtt_us: Option<f64>,
    pub trimming: bool,
}

impl Path {
    /// By default nothing is known of the path, which does not trim. An ACK stands for four packets and echoes the entropy
    /// values of all of them. `overrides` change the settings.
    ///
    /// # Errors
    /// 2 for overrides that are not allowed.
    pub fn new(overrides: &Overrides<true>) -> Outcome<Self> {
        let defaults = "[transport]\nack_every = 4\nack_evs = 4\n";
        let mut given = Document::parse(FilePath::new("defaults"), defaults).map_err(Failure::refused)?;
        overrides.apply(&mut given)?;
        let transport = Transport::read(&given).map_err(Failure::refused)?;
        Ok(Self { transport, given, gbps: None, rtt_us: None, trimming: false })
    }

    /// The value of a setting where the command line gives it, or `default`.
    fn or<T>(&self, path: &str, value: T, default: T) -> T {
        if self.given.is_assigned(path) { value } else { default }
    }
}

const PS_PER_S: u64 = 1_000_000_000_000;
const PS_PER_US: f64 = 1e6;
/// Least retransmission timeout: a general-purpose kernel may keep a thread from the CPU for this long.
const MIN_RTO_PS: u64 = 5_000_000_000;
/// Events between two steps, of which freezes are counted. A retransmission is one too, so the log takes those of a poll.
const EVENTS: usize = 4096;
/// The path before anything is known of it.
const FIRST_GBPS: f64 = 10.0;
const FIRST_RTT_US: f64 = 100.0;
/// Most packets between the first unacknowledged one and the next: a bandwidth-delay product of 100 Gb/s and 1 ms.
const WINDOW_PACKETS: u32 = 8192;
/// Longest sleep, and so the longest time until Ctrl-C is seen.
const NAP: Duration = Duration::from_millis(10);

impl Session {
    /// Takes the interface over.
    ///
    /// # Errors
    /// When it is missing, down, busy, without a fitting address, or its MTU is too small; when rights are missing.
    pub fn open(arguments: &args::Interface, peer: Option<IpAddr>, path: &Path) -> Outcome<Self> {
        let name = &arguments.interface;
        let interface = network::interface(name)?;
        let address = own_address(&interface, arguments, peer)?;
        check_ready(&interface, name)?;
        let flow = flow(arguments, &interface, address, path)?;
        let (device, steer) = take_over(&interface, arguments)?;
        let mut config = EndpointConfig::new(address, interface.mac, Mode::Real, flow);
        config.max_connections = 16;
        config.event_log = EVENTS;
        config.idle_timeout_ps = arguments.timeout * PS_PER_S;
        config.handshake.retry_ps = (arguments.timeout * PS_PER_S) / 80;
        let endpoint = Endpoint::new(device, config).map_err(Failure::refused)?;
        let outage = Outage::new(name, Duration::from_secs(arguments.timeout));
        Ok(Self { endpoint, clock: DilatedClock::real(), interface, address, flow, freezes: 0, outage, _steer: steer })
    }

    /// Runs the endpoint, and calls `step` after every poll, until a step ends the command or the user stops it.
    pub fn run(&mut self, stop: &Stop, mut step: impl FnMut(&mut Endpoint<XskDevice>, u64) -> Step) -> Outcome {
        let (mut end, outage, freezes) = (Ok(()), &mut self.outage, &mut self.freezes);
        driver::run(
            std::slice::from_mut(&mut self.endpoint),
            &mut self.clock,
            Idle::Sleep(NAP),
            |endpoints, now_ps| {
                let endpoint = &mut endpoints[0];
                *freezes += endpoint.drain_log().filter(|entry| entry.event == Event::FreezeEntered).count() as u64;
                let step = match stop.is_set() {
                    true => ControlFlow::Break(Err(Failure::interrupted())),
                    false => match outage.check(endpoint, now()) {
                        ControlFlow::Continue(()) => step(endpoint, now_ps),
                        broken => broken,
                    },
                };
                step.map_break(|outcome| end = outcome)
            },
        );
        end
    }

    /// Aborts `connections` and tells their peers.
    pub fn abort(&mut self, connections: impl IntoIterator<Item = ConnectionId>) {
        connections.into_iter().for_each(|connection| self.endpoint.abort(connection));
        self.endpoint.poll(self.clock.now_ps());
    }
}

/// How long the interface has not sent. A short outage is waited out: cables are replugged, and interfaces reconfigured.
pub(super) struct Outage {
    interface: String,
    limit: Duration,
    since: Option<Instant>,
}

impl Outage {
    pub(super) fn new(interface: &str, limit: Duration) -> Self {
        Self { interface: interface.into(), limit, since: None }
    }

    /// Ends the command when the interface was removed, or is down for longer than the limit.
    pub(super) fn check<D: Device>(&mut self, endpoint: &Endpoint<D>, now: Instant) -> Step {
        let name = &self.interface;
        if endpoint.is_device_gone() {
            return ControlFlow::Break(Err(Failure::failed(format!("interface {name} was removed"))));
        }
        if !endpoint.is_device_failing() {
            self.since = None;
            return ControlFlow::Continue(());
        }
        if now < *self.since.get_or_insert(now) + self.limit {
            return ControlFlow::Continue(());
        }
        let (seconds, hint) = (self.limit.as_secs(), format!("`ip link set {name} up`"));
        ControlFlow::Break(Err(Failure::failed(format!("interface {name} has been down for {seconds} s: {hint}"))))
    }
}

fn own_address(interface: &network::Interface, arguments: &args::Interface, peer: Option<IpAddr>) -> Outcome<IpAddr> {
    if let (Some(from), Some(peer)) = (arguments.from, peer)
        && from.is_ipv4() != peer.is_ipv4()
    {
        return Err(Failure::refused(format!("--from {from} and --to {peer} are not of the same IP version")));
    }
    arguments.from.or_else(|| interface.address_like(peer)).ok_or_else(|| {
        let version = if peer.is_some_and(|peer| peer.is_ipv6()) { "IPv6" } else { "IP" };
        let name = &arguments.interface;
        Failure::refused(format!(
            "{name} has no {version} address: `ip address add ... dev {name}`, or give one with --from"
        ))
    })
}

fn check_ready(interface: &network::Interface, name: &str) -> Outcome {
    if !interface.up {
        return Err(Failure::refused(format!("interface {name} is down: `ip link set {name} up`")));
    }
    match interface.xdp_program {
        None => Ok(()),
        Some(id) => Err(Failure::refused(format!(
            "interface {name} is busy: XDP program {id} is attached to it (`bpftool prog show id {id}` tells whose); \
             stop its owner, or detach it: `bpftool link detach id N` if `bpftool link show` lists a link N of that program, \
             otherwise `ip link set dev {name} xdp off`"
        ))),
    }
}

/// Connection parameters: the MTU limits the packet size, and the user gives rate and round-trip time of the path.
fn flow(arguments: &args::Interface, interface: &network::Interface, own: IpAddr, path: &Path) -> Outcome<FlowConfig> {
    const ETHERNET_HEADER: u32 = 14;
    const LEAST_PAYLOAD: u32 = 64;
    let header_bytes = spray_wire::header_bytes(own.is_ipv6(), Kind::Data) as u32;
    let room = (interface.mtu + ETHERNET_HEADER).saturating_sub(header_bytes);
    let payload_bytes = path.or("transport.payload_bytes", path.transport.payload_bytes, room);
    if payload_bytes > room || room < LEAST_PAYLOAD {
        let needed = payload_bytes.max(LEAST_PAYLOAD) + header_bytes - ETHERNET_HEADER;
        let name = &arguments.interface;
        return Err(Failure::refused(format!(
            "the MTU of {name} is {}, too small for {payload_bytes} bytes of payload: needed is {needed} \
             (`ip link set {name} mtu {needed}`), or less --payload",
            interface.mtu
        )));
    }
    let link_bps = (path.gbps.unwrap_or(FIRST_GBPS) * 1e9) as u64;
    let base_rtt_ps = (path.rtt_us.unwrap_or(FIRST_RTT_US) * PS_PER_US) as u64;
    let balancer = path.transport.balancer[0];
    let trimming = path.trimming;
    let connection = ConnectionPath { balancer, base_rtt_ps, link_bps, payload_bytes, header_bytes, trimming };
    let flow = path.transport.flow_config(&connection);
    let default = FlowConfig::for_path(payload_bytes, header_bytes, flow.path, flow.cc);
    let window_packets = path.or("transport.window_packets", flow.window_packets, WINDOW_PACKETS);
    let learned = FlowConfig { window_packets, ..flow }.learning();
    let cc = CcConfig {
        max_window_bytes: path.or("transport.max_window_bytes", flow.cc.max_window_bytes, learned.cc.max_window_bytes),
        initial_window_bytes: path.or(
            "transport.initial_window_bytes",
            flow.cc.initial_window_bytes,
            learned.cc.initial_window_bytes,
        ),
        ..learned.cc
    };
    Ok(FlowConfig {
        cc,
        ack_delay_ps: path.or("transport.ack_delay_us", flow.ack_delay_ps, default.ack_delay_ps),
        give_up_ps: path.or("transport.give_up_us", flow.give_up_ps, arguments.timeout * PS_PER_S),
        rto: path.or("transport.rto_min_us", flow.rto, patient(default.rto)),
        ..learned
    })
}

fn patient(rto: RtoConfig) -> RtoConfig {
    let min_ps = rto.min_ps.max(MIN_RTO_PS);
    RtoConfig { min_ps, initial_ps: rto.initial_ps.max(2 * min_ps), max_ps: rto.max_ps.max(16 * min_ps) }
}

/// Attaches the program after the socket exists, so that a steered frame finds its socket.
fn take_over(interface: &network::Interface, arguments: &args::Interface) -> Outcome<(XskDevice, SteerProgram)> {
    let name = &arguments.interface;
    let mut config = XskConfig::new(name.clone(), arguments.queue);
    config.mode = match (arguments.zero_copy, arguments.copy) {
        (true, _) => BindMode::ZeroCopy,
        (_, true) => BindMode::Copy,
        _ => BindMode::Auto,
    };
    let device = XskDevice::open(&config).map_err(|error: OpenError| Failure::refused(error))?;
    let mut steer = SteerProgram::load().map_err(Failure::refused)?;
    steer.register(arguments.queue, device.as_fd()).map_err(Failure::refused)?;
    let mode = steer.attach(interface.index).map_err(|error| {
        Failure::refused(format!("cannot attach to {name}: {error}. If it is busy, stop the other XDP program"))
    })?;
    if mode == AttachMode::Generic {
        note!("spray: warning: the driver of {name} has no native XDP; the generic way is slower");
    }
    Ok((device, steer))
}
