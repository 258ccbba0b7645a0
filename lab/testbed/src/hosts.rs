//! The hosts of a run: endpoints, their connections, and what they report.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use spray_capture::Observer;
use spray_core::event::Event;
use spray_core::flow::FlowConfig;
use spray_core::path::{Path, PathEvs};
use spray_fabric::{EvRecorder, WATCHED};
use spray_nic::device::XskDevice;
use spray_nic::endpoint::{ConnectionError, LogEntry, SendError};
use spray_nic::{ConnectionId, Endpoint, EndpointConfig, EndpointEvent, Peer, Time};

use super::TestbedSpec;
use super::emulation::{EmulatedDevice, Emulation, TransmitOrder};
use super::flows::Flows;
use super::host_port::{HostPort, LastPort, TimedHostLink};
use super::rig::Rig;
use spray_fabric::{EvPaths, Fabric, FabricHost, Node, TieBreaker, mix};
use spray_switch::RunError;

pub(super) struct Setup<'a> {
    pub spec: &'a TestbedSpec<'a>,
    /// [`TestbedSpec::fabric`], compiled.
    pub fabric: &'a Fabric,
    /// By number; `None` for those that hosts do not emulate.
    pub ports: &'a [Option<HostPort>],
    pub plan: &'a Flows,
    /// By host; `None` for those that do not change.
    pub links: &'a [Option<Arc<TimedHostLink>>],
}

/// The endpoint of a host.
pub type HostEndpoint = Endpoint<EmulatedDevice<XskDevice>>;

pub(super) struct HostRun {
    pub host: usize,
    pub endpoint: HostEndpoint,
    pub book: ConnectionTable,
}

/// Connections and reports of a host.
#[derive(Debug, Default)]
pub(super) struct ConnectionTable {
    /// Initiated connections and their first flows, both ways.
    pub first: HashMap<ConnectionId, usize>,
    pub own: HashMap<usize, ConnectionId>,
    /// Connections that peers will initiate: first flow by address and number.
    expected: HashMap<(IpAddr, ConnectionId), usize>,
    /// Connections that peers initiated, and their first flows.
    pub accepted: HashMap<ConnectionId, usize>,
    /// Observed entropy values by first flow.
    pub watched: Vec<(usize, EvRecorder)>,
    pub failed: Vec<(ConnectionId, ConnectionError, Time)>,
    pub log: Vec<LogEntry>,
    /// (time, connection, reachable paths), in descending order.
    pub path_changes: Vec<(u64, ConnectionId, Vec<PathEvs>)>,
    /// The same for connections yet to be accepted, by first flow.
    future_path_changes: HashMap<usize, Vec<(u64, Vec<PathEvs>)>>,
    /// Whether payload is not verified.
    pub discard: bool,
    /// Whether to keep reports of retransmissions.
    pub complete: bool,
}

/// A poll handles a few hundred events at most.
const LOG_ENTRIES: usize = 4096;
/// Not 0, which marks frames that are not emulated.
const CONNECT: Time = Time::from_ns(1);

impl<'a> Setup<'a> {
    /// Creates one endpoint per host on the rig's sockets, either emulated or in real time.
    pub fn hosts(&self, rig: &mut Rig, emulated: bool) -> Result<Vec<HostRun>, RunError> {
        let max_hold_ps = self.max_hold_ps();
        let ties = TieBreaker::new(self.spec.fabric.seed);
        let turns = TransmitOrder::new(rig.devices.len(), self.least_latency_ps(), ties);
        let mut hosts = Vec::with_capacity(rig.devices.len());
        for host in 0..rig.devices.len() {
            let Some(device) = rig.devices[host].take() else {
                return Err(RunError::Unsupported("an earlier run failed on this testbed".into()));
            };
            let own = &self.fabric.hosts[host];
            let touches = |flow: &usize| self.spec.flows[*flow].src == host || self.spec.flows[*flow].dst == host;
            let first = |flow: &usize| self.plan.first[*flow] == *flow;
            let mut flows = (0..self.spec.flows.len()).filter(first).filter(touches).peekable();
            let flow = (self.spec.flow_config)(flows.peek().copied().unwrap_or(0));
            let network = self.spec.fabric.network;
            let link = &network.links[network.uplink(host)];
            let config = EndpointConfig {
                link_bps: link.rate_bps,
                max_connections: flows.count() as u32 + SPARE_CONNECTIONS,
                max_queued_messages: self.spec.flows.len().max(1),
                seed: Some(mix(self.spec.fabric.seed ^ mix(host as u64))),
                event_log: LOG_ENTRIES,
                ..EndpointConfig::new(self.address(own), own.mac, flow)
            };
            let emulation = emulated.then(|| Emulation {
                link_bps: link.rate_bps,
                link_latency_ps: link.latency_ps,
                link: self.links.get(host).cloned().flatten(),
                port: self.port_to(host).map(|port| Box::new(port) as Box<dyn LastPort>),
                max_hold_ps,
                turn: turns.of(host),
            });
            let device = EmulatedDevice::new(device, emulation);
            let endpoint = Endpoint::new(device, config).map_err(RunError::host(&own.name))?;
            hosts.push(HostRun { host, endpoint, book: ConnectionTable::default() });
        }
        Ok(hosts)
    }

