use std::io;
use std::net::IpAddr;
use std::num::NonZero;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::thread::{Builder, available_parallelism};
use std::time::{Duration, Instant};

use spray_nic::device::{AnyDevice, Device, DeviceHealth, DeviceStats};
use spray_nic::net::PermanentNeighbours;
use spray_nic::{Endpoint, EndpointConfig, Host, Peer, Time};
use tracing::info_span;

use super::device_info::DeviceInfo;
use super::freezes::Freezes;
use super::path::PathOptions;
use super::tap::Tap;
use super::worker::{Step, Wake, Worker, strays};
use super::{mtu, open, refused, tap, trust};
use crate::args;
use crate::captures::Watching;
use crate::confine::{Reach, confine};
use crate::failure::{Failure, Outcome, no_thread};
use crate::metrics::Metrics;
use crate::note;
use crate::progress::now;
use crate::stop::Stop;

/// A host on a real network. Dropping it closes the sockets and detaches the XDP program.
pub struct Session {
    workers: Vec<Worker>,
    pub name: String,
    outage: Outage,
    mtu: mtu::Watch,
    permanent: (PermanentNeighbours, String),
    refused: refused::Watch,
    metrics: Metrics,
    watching: Option<Watching>,
}

impl Session {
    /// Takes over the interface, with up to `most` shards: no more than queues or CPUs.
    pub fn open(
        arguments: &args::Interface,
        peer: Option<IpAddr>,
        path: &PathOptions,
        most: usize,
        adjust: impl FnOnce(&mut EndpointConfig),
    ) -> Outcome<Self> {
        let name = open::name(&arguments.way);
        let _span = info_span!("open", interface = %name).entered();
        let metrics = Metrics::open(arguments.publish.metrics)?;
        let keys = trust::keys(&arguments.trust)?;
        let watching = tap::begin(&arguments.captures, &name)?;
        let most = most.min(available_parallelism().map_or(1, NonZero::get));
        let hosts = open::Request { arguments, peer, path, keys }.open(most, adjust)?;
        note!("spray: {name}: {}", DeviceInfo::of(hosts[0].endpoint.device()));
        let mtu = mtu::Watch::new(&name, hosts[0].mtu());
        let refused = refused::Watch::new(peer, &hosts[0].endpoint);
        let permanent = permanent(peer, &hosts[0], &name);
        let tap = watching.as_ref().map(|watching| Tap::new(watching.watch.clone()));
        let workers = hosts.into_iter().map(|host| Worker::new(host, &metrics, tap.clone()));
        let workers = workers.collect::<io::Result<_>>().map_err(Failure::failed)?;
        let outage = Outage::new(&name, Duration::from_secs(arguments.timeout));
        Ok(Self { workers, name, outage, mtu, permanent, refused, metrics, watching })
    }

    pub fn peer(&self, address: IpAddr) -> Outcome<Peer> {
        let name = &self.name;
        self.first().peer(address).map_err(|error| {
            Failure::refused(format!(
                "{error} (`ip route add {address} dev {name}`, `ip neigh replace {address} lladdr MAC dev {name}`)"
            ))
        })
    }

    pub fn device_info(&self) -> DeviceInfo {
        DeviceInfo::of(self.first().endpoint.device())
    }

    pub fn outlast_outages(&mut self) {
        self.outage.limit = None;
    }

    /// Gives up what an open session without threads does not need.
    pub fn confine(&self, reach: &Reach<'_>) -> Outcome {
        // Caches the number of CPUs, which is read from a file.
        self.strays();
        confine(reach)
    }

    pub fn shards(&self) -> usize {
        self.workers.len()
    }

    pub fn wake(&mut self, shard: usize, waker: RawFd) {
        self.workers[shard].wakers.push(waker);
    }

    pub fn waker(&self, shard: usize) -> Wake {
        self.workers[shard].wake.clone()
    }

    /// Calls `step` after each poll, until a step or the user ends the command.
    pub fn run(&mut self, stop: &Stop, step: impl FnMut(&mut Endpoint<AnyDevice>, Time) -> Step + Send) -> Outcome {
        self.run_all(stop, vec![step])
    }

    /// With a step for each shard, on its thread; the first is the calling one.
    pub fn run_all<S>(&mut self, stop: &Stop, steps: Vec<S>) -> Outcome
    where
        S: FnMut(&mut Endpoint<AnyDevice>, Time) -> Step + Send,
    {
        self.metrics.start()?;
        let over = OnceLock::new();
        let Self { workers, outage, mtu, refused, .. } = self;
        let mut workers = workers.iter_mut().zip(steps);
        let Some((first, mut step)) = workers.next() else { return Ok(()) };
        std::thread::scope(|scope| {
            for (worker, step) in workers {
                let over = &over;
                if let Err(error) = Builder::new().spawn_scoped(scope, move || worker.run(over, step)) {
                    let _ = over.set(Err(Failure::failed(no_thread(&error))));
                }
            }
            first.run(&over, |endpoint, at| {
                mtu.check();
                if stop.is_set() {
                    return Err(Failure::stopped().into());
                }
                outage.check(endpoint, now())?;
                refused.check(endpoint, now());
                step(endpoint, at)
            });
        });
        over.into_inner().unwrap_or(Ok(())).map_err(|failure| {
            explain_permanent(refused.explain(mtu.explain(failure)), &self.permanent.0, &self.permanent.1)
        })
    }

