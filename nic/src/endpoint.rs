//! Endpoints: many connections over one device.
//!
//! [`Endpoint::poll`] handles arrivals and timers, sends frames, and returns when to call it again.
//! The user submits messages with [`Endpoint::send`] and takes events with
//! [`Endpoint::poll_event`].
//!
//! | file or folder | content |
//! |---|---|
//! | `machine` | the endpoint without its device, built on a [`spray_core::host::Scheduler`]; `input` and `service` are its parts |
//! | `shared` | what the connections share, and what follows from an event at one of them |
//! | `admission` | the handshake; how a client proves its address and its key, and waits for the key exchange |
//! | `connection` | a connection, the bounded table of connections, one deadline for each |
//! | `payload` | where payload is read from and written to |
//! | `seal` | the key exchange, seals, fresh keys |
//! | `transmit` | control frames, the device, and what is read ahead where there are many connections |
#![deny(clippy::indexing_slicing)]

mod admission;
mod config;
mod connection;
mod event;
mod event_loop;
mod input;
#[cfg(any(test, feature = "lab"))]
mod lab;
mod machine;
mod payload;
pub(crate) mod seal;
mod service;
mod shard;
mod shared;
mod stats;
mod tap;
mod transmit;

#[cfg(test)]
pub(crate) mod tests;

use std::net::IpAddr;

use bytes::Bytes;
use spray_core::Time;
use spray_core::event::ChoiceTap;
use spray_core::flow::{FlowConfig, ReceiverStats, SenderStats};
use spray_core::host;
use spray_core::loss::RttHistogram;
use spray_wire::{self as wire, CloseReason, Kind};

#[cfg(feature = "tokio")]
pub(crate) use self::shared::MAX_UNREAD;
pub use self::{
    admission::connect_tag::ConnectTag,
    admission::peer_tags::PeerTags,
    config::{EndpointConfig, HandshakeConfig},
    connection::peer::Peer,
    event::{ConfigError, ConnectError, ConnectionError, ConnectionId, EndpointEvent, LogEntry, MessageId, SendError},
    payload::in_place::{Chunk, Sink, Source},
    shard::Shard,
    stats::{ConnectionStats, EndpointStats, KindCounts},
    tap::Tap,
};
use self::{connection::Stage, machine::Machine, payload::buffers::Content, transmit::tx::DeviceTx};
use crate::device::{Device, Received};
use crate::keys::PublicKey;
use crate::sys;

/// Many connections over one device.
///
/// The project's README has a complete example, which runs as a test; `nic/examples/` has others.
///
/// Its methods by file: here, those of the user; in `endpoint/`: `event_loop` (polling),
/// `transmit/prefetch` (cache), `lab`.
#[derive(Debug)]
pub struct Endpoint<D> {
    machine: Machine,
    link: DeviceTx<D>,
    arrivals: Vec<Received>,
    polled_at: Time,
    /// Calls of the user so far, which the next poll acts on.
    asked: u64,
}

impl<D: Device> Endpoint<D> {
    /// Creates an endpoint that owns `device`.
    ///
    /// # Errors
    /// When the configuration is out of range or its frames do not fit the device.
    pub fn new(device: D, mut config: EndpointConfig) -> Result<Self, ConfigError> {
        config.flow = within(config.flow, &device);
        check(&config, &device)?;
        let coalesce_ps = config.coalesce_ps;
        let mut machine = Machine::new(config).map_err(|error| ConfigError::Entropy(error.to_string()))?;
        machine.shared.control_queue.evs = device.info().evs;
        Ok(Self {
            link: DeviceTx::new(device, coalesce_ps),
            machine,
            arrivals: Vec::with_capacity(RECEIVE_BATCH),
            polled_at: Time::ZERO,
            asked: 0,
        })
    }

    /// Sets an observer of all frames sent and received.
    #[must_use]
    pub fn with_tap(mut self, tap: Box<dyn Tap>) -> Self {
        self.link.tap = Some(tap);
        self
    }

    /// Sets a sink for all payload received from now on, in place of buffers.
    /// [`EndpointEvent::Received`] then has no bytes.
    #[must_use]
    pub fn with_sink(mut self, sink: Box<dyn Sink>) -> Self {
        self.machine.shared.sink = Some(sink);
        self
    }