    /// Returns the port that leads to a host, if emulated there.
    pub fn port_to(&self, host: usize) -> Option<HostPort> {
        let ports = self.fabric.ports.iter().zip(self.ports);
        ports.into_iter().find(|(port, _)| port.to == Node::Host(host)).and_then(|(_, emulated)| emulated.clone())
    }

    /// Opens the connections, and submits the messages with known start times.
    pub fn connect(&self, mut hosts: Vec<HostRun>) -> Result<Vec<HostRun>, RunError> {
        let (network, events) = (self.spec.fabric.network, self.spec.fabric.events);
        let (mut ev_paths, mut watched) = (None, 0);
        for (index, flow) in self.spec.flows.iter().enumerate() {
            let name = &self.fabric.hosts[flow.src].name;
            let config = (self.spec.flow_config)(self.plan.first[index]);
            if flow.bytes > config.max_message_bytes {
                let source = SendError::Size { bytes: flow.bytes, max: config.max_message_bytes };
                return Err(RunError::Send { host: name.clone(), source });
            }
            if self.plan.first[index] < index {
                continue;
            }
            // The path seed holds at the sender only.
            let own = FlowConfig { path: Path { seed: flow.path_seed, ..config.path }, ..config };
            let connection = hosts[flow.src].endpoint.connect(CONNECT, self.peer(flow.dst), Some(own));
            let connection = connection.map_err(RunError::host(name))?;
            if let Some(tracer) = self.spec.watch.map(Observer::lock).as_mut().and_then(|watch| watch.tracer()) {
                tracer.map_number(self.peer(flow.src).address, connection.raw(), index);
            }
            hosts[flow.src].book.first.insert(connection, index);
            hosts[flow.src].book.own.insert(index, connection);
            if self.spec.sample_ps > 0 && watched < WATCHED {
                let watch = EvRecorder::new(self.plan.lead_in_ps);
                hosts[flow.src].endpoint.tap_choices(connection, Box::new(watch.clone()));
                hosts[flow.src].book.watched.push((index, watch));
                watched += 1;
            }
            let HostRun { endpoint, book, .. } = &mut hosts[flow.dst];
            let from = self.peer(flow.src).address;
            endpoint.expect(from, connection, config).map_err(RunError::host(&self.fabric.hosts[flow.dst].name))?;
            book.expected.insert((from, connection), index);
            if config.balancer.wants_reachability() {
                let known = ev_paths.get_or_insert_with(|| EvPaths::new(network, events, self.spec.fabric.seed));
                let changes = |from, to| self.path_changes(known, [from, to], config.path.evs.into());
                let from_sender = changes(flow.src, flow.dst).map(|(at_ps, paths)| (at_ps, connection, paths));
                hosts[flow.src].book.path_changes.extend(from_sender);
                if config.balancer.acks_in_turn() {
                    hosts[flow.dst].book.future_path_changes.insert(index, changes(flow.dst, flow.src).collect());
                }
            }
        }
        for HostRun { host, endpoint, book } in &mut hosts {
            book.sort_path_changes();
            book.start(*host, endpoint, self.plan, 0);
        }
        Ok(hosts)
    }

    /// Returns the reachable paths between two hosts, with the times from which they hold.
    //= docs/specs/host-dr.md#HDR-3 reachable paths
    fn path_changes(
        &self,
        known: &EvPaths<'_>,
        [from, to]: [usize; 2],
        evs: u32,
    ) -> impl Iterator<Item = (u64, Vec<PathEvs>)> {
        let [own, other] = [from, to].map(|host| self.address(&self.fabric.hosts[host]));
        let addresses = spray_fabric::addresses(own, other);
        let changes = move |from_ps: u64| {
            let at_ps = if from_ps == 0 { 0 } else { from_ps.saturating_add(self.plan.lead_in_ps) };
            (at_ps, known.paths(from_ps, from, to, addresses, evs))
        };
        known.epoch_starts().iter().copied().map(changes)
    }

    /// Maximum lead of the clock over the slowest host: the latency of the shortest link.
    pub fn step_ps(&self) -> u64 {
        let links = &self.spec.fabric.network.links;
        links.iter().map(|link| link.latency_ps).min().unwrap_or(0).max(MIN_STEP_PS)
    }

    fn least_latency_ps(&self) -> u64 {
        let network = self.spec.fabric.network;
        let latency = |host| network.links[network.uplink(host)].latency_ps;
        (0..network.hosts.len()).map(latency).min().unwrap_or(0)
    }

    pub fn peer(&self, host: usize) -> Peer {
        let host = &self.fabric.hosts[host];
        Peer { address: self.address(host), mac: host.mac }
    }

    fn address(&self, host: &FabricHost) -> IpAddr {
        if self.spec.v6 { host.v6.into() } else { host.v4.into() }
    }

