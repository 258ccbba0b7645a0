//! A host on an interface for the length of a command, such as `spray send` or `spray tunnel`.
//!
//! | file | content |
//! |---|---|
//! | `taken` | how packets get from the NIC to the endpoint and back |
//! | `trust` | keys, and the command that makes them |
//! | `tap` | a capture of the frames |

mod freezes;
mod taken;
mod tap;
mod trust;

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::os::fd::RawFd;
use std::path::Path as FilePath;
use std::time::{Duration, Instant};

use spray_core::cc::CcKind;
use spray_core::flow::FlowConfig;
use spray_nic::device::{BindMode, Device, XskInterface};
use spray_nic::driver::Idle;
use spray_nic::keys::Keys;
use spray_nic::net::{Interface, Resolver};
use spray_nic::{Endpoint, EndpointConfig, Host, HostConfig, Peer, Time};
use spray_settings::{ConnectionPath, Document, Transport};
use tracing::{debug_span, info_span};

pub use self::freezes::Freezes;
pub use self::taken::Taken;
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
use crate::transfer::format::MESSAGE_BYTES;

/// A host on a real interface. Dropping it detaches the program and closes the socket.
pub struct Session {
    host: Host<XskInterface>,
    /// The Ethernet address that the user gave for the next hop.
    next_hop: Option<args::Mac>,
    pub freezes: Freezes,
    /// What else ends a sleep, when it is readable.
    pub wakers: Vec<RawFd>,
    outage: Outage,
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
    /// The Ethernet address of the next hop, instead of the kernel's routes.
    pub next_hop: Option<args::Mac>,
}

impl Path {
    /// Nothing is known of the path, which does not trim. `overrides` change the library's settings.
    ///
    /// # Errors
    /// 2 for overrides that are not allowed.
    pub fn new(overrides: &Overrides) -> Outcome<Self> {
        let mut given = Document::parse(FilePath::new("defaults"), "").map_err(Failure::refused)?;
        overrides.apply(&mut given)?;
        let transport = Transport::read(&given).map_err(Failure::refused)?;
        Ok(Self { transport, given, gbps: None, rtt_us: None, trimming: false, next_hop: None })
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
        let mut config = configure(arguments, peer, path, keys)?;
        adjust(&mut config.endpoint);
        let mut host = debug_span!("load and attach").in_scope(|| Host::open_with(config)).map_err(Failure::refused)?;
        note!("spray: {name}: {}", Taken::of(host.endpoint.device()));
        let watching = tap::begin(&arguments.captures, name)?;
        if let Some(Watching { watch, .. }) = &watching {
            host.endpoint = host.endpoint.with_tap(Box::new(Tap::new(watch.clone())));
        }
        let outage = Outage::new(name, Duration::from_secs(arguments.timeout));
        let (freezes, wakers) = (Freezes::default(), Vec::new());
        Ok(Self { host, next_hop: path.next_hop, freezes, wakers, outage, metrics, watching })
    }

    /// The endpoint's settings.
    pub fn config(&self) -> &EndpointConfig {
        self.host.endpoint.config()
    }

    /// The peer at an address, by way of the Ethernet address that the user gave, or else of the next hop that the kernel knows.
    ///
    /// # Errors
    /// 2 when there is no way there.
    pub fn peer(&self, address: IpAddr) -> Outcome<Peer> {
        match self.next_hop {
            Some(args::Mac(mac)) => Ok(Peer { address, mac }),
            // With that flag the kernel need not know.
            None => self.host.peer(address).map_err(|error| Failure::refused(format!("{error} (--peer-mac)"))),
        }
    }

    /// How the interface was taken over.
    pub fn taken(&self) -> Taken {
        Taken::of(self.host.endpoint.device())
    }