    /// Opens a connection to `peer` at `now`; [`EndpointEvent::Connected`] or
    /// [`EndpointEvent::Failed`] will follow.
    ///
    /// Messages may be submitted at once, and wait until the connection is open. Without `flow`,
    /// the endpoint's configuration applies.
    ///
    /// # Errors
    /// When the table is full, or the parameters are out of range.
    pub fn connect(&mut self, now: Time, peer: Peer, flow: Option<FlowConfig>) -> Result<ConnectionId, ConnectError> {
        let flow = flow.map_or(self.machine.config.flow, |flow| within(flow, &self.link.device));
        check_flow(&flow, &self.machine.config, &self.link.device)?;
        self.asked += 1;
        // UDP sockets receive at one port.
        let port = if self.link.device.info().resolves_next_hop { 0 } else { self.machine.next_connect_port() };
        self.machine.connect(now, peer, port, flow)
    }

    /// Sends a message, from the time of the last poll. [`EndpointEvent::Delivered`] will follow.
    ///
    /// # Errors
    /// When the connection does not exist or is closing, when too many messages wait, or when this
    /// one is too long.
    pub fn send(&mut self, connection: ConnectionId, data: Bytes) -> Result<MessageId, SendError> {
        self.send_at(connection, data, self.polled_at)
    }

