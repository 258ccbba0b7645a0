//! Connect, Retry, Accept, Close and Reset.

use std::cmp::Reverse;
use std::net::IpAddr;

use bytes::Bytes;
use spray_core::Time;
use spray_core::flow::FlowConfig;
use spray_core::host::{FramePath, ReceiveHalf, SendHalf};
use spray_wire::{Ack, Body, Close, CloseReason, Common, EvPort, Frame, RESET_UNKNOWN_CONNECTION, Reset, Retry, Terms};

use crate::endpoint::{
    ConnectError, ConnectionError, ConnectionId, EndpointEvent, Peer,
    admission::client_next_hops::PendingClient,
    admission::exchange_queue::Client,
    admission::retransmit::Retransmit,
    admission::token::Proof,
    connection::{Connection, Flow, Stage},
    machine::Machine,
    payload::buffers::ReceiveBuffers,
    seal::generations::Seals,
    seal::noise::{CONNECT_BYTES, Initiator, Parties, Responder},
    service::keep_alive,
};

/// Half-open connections of which the addresses are compared when the table is full.
const COMPARED: usize = 64;

impl Machine {
    /// Creates a connection to `peer`. Its Connect is sent at `now`, first to the peer's port
    /// number `port`.
    pub(crate) fn connect(
        &mut self,
        now: Time,
        peer: Peer,
        port: u8,
        config: FlowConfig,
    ) -> Result<ConnectionId, ConnectError> {
        if peer.address.is_ipv4() != self.config.address.is_ipv4() {
            return Err(ConnectError::Family);
        }
        if self.config.keys.as_ref().is_some_and(|keys| keys.of(peer.address).is_none()) {
            return Err(ConnectError::Key);
        }
        self.make_room();
        let cookie = self.cookie().ok_or(ConnectError::Entropy)?;
        let config = config.clamped();
        let make = |id| Connection { port, ..Connection::new(id, peer, cookie, Stage::Connecting, config, now) };
        let index = self.table.insert(make).ok_or(ConnectError::TableFull)?;
        self.shared.deadlines.set(index, now);
        let connection = self.table.slot(index).ok_or(ConnectError::TableFull)?;
        if let (Some(admission), Some(keys)) = (&self.admission, &self.config.keys)
            && let Some(key) = keys.of(peer.address)
        {
            connection.tag_connect(&admission.peers, key, self.config.address, &[]);
        }
        Ok(connection.id)
    }

    /// Handles a Connect. Stores nothing until the client's address and key are verified, and only
    /// an entry in the table until a frame of the connection arrives.
    pub(crate) fn on_connect(&mut self, now: Time, frame: &Frame<'_>, connect: Terms) {
        let peer = Peer { address: frame.envelope.src, mac: frame.envelope.src_mac };
        if !self.accepting(peer, &connect).accepts(&connect) {
            self.shared.stats.malformed += 1;
            return;
        }
        //= docs/specs/endpoint.md#END-45 no answer to unauthenticated peers
        let message = match &self.admission {
            Some(admission) => admission.tag.open(self.parties(peer), &connect, frame.payload),
            None => Some(frame.payload),
        };
        let Some(message) = message else {
            self.shared.stats.forged += 1;
            return;
        };
        let client = Client { peer, terms: connect, port: frame.common.shard };
        if !self.config.accept {
            return self.refuse(now, peer, client.named(), CloseReason::Refused);
        }
        self.on_client(now, client, message, frame.envelope.src_port);
    }

    /// Handles a Connect with a valid tag. Answers go to the client's next hop if that is resolved.
    //= docs/specs/endpoint.md#END-2 address validation
    //= docs/specs/endpoint.md#END-47 to the next hop that the kernel
    fn on_client(&mut self, now: Time, mut client: Client, message: &[u8], port: EvPort) {
        let hop = self.next_hops.as_ref().map(|hops| hops.get(now, client.peer.address));
        let is_unresolved = hop == Some(None);
        client.peer.mac = hop.flatten().unwrap_or(client.peer.mac);
        let needed = if hop.flatten().is_some() { Proof::NextHop } else { Proof::Address };
        if self.proof(now, &client) < needed {
            return self.send_retry(now, &client, port);
        }
        if let Some(index) = self.table.find_peer(&client.key()) {
            return self.answer(now, index);
        }
        let Some(message) = self.message_of_peer(&client, message) else {
            self.shared.stats.forged += 1;
            return self.refuse(now, client.peer, client.named(), CloseReason::Key);
        };
        match &mut self.next_hops {
            Some(hops) if is_unresolved => hops.push(now, (client, message), &mut self.shared.host.rng),
            _ => self.admit(now, (client, message)),
        }
    }