    /// Asks for next hops while it runs; `None` where the user gave one.
    pub fn resolver(&self) -> Option<Resolver> {
        self.host.resolver()
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
    pub fn run(&mut self, stop: &Stop, mut step: impl FnMut(&mut Endpoint<XskInterface>, Time) -> Step) -> Outcome {
        let Self { host, freezes, wakers, outage, metrics, .. } = self;
        let mut end = Ok(());
        metrics.start()?;
        let ran = host.run(Idle::Sleep(NAP), wakers, |endpoint, at| {
            let now = now();
            endpoint.drain_log().for_each(|entry| freezes.take(&entry.event));
            metrics.update(endpoint, freezes, |endpoint| endpoint.device().strays(), now);
            let step = match stop.is_set() {
                true => ControlFlow::Break(Err(Failure::stopped())),
                false => match outage.check(endpoint, now) {
                    ControlFlow::Continue(()) => step(endpoint, at),
                    broken => broken,
                },
            };
            step.map_break(|outcome| end = outcome)
        });
        ran.map_err(|error| Failure::failed(format!("cannot follow the kernel's routes: {error}")))?;
        end
    }

    /// Frames that came by a queue without a socket, and were lost; 0 when the kernel does not tell.
    pub fn strays(&self) -> u64 {
        self.host.endpoint.device().strays()
    }

    /// Ends all connections once what was sent is delivered, for which they have so long, and the capture.
    pub fn close(&mut self, limit: Duration) {
        self.host.close(limit);
        self.end_capture();
    }

    /// Ends all connections at once, tells their peers, and ends the capture. Tells of strays.
    pub fn end(&mut self) {
        self.host.abort();
        self.end_capture();
        strays_line(self.strays()).inspect(|line| note!("spray: {line}"));
    }

    fn end_capture(&mut self) {
        self.watching.take().into_iter().for_each(Watching::close);
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

/// The library's settings for the interface, with what the command line gives.
fn configure(
    arguments: &args::Interface,
    peer: Option<IpAddr>,
    path: &Path,
    keys: Option<Keys>,
) -> Outcome<HostConfig> {
    let interface = Interface::find(&arguments.interface).map_err(Failure::refused)?;
    let address = own_address(&interface, arguments, peer)?;
    let mut config = HostConfig::on(interface, address).map_err(Failure::refused)?;
    if let Some(keys) = keys {
        config.endpoint = config.endpoint.with_keys(keys);
    }
    let give_up = Duration::from_secs(arguments.timeout);
    config.endpoint = with_path(path, config.endpoint.with_give_up(give_up), &config.interface)?;
    config.endpoint.ports = arguments.steered.ports;
    config.endpoint.event_log = EVENTS;
    config.sockets.mode = match (arguments.zero_copy, arguments.copy) {
        (true, _) => BindMode::ZeroCopy,
        (_, true) => BindMode::Copy,
        _ => BindMode::Auto,
    };
    (config.queue, config.follows_routes) = (arguments.steered.queue, path.next_hop.is_none());
    Ok(config)
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

/// The endpoint's settings with those that the user gives for its connections. The library's packets fill those of the interface.
fn with_path(path: &Path, config: EndpointConfig, interface: &Interface) -> Outcome<EndpointConfig> {
    let (Interface { name, mtu, .. }, room) = (interface, config.flow.payload_bytes);
    let payload_bytes = path.or("transport.payload_bytes", path.transport.payload_bytes, room);
    if payload_bytes > room {
        let needed = mtu + payload_bytes - room;
        return Err(Failure::refused(format!(
            "the MTU of {name} is {mtu}, too small for {payload_bytes} bytes of payload: needed is {needed} \
             (`ip link set {name} mtu {needed}`), or less --payload"
        )));
    }
    let mut config = match path.rtt_us {
        Some(rtt_us) => config.with_first_rtt(Duration::from_secs_f64(rtt_us / 1e6)),
        None => config,
    };
    config.link_bps = path.gbps.map_or(config.link_bps, |gbps| (gbps * 1e9) as u64);
    config.flow = connection(path, FlowConfig { payload_bytes, ..config.flow }, config.link_bps);
    Ok(config)
}

/// The settings of a connection that learns its path: the library's, but for what the user gives. What the user says of the path is not kept,
/// but for the rate of `fixed-rate` and the first timeout.
//= docs/specs/calibration.md#CAL-5 guesses
fn connection(path: &Path, library: FlowConfig, link_bps: u64) -> FlowConfig {
    let FlowConfig { payload_bytes, header_bytes, .. } = library;
    let given = path.transport.flow_config(&ConnectionPath {
        balancer: path.transport.balancer[0],
        base_rtt_ps: library.path.base_rtt_ps,
        link_bps,
        payload_bytes,
        header_bytes,
        trimming: path.trimming,
    });
    let window_packets = path.or("transport.window_packets", given.window_packets, library.window_packets);
    let learned = FlowConfig { window_packets, ..given }.learning();
    let max_window_bytes =
        path.or("transport.max_window_bytes", given.path.max_window_bytes, learned.path.max_window_bytes);
    let first_bytes = learned.path.initial_window_bytes.min(max_window_bytes);
    let initial_window_bytes = path.or("transport.initial_window_bytes", given.path.initial_window_bytes, first_bytes);
    FlowConfig {
        path: spray_nic::Path { max_window_bytes, initial_window_bytes, ..learned.path },
        ack_every: path.or("transport.ack_every", given.ack_every, library.ack_every),
        ack_evs: path.or("transport.ack_evs", given.ack_evs, library.ack_evs),
        ack_delay_ps: path.or("transport.ack_delay_us", given.ack_delay_ps, library.ack_delay_ps),
        give_up_ps: path.or("transport.give_up_us", given.give_up_ps, library.give_up_ps),
        rto: path.or("transport.rto_min_us", given.rto, library.rto),
        max_message_bytes: MESSAGE_BYTES,
        ..learned
    }
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

    fn library() -> EndpointConfig {
        EndpointConfig::real([10, 0, 0, 1].into(), [2; 6], 1500).unwrap()
    }

    fn flow(path: &Path) -> FlowConfig {
        with_path(path, library(), &Interface::default()).unwrap().flow
    }

    #[test]
    fn what_is_typed_of_the_path_changes_only_the_first_timeout() {
        //= docs/specs/calibration.md#CAL-5 guesses
        let none = flow(&path(&[], None, None));
        assert_eq!(none.rto.min_ps, 5_000 * 1_000_000);
        for (rtt_us, gbps) in [(84.2, 0.08), (842.0, 0.8), (8_420.0, 8.0)] {
            let typed = flow(&path(&[], Some(rtt_us), Some(gbps)));
            let initial_ps = typed.rto.initial_ps;
            assert_eq!(initial_ps, ((rtt_us * 10e6) as u64).max(10_000 * 1_000_000));
            assert_eq!(FlowConfig { rto: RtoConfig { initial_ps, ..none.rto }, ..none }, typed, "{rtt_us}");
        }
    }

    #[test]
    fn without_settings_the_librarys_hold() {
        assert_eq!(flow(&path(&[], None, None)), FlowConfig { max_message_bytes: MESSAGE_BYTES, ..library().flow });
    }

    #[test]
    fn what_is_given_holds_whatever_the_defaults_are() {
        let given =
            flow(&path(&["--ack-every=1", "--payload=1000", "--set=transport.window_packets=4096"], None, None));
        assert_eq!((given.ack_every, given.ack_evs), (1, library().flow.ack_evs));
        assert_eq!((given.payload_bytes, given.window_packets), (1000, 4096));
        let too_long = with_path(&path(&["--payload=9000"], None, None), library(), &Interface::default());
        assert!(too_long.unwrap_err().to_string().contains("too small for 9000 bytes of payload"));
    }

    #[test]
    fn a_fixed_rate_is_the_one_that_is_typed() {
        let path = path(&["--cc=fixed-rate"], None, Some(0.8));
        path.check().unwrap();
        let ControlConfig::FixedRate(FixedRateConfig { rate_gbps }) = flow(&path).cc else { panic!("another control") };
        assert_eq!(rate_gbps.unwrap().bps(), 800_000_000);
    }

    /// A peer may announce no more than what a sender sends: the receiver makes room for a message with its first packet.
    #[test]
    //= docs/specs/endpoint.md#END-21 No message is longer
    fn no_message_is_longer_than_a_piece() {
        use crate::transfer::format::{PIECE_BYTES, begin_piece};
        let longest = begin_piece(0, 0, PIECE_BYTES).len() as u64 + PIECE_BYTES;
        assert_eq!(flow(&path(&[], None, None)).max_message_bytes, longest);
    }

    #[test]
    fn the_first_window_is_within_the_largest() {
        let path = path(&["--set=transport.max_window_bytes=10000"], None, None);
        let known = flow(&path).path;
        assert_eq!((known.initial_window_bytes, known.max_window_bytes), (10_000, 10_000));
    }
}
