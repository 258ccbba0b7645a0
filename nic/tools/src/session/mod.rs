//! An interface taken over for the length of a command, such as `spray send` or `spray tunnel`: steering program, AF_XDP socket, endpoint and
//! clock.
//!
//! | file | content |
//! |---|---|
//! | `trust` | keys, and the command that makes them |
//! | `tap` | a capture of the frames |

mod tap;
mod trust;

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::os::fd::RawFd;
use std::path::Path as FilePath;
use std::time::{Duration, Instant};

use spray_core::cc::CcKind;
use spray_core::event::{Event, FreezeReason};
use spray_core::feedback::LossCause;
use spray_core::flow::FlowConfig;
use spray_nic::clock::{Clock, MonotonicClock};
use spray_nic::device::{BindMode, Device, XskConfig, XskInterface};
use spray_nic::driver::{self, Idle};
use spray_nic::endpoint::HandshakeConfig;
use spray_nic::net::{Interface, NextHops, Resolver, Source};
use spray_nic::real;
use spray_nic::xdp::AttachMode;
use spray_nic::{ConnectionId, Endpoint, EndpointConfig, Peer};
use spray_settings::{ConnectionPath, Document, Transport};
use tracing::{debug_span, info_span};

use self::tap::Tap;
pub use self::trust::keygen;
use crate::args;
use crate::captures::Watching;
use crate::confine::{Reach, confine};
use crate::failure::{Failure, Outcome};
use crate::metrics::{self, Metrics};
use crate::note;
use crate::progress::now;
use crate::settings::Overrides;
use crate::stop::Stop;
use crate::transfer::CONNECTIONS;
use crate::transfer::format::MESSAGE_BYTES;

/// An endpoint on a real interface. Dropping it detaches the program and closes the socket.
pub struct Session {
    endpoint: Endpoint<XskInterface>,
    clock: MonotonicClock,
    pub interface: Interface,
    pub address: IpAddr,
    pub flow: FlowConfig,
    pub freezes: Freezes,
    /// What else ends a sleep, when it is readable.
    pub wakers: Vec<RawFd>,
    outage: Outage,
    /// Unless the user gave the next hop.
    next_hops: Option<NextHops>,
    metrics: metrics::session::Session,
    watching: Option<Watching>,
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
    pub fn new(overrides: &Overrides) -> Outcome<Self> {
        let defaults = format!("[transport]\nack_every = {0}\nack_evs = {0}\n", real::ACK_EVERY);
        let mut given = Document::parse(FilePath::new("defaults"), &defaults).map_err(Failure::refused)?;
        overrides.apply(&mut given)?;
        let transport = Transport::read(&given).map_err(Failure::refused)?;
        Ok(Self { transport, given, gbps: None, rtt_us: None, trimming: false })
    }

    /// The rate of the host's link, as far as it is known.
    fn link_bps(&self) -> u64 {
        self.gbps.map_or(real::FIRST_BPS, |gbps| (gbps * 1e9) as u64)
    }

    /// Refuses a control that needs a rate and has none. No default would be right, and what was learned is what it sends.
    ///
    /// # Errors
    /// 2 for a control without its rate.
    pub fn check(&self) -> Outcome {
        let own = &self.transport.cc_schemes.fixed_rate;
        if self.transport.cc == CcKind::FixedRate && own.rate_gbps.is_none() && self.gbps.is_none() {
            return Err(Failure::refused("--cc fixed-rate needs a rate: give one with --gbps"));
        }
        Ok(())
    }

    /// The value of a setting where the command line gives it, or `default`.
    fn or<T>(&self, path: &str, value: T, default: T) -> T {
        if self.given.is_assigned(path) { value } else { default }
    }
}

/// Picoseconds of a second.
pub const PS_PER_S: u64 = 1_000_000_000_000;
const PS_PER_US: f64 = 1e6;
/// Events between two steps, of which freezes are counted. A retransmission is one too, so the log takes those of a poll.
const EVENTS: usize = 4096;
/// Longest sleep, and so the longest time until Ctrl-C is seen.
const NAP: Duration = Duration::from_millis(10);