    /// Bound of a frame's time in flight: full queues at every hop at the lowest rates, plus half.
    fn max_hold_ps(&self) -> u64 {
        let drain = |port: &spray_fabric::Port| {
            let bytes = port.queue.limit_bytes.saturating_add(port.queue.control_limit_bytes);
            let slowest = port.changes.iter().map(|change| change.state.rate_ppm).min().unwrap_or(1_000_000);
            spray_core::link::serialisation_floor_ps(u64::from(bytes), port.rate_bps).saturating_mul(1_000_000)
                / u64::from(slowest)
        };
        let drain_ps = self.fabric.ports.iter().map(drain).max().unwrap_or(0);
        let way_ps = drain_ps.saturating_mul(MAX_HOPS).saturating_add(self.spec.base_rtt_ps);
        way_ps.saturating_add(way_ps / 2).max(100_000_000_000)
    }
}

/// Capacity of a host's connection table beyond its flows.
const SPARE_CONNECTIONS: u32 = 8;
/// For links without latency: a few frames at 100 Gb/s.
const MIN_STEP_PS: u64 = 500_000;
const MAX_HOPS: u64 = 8;

impl ConnectionTable {
    /// Handles the events of `endpoint`; returns whether there were any.
    pub fn take(&mut self, endpoint: &mut HostEndpoint, plan: &Flows) -> bool {
        let mut has_events = false;
        while let Some(event) = endpoint.poll_event() {
            has_events = true;
            match event {
                EndpointEvent::Accepted { connection, peer, remote, .. } => {
                    let Some(&first) = self.expected.get(&(peer.address, remote)) else { continue };
                    self.accepted.insert(connection, first);
                    if let Some(changes) = self.future_path_changes.remove(&first) {
                        self.path_changes.extend(changes.into_iter().map(|(at_ps, paths)| (at_ps, connection, paths)));
                        self.sort_path_changes();
                    }
                }
                EndpointEvent::Received { connection, message, data, completed_at, .. } => {
                    let Some(&first) = self.accepted.get(&connection) else {
                        plan.on_unknown_message();
                        continue;
                    };
                    let stats = endpoint.connection_stats(connection).unwrap_or_default().receiver;
                    let looked_at = (!self.discard).then_some(&data);
                    plan.on_received(first, message.0, completed_at.ps(), looked_at, stats);
                }
                EndpointEvent::Delivered { connection, message, at, .. } => {
                    let Some(&first) = self.first.get(&connection) else { continue };
                    let stats = endpoint.connection_stats(connection).unwrap_or_default().sender;
                    plan.on_delivered(first, message.0, at.ps(), stats);
                }
                EndpointEvent::Failed { connection, error, at } => {
                    self.first.get(&connection).into_iter().for_each(|first| plan.on_failed(*first, at.ps()));
                    self.failed.push((connection, error, at));
                }
                _ => {}
            }
        }
        let worth_keeping = |entry: &LogEntry| self.complete || !matches!(entry.event, Event::Retransmit { .. });
        self.log.extend(endpoint.drain_log().filter(worth_keeping));
        has_events
    }

    /// Submits the messages that are due to start, at their times or at once.
    //= docs/specs/triggers.md#TRG-9 at the time that the
    pub fn start(&mut self, host: usize, endpoint: &mut HostEndpoint, plan: &Flows, now_ps: u64) {
        for (at_ps, flow) in plan.take_due(host) {
            let at_ps = at_ps.max(now_ps);
            // A failed connection has already reported it.
            if let Some(connection) = self.own.get(&plan.first[flow])
                && endpoint.send_at(*connection, plan.payloads[flow].clone(), Time::from_ps(at_ps)).is_ok()
            {
                plan.on_started(flow, at_ps);
            }
        }
    }

    fn sort_path_changes(&mut self) {
        self.path_changes.sort_by_key(|(at_ps, ..)| Reverse(*at_ps));
    }

    /// Applies the changes of reachable paths up to `now_ps`; returns whether there were any.
    pub fn update_paths(&mut self, endpoint: &mut HostEndpoint, now_ps: u64) -> bool {
        let waiting = self.path_changes.len();
        while let Some((_, connection, paths)) = self.path_changes.pop_if(|(at_ps, ..)| *at_ps <= now_ps) {
            endpoint.on_reachable(connection, &paths);
        }
        self.path_changes.len() < waiting
    }

    /// Payload bytes placed so far on accepted connections.
    pub fn placed_bytes(&self, endpoint: &HostEndpoint) -> u64 {
        let stats = |connection| endpoint.connection_stats(connection);
        self.accepted.keys().copied().filter_map(stats).map(|stats| stats.receiver.bytes).sum()
    }
}

/// Returns the hosts' sockets to the rig, for the next run.
pub(super) fn return_devices(hosts: Vec<HostRun>, rig: &mut Rig) {
    for running in hosts {
        rig.devices[running.host] = Some(running.endpoint.into_device().into_inner());
    }
}
