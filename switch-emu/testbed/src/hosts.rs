//! The hosts of a run: endpoints, their connections, and what they report.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use bytes::Bytes;
use spray_core::event::Event;
use spray_core::path::Ev;
use spray_nic::device::{Device, DeviceStats, XskDevice};
use spray_nic::endpoint::{ConnectionError, LogEntry};
use spray_nic::turns::Turns;
use spray_nic::{ConnectionId, Endpoint, EndpointConfig, EndpointEvent, Mode, Peer};

use super::host_port::{HostPort, OwnLink};
use super::rig::Rig;
use super::{RunError, TestbedFlow, TestbedSpec};
use spray_fabric::{Ancestors, Fabric, Host, Node, mix};

/// What the hosts of a run are made from.
pub(super) struct Setup<'a> {
    pub spec: &'a TestbedSpec<'a>,
    /// As [`TestbedSpec::fabric`] compiles.
    pub fabric: &'a Fabric,
    /// By number those of the fabric's ports that hosts play.
    pub ports: &'a [Option<HostPort>],
    /// By host its own link, if that changes.
    pub links: &'a [Option<OwnLink>],
}

/// One host of a run.
pub(super) struct Running {
    pub host: usize,
    pub endpoint: Endpoint<XskDevice>,
    pub book: Book,
}

/// What a host has reported.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub accepted: Vec<(ConnectionId, Peer)>,
    pub arrived: Vec<Arrived>,
    /// Messages of this host that were delivered.
    pub delivered: u64,
    pub failed: Vec<(ConnectionId, ConnectionError, u64)>,
    /// Those of `failed` that this host began.
    pub own_failed: u64,
    pub log: Vec<LogEntry>,
    /// Messages that wait for others of this host to be delivered, and their connections.
    waiting: VecDeque<(ConnectionId, Bytes)>,
    /// When those began that waited, by their connections.
    began: HashMap<ConnectionId, u64>,
    /// When messages stop to begin so.
    waiting_until_ps: Option<u64>,
    /// Messages that waited for longer.
    pub left_out: u64,
    /// The paths that connections are to be told, and when; the next one last.
    pub news: Vec<(u64, ConnectionId, Vec<Ev>)>,
    /// Keep no payload.
    pub discard: bool,
}

/// A message that arrived.
#[derive(Debug)]
pub(super) struct Arrived {
    pub connection: ConnectionId,
    pub data: Bytes,
    pub started_ps: u64,
    pub completed_ps: u64,
}

/// Entries of an endpoint's log between two polls, which handle a few hundred events at most.
const LOG_ENTRIES: usize = 4096;
/// When the hosts begin to connect: virtual time 0 means that a frame is not emulated.
const CONNECT_PS: u64 = 1_000;