    /// Returns the message of the key exchange of a listed client; `Some(None)` without keys on
    /// both sides.
    //= docs/specs/endpoint.md#END-48 a client proves which listed key it holds
    fn message_of_peer(&self, client: &Client, payload: &[u8]) -> Option<Option<[u8; CONNECT_BYTES]>> {
        let (Some(admission), Some(keys)) = (&self.admission, &self.config.keys) else {
            return payload.is_empty().then_some(None);
        };
        let (address, ends) = (client.peer.address, self.parties(client.peer));
        let (key, message) = admission.peers.open(&admission.tag, ends, &client.terms, payload)?;
        keys.trusts(address, key).then_some(Some(*message))
    }

    /// Continues with a client that is verified.
    fn admit(&mut self, now: Time, (client, message): PendingClient) {
        match (&mut self.admission, message) {
            (Some(admission), Some(message)) => {
                self.shared.stats.exchanges_limited +=
                    u64::from(admission.waiting.push((client, message), &mut self.shared.host.rng));
                self.exchange_next(now);
            }
            _ => self.half_open(now, client, None),
        }
    }

    /// Sets the Ethernet address of frames to `address`, and continues with the clients that waited
    /// for it.
    //= docs/specs/endpoint.md#END-47 to the next hop that the kernel
    pub(crate) fn on_next_hop(&mut self, now: Time, address: IpAddr, mac: [u8; 6]) {
        let connections = self.table.iter_mut().filter(|connection| connection.peer.address == address);
        connections.for_each(|connection| connection.peer.mac = mac);
        let Some(hops) = &mut self.next_hops else { return };
        hops.resolved(now, address, mac);
        while let Some((mut client, message)) = self.next_hops.as_mut().and_then(|hops| hops.take(address)) {
            client.peer.mac = mac;
            if self.proof(now, &client) == Proof::NextHop {
                self.admit(now, (client, message));
            } else {
                let port = self.any_port();
                self.send_retry(now, &client, port);
            }
        }
    }

    fn proof(&self, now: Time, client: &Client) -> Proof {
        let Client { peer, terms, .. } = client;
        self.tokens.proof(now, *peer, terms.connection, terms.cookie, &terms.token)
    }

    fn send_retry(&mut self, now: Time, client: &Client, port: EvPort) {
        let Client { peer, terms, .. } = client;
        let token = self.tokens.make(now, *peer, terms.connection, terms.cookie);
        self.shared.control_queue.push(peer, client.named(), port, Body::Retry(Retry { token }));
    }

    fn parties(&self, client: Peer) -> Parties {
        Parties { client: client.address, server: self.config.address }
    }

    /// Returns the configuration of the connection that a Connect requests.
    //= docs/specs/endpoint.md#END-38 settings of a connection that is expected
    fn accepting(&self, peer: Peer, connect: &Terms) -> FlowConfig {
        #[cfg(any(test, feature = "lab"))]
        if let Some(expected) = self.expected.get(&(peer.address, connect.connection)) {
            return expected.clamped();
        }
        #[cfg(not(any(test, feature = "lab")))]
        let _ = (peer, connect);
        self.config.flow.clamped()
    }

    /// Exchanges keys with the next client.
    //= docs/specs/endpoint.md#END-33 the key exchange
    //= docs/specs/endpoint.md#END-34 rate limit of key exchanges
    pub(crate) fn exchange_next(&mut self, now: Time) {
        let (Some(admission), Some(keys)) = (&mut self.admission, &self.config.keys) else { return };
        let Some((client, message)) = admission.waiting.next(now, &mut self.shared.host.rng) else { return };
        let responder = Responder::new(keys, self.parties(client.peer), &client.terms, &message);
        if responder.is_none() {
            self.shared.stats.forged += 1;
            return self.refuse(now, client.peer, client.named(), CloseReason::Key);
        }
        self.half_open(now, client, responder);
    }