    /// As [`send`](Self::send), from time `at`.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_at(&mut self, connection: ConnectionId, data: Bytes, at: Time) -> Result<MessageId, SendError> {
        self.asked += 1;
        self.machine.schedule(connection, Content::Bytes(data), at)
    }

    /// As [`send`](Self::send), for a message that `source` writes into the frames.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_from(&mut self, connection: ConnectionId, source: Box<dyn Source>) -> Result<MessageId, SendError> {
        self.asked += 1;
        self.machine.schedule(connection, Content::Source(source), self.polled_at)
    }

    /// Changes the Ethernet address of frames to the peer at `address`: its next hop has changed.
    pub fn set_next_hop(&mut self, address: IpAddr, mac: [u8; 6]) {
        self.asked += 1;
        self.machine.on_next_hop(self.machine.clock, address, mac);
    }

    /// Answers clients by way of their next hops, which the caller resolves: [`unresolved`](Self::unresolved) returns their addresses, and
    /// [`set_next_hop`](Self::set_next_hop) takes the results. Without this call, answers go to where a client's frames come from.
    //= docs/specs/endpoint.md#END-47 to the next hop that the kernel
    pub fn resolve_next_hops(&mut self) {
        self.machine.next_hops.get_or_insert_with(admission::client_next_hops::ClientNextHops::new);
    }

    /// Returns the addresses of new clients that are to be resolved. A client that is not resolved
    /// is removed.
    pub fn unresolved(&mut self) -> impl Iterator<Item = IpAddr> {
        self.machine.next_hops.iter_mut().flat_map(admission::client_next_hops::ClientNextHops::unresolved)
    }

    /// Changes the endpoint's own Ethernet address, at the device too.
    ///
    /// # Errors
    /// When the kernel refuses.
    #[cfg(feature = "xdp")]
    pub(crate) fn set_own_mac(&mut self, mac: [u8; 6]) -> std::io::Result<()> {
        self.machine.shared.control_queue.set_mac(mac);
        self.link.device.set_mac(mac)
    }

    /// Returns the number of connections that have opened.
    #[cfg(feature = "xdp")]
    pub(crate) fn opened(&self) -> u64 {
        self.machine.opened
    }

    /// Returns the addresses of the peers of all open connections, once per connection.
    pub fn peers(&self) -> impl Iterator<Item = IpAddr> {
        self.open_connections().map(|(_, peer)| peer)
    }

    /// Closes a connection after everything sent is delivered. [`EndpointEvent::Closed`] will
    /// follow. It accepts no more messages.
    pub fn close(&mut self, connection: ConnectionId) {
        let Some(index) = self.machine.table.find(connection) else { return };
        self.asked += 1;
        if let Some(connection) = self.machine.table.slot(index) {
            connection.close_wanted = true;
        }
        self.machine.nudge(index);
    }

    /// Closes all connections, see [`close`](Self::close).
    pub fn close_all(&mut self) {
        let all: Vec<ConnectionId> = self.machine.table.iter().map(|connection| connection.id).collect();
        all.into_iter().for_each(|connection| self.close(connection));
    }

    /// Ends a connection at once and notifies the peer. [`EndpointEvent::Failed`] will follow on
    /// both sides.
    pub fn abort(&mut self, connection: ConnectionId) {
        if let Some(index) = self.machine.table.find(connection) {
            self.asked += 1;
            self.machine.give_up(self.polled_at, index, ConnectionError::Aborted, CloseReason::Aborted);
        }
    }

    /// Ends all connections at once, see [`abort`](Self::abort).
    pub fn abort_all(&mut self) {
        self.asked += 1;
        self.machine.end_all(self.polled_at, ConnectionError::Aborted, Some(CloseReason::Aborted));
    }

    /// Handles arrivals, does what is due up to `now`, and sends frames.
    ///
    /// Returns the latest time of the next call; call earlier if the device has arrivals. `None`: nothing will happen
    /// without an arrival or the user.
    //= docs/specs/endpoint.md#END-36 no age limit
    pub fn poll(&mut self, now: Time) -> Option<Time> {
        let now = now.min(LAST);
        self.polled_at = self.polled_at.max(now);
        self.send_control(self.machine.clock);
        self.link.send_waiting();
        let next_at = self.turn(now).min(self.link.settle(now));
        if self.link.gone {
            self.machine.end_all(now, ConnectionError::InterfaceGone, None);
        }
        (next_at != Time::NEVER).then_some(next_at)
    }

    /// Returns the next event, oldest first. Returning a received message extends the peer's limit
    /// by its length.
    pub fn poll_event(&mut self) -> Option<EndpointEvent> {
        let event = self.next_event()?;
        if let EndpointEvent::Received { connection, data, .. } = &event {
            self.consumed(*connection, data.len() as u64);
        }
        Some(event)
    }

    /// Removes and returns the entries of the event log; see [`EndpointConfig::event_log`].
    pub fn drain_log(&mut self) -> impl Iterator<Item = LogEntry> {
        let entry = |entry: host::LogEntry| LogEntry {
            at: entry.at,
            connection: ConnectionId(entry.connection),
            event: entry.event,
        };
        self.machine.shared.log.drain().map(entry)
    }

    /// Sets an observer of the entropy values that `connection` chooses from now on.
    pub fn tap_choices(&mut self, connection: ConnectionId, tap: Box<dyn ChoiceTap>) {
        self.machine.shared.log.tap_choices(connection.0, tap);
    }

    /// Returns the endpoint's counters.
    #[must_use]
    pub fn stats(&self) -> EndpointStats {
        EndpointStats {
            sent: self.link.sent,
            control_dropped: self.link.control_dropped,
            transmit_stalls: self.link.stalls,
            device_errors: self.link.errors,
            log_overflow: self.machine.shared.log.overflow(),
            ..self.machine.shared.stats
        }
    }

    /// Returns the counters of a connection, which may have ended.
    #[must_use]
    pub fn connection_stats(&self, connection: ConnectionId) -> Option<ConnectionStats> {
        self.machine.table.stats(connection)
    }

    /// Returns the authenticated public key of a connection's peer; `None` without keys, and after
    /// the connection has ended.
    #[must_use]
    pub fn peer_key(&self, connection: ConnectionId) -> Option<PublicKey> {
        self.machine.table.get(connection)?.seals.as_ref().map(|seals| seals.peer())
    }

    /// Returns the counters of all connections, past ones included.
    #[must_use]
    pub fn totals(&self) -> (SenderStats, ReceiverStats) {
        self.machine.table.totals()
    }

    /// Returns the round-trip times of all connections, past ones included.
    #[must_use]
    pub fn rtts(&self) -> RttHistogram {
        self.machine.table.rtts()
    }

    /// Returns the open connections, with their peers.
    pub fn open_connections(&self) -> impl Iterator<Item = (ConnectionId, IpAddr)> {
        let open = self.machine.table.iter().filter(|connection| connection.flow.is_some());
        open.map(|connection| (connection.id, connection.peer.address))
    }

    /// Returns the number of connections, half-open ones included.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.machine.table.len()
    }

    /// Returns whether there are connections other than half-open ones.
    pub(crate) fn has_connections(&self) -> bool {
        self.machine.table.iter().any(|connection| connection.stage != Stage::HalfOpen)
    }

    /// Returns whether nothing is undelivered, partly received or scheduled.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.machine.table.iter().all(connection::Connection::is_idle)
    }

    /// Returns whether the device cannot send, since its interface is down. Queued frames are sent
    /// once it is up.
    #[must_use]
    pub fn is_device_failing(&self) -> bool {
        self.link.failing
    }

    /// Checks whether the device's interface exists. May cost a system call.
    #[cfg(feature = "xdp")]
    pub(crate) fn check_device(&mut self) {
        self.link.check();
    }

    /// Returns whether the device's interface was removed, or its program detached: all connections
    /// have failed, and later ones will.
    #[must_use]
    pub fn is_device_gone(&self) -> bool {
        self.link.gone
    }

    /// Returns the endpoint's configuration.
    #[must_use]
    pub fn config(&self) -> &EndpointConfig {
        &self.machine.config
    }

    /// Returns the device, for its counters.
    #[must_use]
    pub fn device(&self) -> &D {
        &self.link.device
    }

    /// Returns the device, for its settings. Frames taken from it or added to it are not counted.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.link.device
    }

    /// As [`poll_event`](Self::poll_event), for a caller that calls [`consumed`](Self::consumed)
    /// for each message later.
    pub fn next_event(&mut self) -> Option<EndpointEvent> {
        let Some(mut event) = self.machine.shared.events.pop_front() else {
            if std::mem::take(&mut self.machine.trims_heap) {
                self.machine.shared.events.shrink_to(2 * self.machine.config.max_connections as usize);
                sys::trim_heap();
            }
            return None;
        };
        if let EndpointEvent::Failed { error: error @ ConnectionError::ConnectTimeout, .. } = &mut event
            && self.link.device.lost_program()
        {
            *error = ConnectionError::NoXdpProgram;
        }
        Some(event)
    }

    /// Extends the peer's limit by `bytes`, the length of a message from
    /// [`next_event`](Self::next_event), and by one message.
    pub fn consumed(&mut self, connection: ConnectionId, bytes: u64) {
        self.asked += 1;
        self.machine.on_consumed(connection, bytes);
    }

    /// Returns a number that changes with every frame and every call of the user.
    pub(crate) fn activity(&self) -> u64 {
        self.link.received + self.link.sent.total() + self.asked
    }

    /// Ends the endpoint without notifying peers. Returns the device with all frames released.
    #[must_use]
    pub fn into_device(self) -> D {
        self.link.into_device()
    }
}