impl Setup<'_> {
    /// One endpoint per host, on the rig's sockets, in the mode that `mode` gives each.
    pub fn hosts(&self, rig: &mut Rig, mode: impl Fn(usize) -> Mode) -> Result<Vec<Running>, RunError> {
        let max_hold_ps = self.max_hold_ps();
        let turns = Turns::new(rig.devices.len(), self.least_latency_ps());
        let mut hosts = Vec::with_capacity(rig.devices.len());
        for host in 0..rig.devices.len() {
            let Some(device) = rig.devices[host].take() else {
                return Err(RunError::Unsupported("an earlier run failed on this testbed".into()));
            };
            let own = &self.fabric.hosts[host];
            let flows = self.spec.flows.iter().filter(|flow| flow.src == host || flow.dst == host);
            let peer =
                flows.clone().next().map_or((host + 1) % self.fabric.hosts.len(), |flow| flow.src + flow.dst - host);
            let flow = (self.spec.flow_config)(host, peer);
            let config = EndpointConfig {
                max_connections: flows.count() as u32 + SPARE_CONNECTIONS,
                seed: mix(self.spec.fabric.seed ^ mix(host as u64)),
                max_hold_ps,
                event_log: LOG_ENTRIES,
                ..EndpointConfig::new(self.address(own), own.mac, mode(host), flow)
            };
            let mut endpoint = Endpoint::new(device, config).map_err(RunError::host(&own.name))?;
            if let Some(port) = self.port_to(host) {
                endpoint = endpoint.with_port(Box::new(port));
            }
            if let Some(Some(link)) = self.links.get(host) {
                endpoint = endpoint.with_link(Box::new(link.clone()));
            }
            if matches!(mode(host), Mode::Emulated { .. }) {
                endpoint = endpoint.with_turn(turns.of(host));
            }
            hosts.push(Running { host, endpoint, book: Book::default() });
        }
        Ok(hosts)
    }

    /// The port that leads to a host, if it plays it.
    fn port_to(&self, host: usize) -> Option<HostPort> {
        let ports = self.fabric.ports.iter().zip(self.ports);
        ports.into_iter().find(|(port, _)| port.to == Node::Host(host)).and_then(|(_, played)| played.clone())
    }

    /// A host of the emulated fabric.
    pub fn emulated(&self, host: usize) -> Mode {
        let network = self.spec.fabric.network;
        let link = &network.links[network.uplink(host)];
        Mode::Emulated { link_bps: link.rate_bps, link_latency_ps: link.latency_ps }
    }

    /// Begins a connection for every flow, with its message due `lead_in_ps` after its start in scenario time. Returns
    /// each flow's connection.
    pub fn connect(
        &self,
        mut hosts: Vec<Running>,
        lead_in_ps: u64,
    ) -> Result<(Vec<Running>, Vec<ConnectionId>), RunError> {
        let mut connections = Vec::with_capacity(self.spec.flows.len());
        let (network, events) = (self.spec.fabric.network, self.spec.fabric.events);
        let mut ancestors = None;
        for (flow, payload) in self.spec.flows.iter().zip(self.spec.payloads) {
            let mut config = (self.spec.flow_config)(flow.src, flow.dst);
            config.path.seed = Some(flow.path_seed);
            let host = &self.fabric.hosts[flow.src].name;
            let endpoint = &mut hosts[flow.src].endpoint;
            let connection =
                endpoint.connect(CONNECT_PS, self.peer(flow.dst), Some(config)).map_err(RunError::host(host))?;
            if flow.waits {
                hosts[flow.src].book.waiting.push_back((connection, payload.clone()));
            } else {
                endpoint
                    .send_at(connection, payload.clone(), lead_in_ps + flow.start_ps)
                    .map_err(|source| RunError::Send { host: host.clone(), source })?;
            }
            if config.path.balancer.wants_reachability() {
                let known = ancestors.get_or_insert_with(|| Ancestors::new(network, events, self.spec.fabric.seed));
                let news = self.news(known, flow, config.path.evs, lead_in_ps);
                hosts[flow.src].book.news.extend(news.map(|(at_ps, paths)| (at_ps, connection, paths)));
            }
            connections.push(connection);
        }
        for Running { book, .. } in &mut hosts {
            book.news.sort_by_key(|(at_ps, ..)| Reverse(*at_ps));
            book.waiting_until_ps = self.spec.starts_until_ps.map(|until_ps| until_ps.saturating_add(lead_in_ps));
        }
        Ok((hosts, connections))
    }

    /// Which paths a flow has, from which time on.
    //= docs/specs/host-dr.md#HDR-3 paths that can be reached
    fn news(
        &self,
        known: &Ancestors<'_>,
        flow: &TestbedFlow,
        evs: u32,
        lead_in_ps: u64,
    ) -> impl Iterator<Item = (u64, Vec<Ev>)> {
        let [from, to] = [flow.src, flow.dst].map(|host| self.address(&self.fabric.hosts[host]));
        let addresses = spray_fabric::addresses(from, to);
        let news = move |from_ps: u64| {
            let at_ps = if from_ps == 0 { 0 } else { from_ps.saturating_add(lead_in_ps) };
            (at_ps, known.paths(from_ps, flow.src, flow.dst, addresses, evs))
        };
        known.epoch_starts().iter().copied().map(news)
    }

    /// How many threads poll the hosts. One by default: hosts send in turns, and threads would wait for each other.
    pub fn threads(&self) -> usize {
        self.spec.threads.unwrap_or(1).clamp(1, self.fabric.hosts.len())
    }

    /// How far the hosts' clock may run ahead of the slowest host: no further than a frame needs to reach the next host.
    pub fn step_ps(&self) -> u64 {
        self.least_latency_ps().max(MIN_STEP_PS)
    }

    /// The least latency of a host's link.
    fn least_latency_ps(&self) -> u64 {
        let network = self.spec.fabric.network;
        let latency = |host| network.links[network.uplink(host)].latency_ps;
        (0..network.hosts.len()).map(latency).min().unwrap_or(0)
    }

    /// The peer's address and MAC.
    pub fn peer(&self, host: usize) -> Peer {
        let host = &self.fabric.hosts[host];
        Peer { address: self.address(host), mac: host.mac }
    }

    fn address(&self, host: &Host) -> IpAddr {
        if self.spec.v6 { host.v6.into() } else { host.v4.into() }
    }

    /// Longer than any frame can be under way: full queues at every hop of the slowest links, and half as much again.
    fn max_hold_ps(&self) -> u64 {
        let drain = |port: &spray_fabric::Port| {
            let bytes = port.queue.limit_bytes.saturating_add(port.queue.control_limit_bytes);
            let slowest = port.changes.iter().map(|change| change.state.rate_ppm).min().unwrap_or(1_000_000).max(1);
            spray_core::link::serialisation_floor_ps(u64::from(bytes), port.rate_bps).saturating_mul(1_000_000)
                / u64::from(slowest)
        };
        let drain_ps = self.fabric.ports.iter().map(drain).max().unwrap_or(0);
        let way_ps = drain_ps.saturating_mul(MAX_HOPS).saturating_add(self.spec.base_rtt_ps);
        way_ps.saturating_add(way_ps / 2).max(100_000_000_000)
    }
}