impl Session {
    /// Takes the interface over.
    ///
    /// # Errors
    /// When it is missing, down, busy, without a fitting address, or its MTU is too small; when rights or keys are missing.
    pub fn open(arguments: &args::Interface, peer: Option<IpAddr>, path: &Path) -> Outcome<Self> {
        Self::open_with(arguments, peer, path, |_| {})
    }

    /// As [`Session::open`], with settings of the endpoint that `adjust` changes.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_with(
        arguments: &args::Interface,
        peer: Option<IpAddr>,
        path: &Path,
        adjust: impl FnOnce(&mut EndpointConfig),
    ) -> Outcome<Self> {
        let name = &arguments.interface;
        let _span = info_span!("open", interface = %name).entered();
        let metrics = metrics::session::Session::new(Metrics::open(arguments.publish.metrics)?);
        let keys = trust::keys(&arguments.trust)?;
        let interface = Interface::find(name).map_err(Failure::refused)?;
        let address = own_address(&interface, arguments, peer)?;
        interface.check_free().map_err(Failure::refused)?;
        let flow = flow(arguments, &interface, address, path, keys.is_some())?;
        let device = debug_span!("load and attach").in_scope(|| take_over(&interface, address, arguments))?;
        let watching = tap::begin(&arguments.captures, name)?;
        let mut config = EndpointConfig::new(address, interface.mac, flow);
        config.ports = arguments.steered.ports;
        config.max_connections = CONNECTIONS;
        config.link_bps = path.link_bps();
        config.event_log = EVENTS;
        config.keys = keys;
        let give_up = Duration::from_secs(arguments.timeout);
        config.idle_timeout_ps = real::ps(give_up);
        config.handshake = HandshakeConfig::within(give_up);
        adjust(&mut config);
        let mut endpoint = Endpoint::new(device, config).map_err(Failure::refused)?;
        if let Some(Watching { watch, .. }) = &watching {
            endpoint = endpoint.with_tap(Box::new(Tap::new(watch.clone())));
        }
        let outage = Outage::new(name, Duration::from_secs(arguments.timeout));
        Ok(Self {
            endpoint,
            clock: MonotonicClock::new(),
            interface,
            address,
            flow,
            freezes: Freezes::default(),
            wakers: Vec::new(),
            outage,
            next_hops: None,
            metrics,
            watching,
        })
    }

    /// From where it sends, for the kernel's routes.
    pub fn source(&self) -> Source {
        let interface = self.endpoint.device().interface().into();
        Source { interface, index: self.interface.index, address: self.address }
    }

    /// While it runs, frames go where the kernel's routes and neighbours say.
    ///
    /// # Errors
    /// When the kernel does not tell them.
    pub fn follow_routes(&mut self) -> Outcome {
        self.next_hops = Some(NextHops::open(self.source()).map_err(Failure::refused)?);
        Ok(())
    }

    /// The peer at an address, by way of the Ethernet address that the user gave, or else of the next hop that the kernel knows.
    ///
    /// # Errors
    /// 2 when there is no way there.
    pub fn peer(&mut self, address: IpAddr, mac: Option<args::Mac>) -> Outcome<Peer> {
        let mac = match mac {
            Some(mac) => mac.0,
            None => {
                self.follow_routes()?;
                self.source().resolve(address).map_err(by_hand)?
            }
        };
        Ok(Peer { address, mac })
    }

    /// Asks for next hops while it runs; `None` before [`Session::follow_routes`].
    pub fn resolver(&self) -> Option<Resolver> {
        self.next_hops.as_ref().map(NextHops::resolver)
    }

    /// Waits for an interface that is down for as long as it takes.
    pub fn outlast_outages(&mut self) {
        self.outage.limit = None;
    }

    /// Gives up all that a session does not need which is open and runs no thread yet.
    ///
    /// # Errors
    /// 2 when more would be kept.
    pub fn confine(&self, reach: &Reach<'_>) -> Outcome {
        // How many CPUs there may be is read from a file, and kept.
        self.strays();
        confine(reach)
    }

    /// Runs the endpoint, and calls `step` after every poll, until a step ends the command or the user stops it.
    pub fn run(&mut self, stop: &Stop, mut step: impl FnMut(&mut Endpoint<XskInterface>, u64) -> Step) -> Outcome {
        let (mut end, outage, freezes) = (Ok(()), &mut self.outage, &mut self.freezes);
        let (next_hops, metrics) = (&mut self.next_hops, &mut self.metrics);
        metrics.start()?;
        next_hops.as_mut().map_or(Ok(()), NextHops::start).map_err(Failure::failed)?;
        driver::run_waking(
            std::slice::from_mut(&mut self.endpoint),
            &mut self.clock,
            Idle::Sleep(NAP),
            &self.wakers,
            |endpoints, now_ps| {
                let (endpoint, now) = (&mut endpoints[0], now());
                if let Some(next_hops) = next_hops {
                    next_hops.update(endpoint, now_ps);
                }
                endpoint.drain_log().for_each(|entry| freezes.take(&entry.event));
                metrics.update(endpoint, freezes, |endpoint| endpoint.device().strays(), now);
                let step = match stop.is_set() {
                    true => ControlFlow::Break(Err(Failure::stopped())),
                    false => match outage.check(endpoint, now) {
                        ControlFlow::Continue(()) => step(endpoint, now_ps),
                        broken => broken,
                    },
                };
                step.map_break(|outcome| end = outcome)
            },
        );
        end
    }

    /// Frames that came by a queue without a socket, and were lost; 0 when the kernel does not tell.
    pub fn strays(&self) -> u64 {
        self.endpoint.device().strays()
    }

    /// Ends the capture, if there is one, and tells of it.
    pub fn end_capture(&mut self) {
        self.watching.take().into_iter().for_each(Watching::close);
    }

    /// Aborts `connections` and tells their peers.
    pub fn abort(&mut self, connections: impl IntoIterator<Item = ConnectionId>) {
        connections.into_iter().for_each(|connection| self.endpoint.abort(connection));
        self.endpoint.poll(self.clock.now_ps());
    }
}