    /// Handles a Retry: sends the Connect again, with the token and the message of the key
    /// exchange.
    //= docs/specs/endpoint.md#END-2 address validation
    pub(crate) fn on_retry(&mut self, now: Time, index: u32, retry: Retry, from: u8) {
        let (port, config, own) = (self.any_port(), self.config.handshake, self.config.address);
        let keys = self.config.keys.as_ref().zip(self.admission.as_ref());
        let Some(connection) = self.table.slot(index) else { return };
        if connection.stage != Stage::Connecting || connection.token == retry.token {
            self.shared.stats.unexpected += 1;
            return;
        }
        if !connection.retransmit.again(now, &config) {
            return;
        }
        (connection.token, connection.port) = (retry.token, from);
        if let Some((keys, admission)) = keys
            && let Some(key) = keys.of(connection.peer.address)
        {
            let ends = Parties { client: own, server: connection.peer.address };
            let begun = Initiator::new(keys, ends, &connection.terms());
            let Some((initiator, message)) = begun else { return };
            connection.initiator = Some(initiator);
            connection.tag_connect(&admission.peers, key, own, &message);
        }
        let body = connection.connect_frame();
        self.shared.control_queue.push_to(connection, port, body);
        self.reschedule(now, index);
    }

    /// Handles an Accept: sets the peer's limits. The answer verifies our address.
    pub(crate) fn on_accept(&mut self, now: Time, index: u32, accept: Terms, port_of_peer: u8, message: &[u8]) {
        let port = self.any_port();
        let Some(connection) = self.table.slot(index) else { return };
        if connection.stage == Stage::Connecting {
            let mut accept = accept;
            if self.config.keys.is_some() {
                let finished = connection.initiator.as_mut().and_then(|initiator| initiator.finish(message));
                let Some((agreed, terms)) = finished else {
                    self.shared.stats.forged += 1;
                    return;
                };
                accept = terms;
                connection.initiator = None;
                connection.seals = Some(Box::new(Seals::of_client(now, &agreed)));
            }
            if !connection.config.accepts(&accept) {
                self.shared.stats.malformed += 1;
                return;
            }
            (connection.remote, connection.port) = (accept, port_of_peer);
            let (id, key) = (connection.id, connection.peer_key());
            self.table.name(key, index);
            self.open(now, index);
            if let Some(connection) = self.table.slot(index) {
                connection.retransmit = Retransmit::start(now);
            }
            self.retransmit_handshake(now, index);
            self.shared.events.push_back(EndpointEvent::Connected { connection: id, at: now });
        } else if connection.remote.cookie != accept.cookie {
            self.shared.stats.unexpected += 1;
            return;
        } else {
            self.shared.control_queue.push_to(connection, port, keep_alive(now));
        }
        self.service(now, index);
    }

    /// Opens a half-open connection: a frame of the connection has arrived, so that the Connect was
    /// no replay.
    //= docs/specs/endpoint.md#END-3 half-open connections
    pub(crate) fn on_proof(&mut self, now: Time, index: u32) {
        self.open(now, index);
        if let Some(connection) = self.table.slot(index) {
            let (id, peer, remote) = (connection.id, connection.peer, ConnectionId(connection.remote.connection));
            let accepted = EndpointEvent::Accepted { connection: id, peer, remote, at: now };
            self.shared.events.push_back(accepted);
        }
        self.service(now, index);
    }

    /// Handles a Close: the peer closes, or answers our Close.
    //= docs/specs/endpoint.md#END-10 closing
    pub(crate) fn on_close(&mut self, now: Time, index: u32, close: Close, port: EvPort) {
        let Some(connection) = self.table.slot(index) else { return };
        if connection.stage == Stage::Connecting {
            let error = match close.reason {
                CloseReason::Refused => ConnectionError::Refused,
                CloseReason::Key => ConnectionError::Key,
                _ => ConnectionError::Aborted,
            };
            self.fail(now, index, error);
            return;
        }
        if connection.stage == Stage::HalfOpen {
            self.on_proof(now, index);
        }
        if close.reason == CloseReason::Done {
            self.on_last_ack(now, index, close.cumulative, port);
        }
        let Some(connection) = self.table.slot(index) else { return };
        if !close.acknowledgement {
            let answer = connection.close_frame(close.reason, true);
            self.shared.control_queue.push_to(connection, port, answer);
        } else if connection.stage != Stage::Closing {
            self.shared.stats.unexpected += 1;
            return;
        }
        match close.reason {
            _ if connection.stage == Stage::Closing => self.finish(now, index),
            CloseReason::Done if connection.is_delivered() => self.finish(now, index),
            CloseReason::Done => self.fail(now, index, ConnectionError::PeerClosed),
            _ => self.fail(now, index, ConnectionError::Aborted),
        }
    }

    /// Handles the last ACK, which a Close carries.
    fn on_last_ack(&mut self, now: Time, index: u32, cumulative: u64, port: EvPort) {
        let Some(connection) = self.table.slot(index) else { return };
        let ack = Body::Ack(Ack { cumulative, sack_base: cumulative, port, ..Ack::default() });
        let path = FramePath { port, hops: 0, marked: false, pause: false };
        // The Close ends the connection in any case.
        let _ = self.shared.on_control(now, connection, &ack, &path);
    }