/// Limits a configuration to the entropy values of the device.
fn within<D: Device>(mut flow: FlowConfig, device: &D) -> FlowConfig {
    flow.path.evs = flow.path.evs.min(device.info().evs);
    flow
}

fn check<D: Device>(config: &EndpointConfig, device: &D) -> Result<(), ConfigError> {
    if !(1..=65_536).contains(&config.max_connections) {
        return Err(ConfigError::MaxConnections(config.max_connections));
    }
    if let Some(key) = config.keys.as_ref().and_then(|keys| keys.unusable()) {
        return Err(ConfigError::Key(key));
    }
    check_flow(&config.flow, config, device)
}

fn check_flow<D: Device>(flow: &FlowConfig, config: &EndpointConfig, device: &D) -> Result<(), ConfigError> {
    if flow.path.evs == 0 {
        return Err(ConfigError::Evs);
    }
    if !(1..=MAX_PAYLOAD).contains(&flow.payload_bytes) {
        return Err(ConfigError::Payload(flow.payload_bytes));
    }
    let FlowConfig { max_data_bytes, max_message_bytes, .. } = *flow;
    if max_data_bytes < max_message_bytes {
        return Err(ConfigError::Grant { max_data_bytes, max_message_bytes });
    }
    let seal = if config.keys.is_some() { wire::seal_bytes(Kind::Data) } else { 0 };
    let needed = wire::header_bytes(config.address.is_ipv6(), Kind::Data) + seal + flow.payload_bytes as usize;
    let available = device.info().max_frame;
    if needed > available { Err(ConfigError::FrameTooLong { needed, available }) } else { Ok(()) }
}

/// The latest present: a deadline at `Time::NEVER` is never reached.
const LAST: Time = Time::NEVER.before(Time::STEP_PS);
/// Arrivals per receive: more than one poll sends.
const RECEIVE_BATCH: usize = 256;
/// Payload that fits a UDP datagram with all headers.
const MAX_PAYLOAD: u32 = 65_000;