/// The library's error, with the flag that goes without the kernel's answer.
fn by_hand(error: impl std::fmt::Display) -> Failure {
    Failure::refused(format!("{error} (--peer-mac)"))
}

/// Times that a balancer froze (REPS §3.2), and why: for a loss by timeout, for one by a gap, for unanswered probes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Freezes {
    pub all: u64,
    pub by_timeout: u64,
    pub by_gap: u64,
    pub by_probes: u64,
}

impl Freezes {
    pub fn take(&mut self, event: &Event) {
        let Event::FreezeEntered { reason } = event else { return };
        self.all += 1;
        match reason {
            FreezeReason::Loss(LossCause::Timeout) => self.by_timeout += 1,
            FreezeReason::Loss(_) => self.by_gap += 1,
            FreezeReason::Probes => self.by_probes += 1,
            FreezeReason::Setting => {}
        }
    }
}

/// How long the interface has not sent. A short outage is waited out: cables are replugged, and interfaces reconfigured.
pub(super) struct Outage {
    interface: String,
    /// `None`: as long as it takes.
    limit: Option<Duration>,
    since: Option<Instant>,
}

impl Outage {
    pub(super) fn new(interface: &str, limit: Duration) -> Self {
        Self { interface: interface.into(), limit: Some(limit), since: None }
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
        let since = *self.since.get_or_insert(now);
        let Some(limit) = self.limit.filter(|limit| now >= since + *limit) else { return ControlFlow::Continue(()) };
        let (seconds, hint) = (limit.as_secs(), format!("`ip link set {name} up`"));
        ControlFlow::Break(Err(Failure::failed(format!("interface {name} has been down for {seconds} s: {hint}"))))
    }
}