/// Connections that a host's table has room for beyond its flows.
const SPARE_CONNECTIONS: u32 = 8;
/// Step where links have no latency: a few frames at 100 Gb/s.
const MIN_STEP_PS: u64 = 500_000;
/// Most hops of a path.
const MAX_HOPS: u64 = 8;

impl Book {
    /// Takes what `endpoint` has to report.
    pub fn take(&mut self, endpoint: &mut Endpoint<XskDevice>) {
        while let Some(event) = endpoint.poll_event() {
            match event {
                EndpointEvent::Accepted { connection, peer, .. } => self.accepted.push((connection, peer)),
                EndpointEvent::Received { connection, data, started_ps, completed_ps, .. } => {
                    let data = if self.discard { Bytes::new() } else { data };
                    self.arrived.push(Arrived { connection, data, started_ps, completed_ps });
                }
                EndpointEvent::Delivered { at_ps, .. } => {
                    self.delivered += 1;
                    self.begin_next(endpoint, at_ps);
                }
                EndpointEvent::Failed { connection, error, at_ps } => {
                    let accepted = self.accepted.iter().any(|(accepted, _)| *accepted == connection);
                    self.own_failed += u64::from(!accepted);
                    self.failed.push((connection, error, at_ps));
                }
                _ => {}
            }
        }
        let worth_keeping = |entry: &LogEntry| !matches!(entry.event, Event::Retransmit { .. });
        self.log.extend(endpoint.drain_log().filter(worth_keeping));
    }

    /// Begins the next message that waits, if there is time.
    //= docs/specs/closed-loop.md#CL-1 the next message when
    fn begin_next(&mut self, endpoint: &mut Endpoint<XskDevice>, at_ps: u64) {
        if self.waiting_until_ps.is_some_and(|until_ps| at_ps >= until_ps) {
            self.left_out += self.waiting.drain(..).count() as u64;
        }
        let Some((connection, payload)) = self.waiting.pop_front() else { return };
        // A connection that has failed says so by itself.
        if endpoint.send_at(connection, payload, at_ps).is_ok() {
            self.began.insert(connection, at_ps);
        }
    }

    /// When the message of a connection began, if it waited.
    pub fn began(&self, connection: ConnectionId) -> Option<u64> {
        self.began.get(&connection).copied()
    }

    /// Tells `endpoint` what is new by `now_ps`.
    pub fn tell(&mut self, endpoint: &mut Endpoint<XskDevice>, now_ps: u64) {
        while let Some((_, connection, paths)) = self.news.pop_if(|(at_ps, ..)| *at_ps <= now_ps) {
            endpoint.on_reachable(connection, &paths);
        }
    }

    /// Payload bytes placed so far on the connections that others made to this host.
    pub fn placed_bytes(&self, endpoint: &Endpoint<XskDevice>) -> u64 {
        let stats = |(connection, _): &(ConnectionId, Peer)| endpoint.connection_stats(*connection);
        self.accepted.iter().filter_map(stats).map(|stats| stats.receiver.bytes).sum()
    }
}

/// What each host's socket has counted so far.
pub(super) fn device_stats(hosts: &[Running]) -> Vec<DeviceStats> {
    hosts.iter().map(|running| running.endpoint.device().stats()).collect()
}
