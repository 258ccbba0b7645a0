//! A host on an interface for the length of a command, such as `spray send` or `spray tunnel`.
//!
//! | file | content |
//! |---|---|
//! | `open` | the device that the command line asks for |
//! | `shards` | a thread for each shard of the host |
//! | `path` | what is said of the path, and the settings of connections over it |
//! | `taken` | how packets get from the NIC to the endpoint and back |
//! | `trust` | keys, and the command that makes them |
//! | `tap` | a capture of the frames |

mod freezes;
mod mtu;
mod open;
mod path;
mod shards;
mod taken;
mod tap;
mod trust;

use std::net::IpAddr;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::os::fd::RawFd;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use spray_nic::device::{Device, Nic, XskInterface};
use spray_nic::driver::Idle;
use spray_nic::net::Resolver;
use spray_nic::{Endpoint, EndpointConfig, Host, Peer, Time};
use tracing::info_span;

pub use self::freezes::Freezes;
pub use self::path::Path;
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
use crate::stop::Stop;

/// A host on a real network. Dropping it closes the sockets, and detaches the program of an interface that was taken over.
pub struct Session {
    host: Host<Nic>,
    /// The host's further shards.
    others: Vec<Host<Nic>>,
    /// What users know the device by.
    name: String,
    /// The Ethernet address that the user gave for the next hop.
    next_hop: Option<args::Mac>,
    pub freezes: Freezes,
    /// What else ends a sleep, when it is readable.
    pub wakers: Vec<RawFd>,
    outage: Outage,
    mtu: mtu::Watch,
    metrics: metrics::session::Session,
    watching: Option<Watching>,
}

/// The answer of a command's step: go on, or end with this outcome.
pub type Step = ControlFlow<Outcome>;

/// Picoseconds of a second.
pub const PS_PER_S: u64 = 1_000_000_000_000;
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
        Self::open_shards(arguments, peer, path, 1, adjust)
    }

    /// As [`Session::open_with`], with a shard for each queue, `most` at most and no more than there are CPUs: for
    /// [`run_all`](Self::run_all). A capture and metrics are of one thread, so with them there is one shard.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_shards(
        arguments: &args::Interface,
        peer: Option<IpAddr>,
        path: &Path,
        most: usize,
        adjust: impl FnOnce(&mut EndpointConfig),
    ) -> Outcome<Self> {
        let name = open::name(&arguments.way);
        let _span = info_span!("open", interface = %name).entered();
        let metrics = metrics::session::Session::new(Metrics::open(arguments.publish.metrics)?);
        let keys = trust::keys(&arguments.trust)?;
        let watching = tap::begin(&arguments.captures, &name)?;
        let is_watched = watching.is_some() || arguments.publish.metrics.is_some();
        let most = if is_watched { 1 } else { most.min(available_parallelism().map_or(1, NonZero::get)) };
        let mut others = open::hosts(arguments, peer, path, (keys, most), adjust)?;
        let mut host = others.remove(0);
        note!("spray: {name}: {}", Taken::of(host.endpoint.device()));
        if let Some(Watching { watch, .. }) = &watching {
            host.endpoint = host.endpoint.with_tap(Box::new(Tap::new(watch.clone())));
        }
        let outage = Outage::new(&name, Duration::from_secs(arguments.timeout));
        let mtu = mtu::Watch::new(&name, host.mtu());
        let (freezes, wakers) = (Freezes::default(), Vec::new());
        Ok(Self { host, others, name, next_hop: path.next_hop, freezes, wakers, outage, mtu, metrics, watching })
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

    /// What users know the device by.
    pub fn device_name(&self) -> &str {
        &self.name
    }

    /// How packets get to the network and back.
    pub fn taken(&self) -> Taken {
        Taken::of(self.host.endpoint.device())
    }

    /// Asks for next hops while it runs; `None` where the user gave one, or the device finds them.
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
    pub fn run(&mut self, stop: &Stop, mut step: impl FnMut(&mut Endpoint<Nic>, Time) -> Step) -> Outcome {
        let Self { host, freezes, wakers, outage, mtu, metrics, .. } = self;
        let mut end = Ok(());
        metrics.start()?;
        let ran = host.run(Idle::Sleep(NAP), wakers, |endpoint, at| {
            let now = now();
            endpoint.drain_log().for_each(|entry| freezes.take(&entry.event));
            mtu.check();
            metrics.update(endpoint, freezes, strays, now);
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
        end.map_err(|failure| mtu.explain(failure))
    }

    /// Frames that came by a queue without a socket, and were lost; 0 when the kernel does not tell.
    pub fn strays(&self) -> u64 {
        strays(&self.host.endpoint)
    }

    /// Ends all connections once what was sent is delivered, for which they have so long, and the capture.
    pub fn close(&mut self, limit: Duration) {
        self.host.close(limit);
        self.end_capture();
    }

    /// Ends all connections at once, tells their peers, and ends the capture. Tells of strays.
    pub fn end(&mut self) {
        self.host.abort();
        self.others.iter_mut().for_each(Host::abort);
        self.end_capture();
        strays_line(self.strays()).inspect(|line| note!("spray: {line}"));
        let fragmented = matches!(self.host.endpoint.device(), Nic::Udp(device) if device.has_fragmented());
        if fragmented {
            note!(
                "spray: warning: the path takes shorter packets than were sent, which went in fragments: give less --payload"
            );
        }
    }

    fn end_capture(&mut self) {
        self.watching.take().into_iter().for_each(Watching::close);
    }
}

/// Frames of a steered interface that were lost, see [`Session::strays`].
fn strays(endpoint: &Endpoint<Nic>) -> u64 {
    endpoint.device().xdp().map_or(0, XskInterface::strays)
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

/// The line about frames that came by a queue without a socket, if there were any.
pub fn strays_line(strays: u64) -> Option<String> {
    (strays > 0).then(|| {
        format!(
            "{strays} frames arrived on queues without a socket and were lost: leave out --queue, where it is given, or have the NIC put UDP port \
             61440 (or that of --port) on that queue"
        )
    })
}