    /// Handles a Reset: the peer has no such connection. It must carry the peer's cookie.
    //= docs/specs/endpoint.md#END-7 resets
    pub(crate) fn on_reset(&mut self, now: Time, frame: &Frame<'_>) {
        let key = (frame.envelope.src, frame.common.connection, frame.common.cookie);
        let Some(index) = self.table.find_peer(&key) else {
            self.shared.stats.unknown_connection += 1;
            return;
        };
        let connection = self.table.slot(index);
        if connection.as_ref().is_some_and(|connection| connection.seals.is_some()) {
            self.shared.stats.unsealed += 1;
            return;
        }
        match connection.map(|connection| connection.stage) {
            Some(Stage::Closing) => self.finish(now, index),
            Some(Stage::Open) => self.fail(now, index, ConnectionError::Reset),
            // Our Accept answered a delayed Connect.
            Some(Stage::HalfOpen) => drop(self.remove(index)),
            Some(Stage::Connecting) | None => self.shared.stats.unexpected += 1,
        }
    }

    /// Answers a frame of an unknown connection with a Reset that has the frame's cookie, within
    /// the rate limit.
    //= docs/specs/endpoint.md#END-8 answers to unknown peers
    pub(crate) fn send_reset(&mut self, now: Time, frame: &Frame<'_>) {
        if matches!(frame.body, Body::Close(Close { acknowledgement: true, .. }) | Body::Retry(_)) {
            return;
        }
        if !self.limit.allow(now) {
            self.shared.stats.reset_limited += 1;
            return;
        }
        let peer = Peer { address: frame.envelope.src, mac: frame.envelope.src_mac };
        let body = Body::Reset(Reset { reason: RESET_UNKNOWN_CONNECTION });
        self.shared.control_queue.push(&peer, frame.common, frame.envelope.src_port, body);
    }

    /// Starts to close a connection that has delivered everything.
    //= docs/specs/endpoint.md#END-10 closing
    pub(crate) fn start_close(&mut self, now: Time, index: u32) {
        if let Some(connection) = self.table.slot(index) {
            connection.stage = Stage::Closing;
            connection.retransmit = Retransmit::start(now);
            self.retransmit_handshake(now, index);
            self.reschedule(now, index);
        }
    }

    /// Retransmits the frame that the peer has not answered, or gives up.
    pub(crate) fn retransmit_handshake(&mut self, now: Time, index: u32) {
        let (port, config) = (self.any_port(), self.config.handshake);
        let Some(connection) = self.table.slot(index) else { return };
        let goes_on = connection.retransmit.again(now, &config);
        let (stage, id) = (connection.stage, connection.id);
        let body = match stage {
            Stage::Connecting => {
                //= docs/specs/endpoint.md#END-44 Several endpoints of a host
                if connection.retransmit.is_repeated() && connection.token == [0; 16] {
                    connection.port = 0;
                }
                Some(connection.connect_frame())
            }
            Stage::Closing => Some(connection.close_frame(CloseReason::Done, false)),
            // The client repeats its Connect.
            Stage::HalfOpen => None,
            //= docs/specs/endpoint.md#END-3 half-open connections
            Stage::Open => Some(keep_alive(now)),
        };
        if goes_on && let Some(body) = body {
            self.shared.control_queue.push_to(connection, port, body);
            return;
        }
        match stage {
            Stage::Connecting => self.fail(now, index, ConnectionError::ConnectTimeout),
            // All data was acknowledged: it is no failure if the peer is gone.
            Stage::Closing => self.finish(now, index),
            // The idle timeout applies.
            Stage::Open => connection.retransmit = Retransmit::OFF,
            Stage::HalfOpen => {
                self.shared.stats.half_open_expired += 1;
                self.remove(index);
                self.half_open.retain(|&other| other != id);
            }
        }
    }

    /// Removes a half-open connection from a full table, of the address with most of them.
    //= docs/specs/endpoint.md#END-5 A full table
    fn make_room(&mut self) {
        while self.table.is_full()
            && let Some(at) = self.gives_way()
            && let Some(id) = self.half_open.remove(at)
        {
            if let Some(index) = self.table.find(id) {
                self.shared.stats.half_open_evicted += 1;
                self.remove(index);
            }
        }
    }