    /// Frames lost on queues without a socket; 0 if unknown.
    pub fn strays(&self) -> u64 {
        strays(&self.first().endpoint)
    }

    pub fn freezes(&self) -> Freezes {
        self.workers.iter().map(|worker| worker.freezes).sum()
    }

    /// Waits for deliveries up to `limit`, closes the connections, and ends the capture.
    pub fn close(&mut self, limit: Duration) {
        for worker in &mut self.workers {
            worker.host.close(limit);
        }
        self.end_capture();
    }

    pub fn end(&mut self) {
        self.workers.iter_mut().for_each(|worker| worker.host.abort());
        self.end_capture();
        strays_line(self.strays()).inspect(|line| note!("spray: {line}"));
        self.astray_line().inspect(|line| note!("spray: {line}"));
        if matches!(self.first().endpoint.device(), AnyDevice::Udp(device) if device.has_fragmented()) {
            note!("spray: warning: packets exceeded the path MTU and were sent in fragments: give less --payload");
        }
    }

    /// Reports frames that NIC rules did not steer, beyond those before the rules.
    fn astray_line(&self) -> Option<String> {
        let rules = self.first().endpoint.device().xdp().map_or(0, |interface| interface.taken_over().rules);
        let stats: DeviceStats = self.workers.iter().map(|worker| worker.host.endpoint.device().stats()).sum();
        let DeviceStats { rx, handed_over, .. } = stats;
        (rules > 0 && handed_over > rx / 100).then(|| {
            format!("{handed_over} of {rx} frames arrived on another thread's queue, despite {rules} NIC rules")
        })
    }

    pub fn first(&self) -> &Host<AnyDevice> {
        &self.workers[0].host
    }

    fn end_capture(&mut self) {
        self.watching.take().into_iter().for_each(Watching::close);
    }
}

pub(crate) struct Outage {
    interface: String,
    limit: Option<Duration>,
    since: Option<Instant>,
}

impl Outage {
    pub(crate) fn new(interface: &str, limit: Duration) -> Self {
        Self { interface: interface.into(), limit: Some(limit), since: None }
    }

    pub(crate) fn check<D: Device>(&mut self, endpoint: &Endpoint<D>, now: Instant) -> Outcome {
        let name = &self.interface;
        if endpoint.is_device_gone() {
            return Err(Failure::failed(format!(
                "interface {name} was removed, or spray's XDP program was detached from it (`ip link show {name}`); \
                 start again once it is there and free"
            )));
        }
        if !endpoint.is_device_failing() {
            self.since = None;
            return Ok(());
        }
        let since = *self.since.get_or_insert(now);
        let Some(limit) = self.limit.filter(|limit| now >= since + *limit) else { return Ok(()) };
        let (seconds, hint) = (limit.as_secs(), format!("`ip link set {name} up`"));
        Err(Failure::failed(format!("interface {name} has been down for {seconds} s: {hint}")))
    }
}

/// For UDP sockets, the peer's is looked up before privileges are given up.
fn permanent(peer: Option<IpAddr>, host: &Host<AnyDevice>, name: &str) -> (PermanentNeighbours, String) {
    let followed = || (host.permanent_neighbours().unwrap_or_default(), name.into());
    match (peer, host.endpoint.device()) {
        (Some(peer), AnyDevice::Udp(device)) => {
            PermanentNeighbours::for_peer(peer, device.address()).unwrap_or_else(|_| followed())
        }
        _ => followed(),
    }
}

fn explain_permanent(failure: Failure, permanent: &PermanentNeighbours, interface: &str) -> Failure {
    let entries = permanent.all().into_iter().filter(|_| failure.is_failed()).collect::<Vec<_>>();
    entries.into_iter().fold(failure, |failure, (neighbour, mac)| {
        let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
        let delete = format!("`ip neigh del {neighbour} dev {interface}`");
        failure.and(format!("frames went to {mac}, by a permanent neighbour entry: if that is wrong, {delete}"))
    })
}

pub fn strays_line(strays: u64) -> Option<String> {
    const REMEDY: &str = "leave out --queue, or have the NIC steer the 64 UDP ports from --port (61440) on to it";
    (strays > 0).then(|| format!("{strays} frames arrived on queues without a socket and were lost: {REMEDY}"))
}