fn own_address(interface: &Interface, arguments: &args::Interface, peer: Option<IpAddr>) -> Outcome<IpAddr> {
    if let (Some(from), Some(peer)) = (arguments.steered.from, peer)
        && from.is_ipv4() != peer.is_ipv4()
    {
        return Err(Failure::refused(format!("--from {from} and --to {peer} are not of the same IP version")));
    }
    let or_from = |error| Failure::refused(format!("{error}, or give one with --from"));
    arguments.steered.from.map_or_else(|| interface.own_address(peer).map_err(or_from), Ok)
}

/// Connection parameters: the MTU limits the packet size, and the user gives rate and round-trip time of the path.
fn flow(
    arguments: &args::Interface,
    interface: &Interface,
    own: IpAddr,
    path: &Path,
    sealed: bool,
) -> Outcome<FlowConfig> {
    let header_bytes = real::header_bytes(own.is_ipv6(), sealed);
    let room = real::payload_bytes(interface.mtu, header_bytes);
    let payload_bytes = path.or("transport.payload_bytes", path.transport.payload_bytes, room.unwrap_or_default());
    if room.is_err() || room.is_ok_and(|room| payload_bytes > room) {
        let needed = real::mtu(payload_bytes, header_bytes);
        let name = &interface.name;
        return Err(Failure::refused(format!(
            "the MTU of {name} is {}, too small for {payload_bytes} bytes of payload: needed is {needed} \
             (`ip link set {name} mtu {needed}`), or less --payload",
            interface.mtu
        )));
    }
    Ok(connection(path, payload_bytes, header_bytes, arguments.timeout))
}

/// The settings of a connection that learns its path. What the user says of the path is not kept, but for the rate of `fixed-rate` and the
/// first timeout.
//= docs/specs/calibration.md#CAL-5 guesses
fn connection(path: &Path, payload_bytes: u32, header_bytes: u32, timeout_s: u64) -> FlowConfig {
    let link_bps = path.link_bps();
    let base_rtt_ps = path.rtt_us.map_or(real::ps(real::FIRST_RTT), |rtt_us| (rtt_us * PS_PER_US) as u64);
    let balancer = path.transport.balancer[0];
    let trimming = path.trimming;
    let connection = ConnectionPath { balancer, base_rtt_ps, link_bps, payload_bytes, header_bytes, trimming };
    let flow = path.transport.flow_config(&connection);
    let window_packets = path.or("transport.window_packets", flow.window_packets, real::WINDOW_PACKETS);
    let learned = FlowConfig { window_packets, ..flow }.learning();
    let max_window_bytes =
        path.or("transport.max_window_bytes", flow.path.max_window_bytes, learned.path.max_window_bytes);
    let first_bytes = learned.path.initial_window_bytes.min(max_window_bytes);
    let initial_window_bytes = path.or("transport.initial_window_bytes", flow.path.initial_window_bytes, first_bytes);
    FlowConfig {
        path: spray_nic::Path { max_window_bytes, initial_window_bytes, ..learned.path },
        ack_delay_ps: path.or("transport.ack_delay_us", flow.ack_delay_ps, real::ps(real::ACK_DELAY)),
        give_up_ps: path.or("transport.give_up_us", flow.give_up_ps, timeout_s * PS_PER_S),
        rto: path.or("transport.rto_min_us", flow.rto, real::rto(base_rtt_ps)),
        max_message_bytes: MESSAGE_BYTES,
        ..learned
    }
}