    /// Returns the index of the half-open connection to remove: the oldest of the address that has
    /// most of the oldest ones.
    fn gives_way(&mut self) -> Option<usize> {
        let Self { table, half_open, .. } = self;
        let waits = |id: &ConnectionId| table.get(*id).filter(|connection| connection.stage == Stage::HalfOpen);
        while half_open.front().is_some_and(|id| waits(id).is_none()) {
            half_open.pop_front();
        }
        let oldest: Vec<_> = half_open.iter().take(COMPARED).map(|id| Some(waits(id)?.peer.address)).collect();
        let count = |address| oldest.iter().filter(|other| **other == address).count();
        let waiting = oldest.iter().enumerate().filter(|(_, address)| address.is_some());
        // The first of those with the largest count.
        waiting.min_by_key(|(_, address)| Reverse(count(**address))).map(|(at, _)| at)
    }

    /// Creates a half-open connection, with the secrets of the key exchange if there was one.
    fn half_open(&mut self, now: Time, client: Client, responder: Option<Responder>) {
        self.make_room();
        if self.table.is_full() {
            return self.refuse(now, client.peer, client.named(), CloseReason::Refused);
        }
        // The client retries.
        let Some(cookie) = self.cookie() else { return };
        let Client { peer, terms: connect, port } = client;
        let config = self.accepting(peer, &connect);
        let make = |id| {
            let connection = Connection::new(id, peer, cookie, Stage::HalfOpen, config, now);
            Connection { remote: connect, port, ..connection }
        };
        let Some(index) = self.table.insert(make) else { return };
        if let Some(responder) = responder {
            let Some(connection) = self.table.slot(index) else { return };
            let Some((agreed, message)) = responder.answer(&connection.terms()) else {
                self.remove(index);
                return;
            };
            connection.seals = Some(Box::new(Seals::of_server(now, &agreed)));
            connection.exchange = Bytes::copy_from_slice(&message);
        }
        self.table.name((peer.address, connect.connection, connect.cookie), index);
        if self.half_open.len() >= 2 * self.config.max_connections as usize {
            let table = &self.table;
            self.half_open.retain(|&id| table.get(id).is_some_and(|connection| connection.stage == Stage::HalfOpen));
        }
        if let Some(connection) = self.table.slot(index) {
            self.half_open.push_back(connection.id);
        }
        self.answer(now, index);
    }

    /// Answers a Connect with the same Accept each time, and restarts the time for the client's
    /// answer.
    //= docs/specs/endpoint.md#END-3 half-open connections
    fn answer(&mut self, now: Time, index: u32) {
        let (port, patience) = (self.any_port(), self.config.handshake.lasts_ps());
        let Some(connection) = self.table.slot(index) else { return };
        if connection.stage == Stage::HalfOpen {
            connection.retransmit = Retransmit::none_until(now.after(patience));
        }
        let accept = connection.accept_frame();
        self.shared.control_queue.push_to(connection, port, accept);
        self.reschedule(now, index);
    }

    fn refuse(&mut self, now: Time, peer: Peer, named: Common, reason: CloseReason) {
        self.shared.stats.refused += 1;
        if !self.limit.allow(now) {
            self.shared.stats.reset_limited += 1;
            return;
        }
        let port = self.any_port();
        let close = Close { cumulative: 0, reason, acknowledgement: false };
        self.shared.control_queue.push(&peer, named, port, Body::Close(close));
    }

    /// Creates sender and receiver, within the limits of both sides.
    fn open(&mut self, now: Time, index: u32) {
        let (idle_timeout_ps, key) = (self.config.idle_timeout_ps, self.hash_key);
        let Some(connection) = self.table.slot(index) else { return };
        let remote = connection.remote;
        //= docs/specs/endpoint.md#END-4 payload of both sides
        connection.config.payload_bytes = connection.config.payload_bytes.min(remote.max_payload);
        let config = &connection.config;
        let mut sending = SendHalf::new(config, remote.window_packets, remote.max_data, &mut self.shared.host.rng);
        let receiving = ReceiveHalf::new(config).with_hash_key(key);
        #[cfg(any(test, feature = "lab"))]
        let receiving = receiving.with_paths(&connection.reachable);
        #[cfg(any(test, feature = "lab"))]
        if !connection.reachable.is_empty() {
            sending.sender.on_reachable(now, &connection.reachable);
        }
        self.shared.host.restore_history(now, connection.peer.number(), &mut sending);
        connection.flow = Some(Box::new(Flow { sending, receiving, receive_buffers: ReceiveBuffers::default() }));
        self.opened += 1;
        connection.stage = Stage::Open;
        connection.retransmit = Retransmit::OFF;
        connection.check_by(now.after((idle_timeout_ps / 3).max(1)));
    }
}