/// Opens the interface; only frames to `own` are steered away from the kernel.
fn take_over(interface: &Interface, own: IpAddr, arguments: &args::Interface) -> Outcome<XskInterface> {
    let name = &arguments.interface;
    let mode = match (arguments.zero_copy, arguments.copy) {
        (true, _) => BindMode::ZeroCopy,
        (_, true) => BindMode::Copy,
        _ => BindMode::Auto,
    };
    let config = XskConfig { mode, ..XskConfig::new(name.clone(), 0) };
    let device = XskInterface::open_with(interface, (own, arguments.steered.ports), &config, arguments.steered.queue)
        .map_err(Failure::refused)?;
    if device.attach_mode() == AttachMode::Generic {
        note!("spray: warning: the driver of {name} has no native XDP; the generic way is slower");
    }
    Ok(device)
}

/// The line about frames that came by a queue without a socket, if there were any.
pub fn strays_line(strays: u64) -> Option<String> {
    (strays > 0).then(|| {
        format!(
            "{strays} frames arrived on queues without a socket and were lost: leave out --queue, or have the NIC put UDP port \
             61440 (or that of --port) on that queue"
        )
    })
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};
    use spray_core::cc::{ControlConfig, FixedRateConfig};
    use spray_core::loss::RtoConfig;

    use spray_settings::Connections;

    use super::*;

    fn path(arguments: &[&str], rtt_us: Option<f64>, gbps: Option<f64>) -> Path {
        let command = Overrides::<Connections>::augment_args(Command::new("send"));
        let matches = command.get_matches_from([&["send"], arguments].concat());
        let overrides = Overrides::from_arg_matches(&matches).unwrap();
        Path { rtt_us, gbps, ..Path::new(&overrides).unwrap() }
    }

    #[test]
    fn what_is_typed_of_the_path_changes_only_the_first_timeout() {
        //= docs/specs/calibration.md#CAL-5 guesses
        let none = connection(&path(&[], None, None), 1_400, 64, 5);
        assert_eq!(none.rto.min_ps, 5_000 * 1_000_000);
        for (rtt_us, gbps) in [(84.2, 0.08), (842.0, 0.8), (8_420.0, 8.0)] {
            let typed = connection(&path(&[], Some(rtt_us), Some(gbps)), 1_400, 64, 5);
            let initial_ps = typed.rto.initial_ps;
            assert_eq!(initial_ps, ((rtt_us * 10e6) as u64).max(10_000 * 1_000_000));
            assert_eq!(FlowConfig { rto: RtoConfig { initial_ps, ..none.rto }, ..none }, typed, "{rtt_us}");
        }
    }

    /// What the library takes for a real network is what the commands take.
    #[test]
    fn the_librarys_defaults_are_these() {
        let ours = connection(&path(&[], None, None), 1_400, 64, 5);
        let theirs = real::flow(1_400, 64);
        assert_eq!(FlowConfig { max_message_bytes: theirs.max_message_bytes, ..ours }, theirs);
    }

    #[test]
    fn a_fixed_rate_is_the_one_that_is_typed() {
        let path = path(&["--cc=fixed-rate"], None, Some(0.8));
        path.check().unwrap();
        let ControlConfig::FixedRate(FixedRateConfig { rate_gbps }) = connection(&path, 1_400, 64, 5).cc else {
            panic!("another control")
        };
        assert_eq!(rate_gbps.unwrap().bps(), 800_000_000);
    }

    /// A peer may announce no more than what a sender sends: the receiver makes room for a message with its first packet.
    #[test]
    //= docs/specs/endpoint.md#END-21 No message is longer
    fn no_message_is_longer_than_a_piece() {
        use crate::transfer::format::{PIECE_BYTES, begin_piece};
        let longest = begin_piece(0, 0, PIECE_BYTES).len() as u64 + PIECE_BYTES;
        assert_eq!(connection(&path(&[], None, None), 1_400, 64, 5).max_message_bytes, longest);
    }

    #[test]
    fn the_first_window_is_within_the_largest() {
        let path = path(&["--set=transport.max_window_bytes=10000"], None, None);
        let known = connection(&path, 1_400, 64, 5).path;
        assert_eq!((known.initial_window_bytes, known.max_window_bytes), (10_000, 10_000));
    }
}
