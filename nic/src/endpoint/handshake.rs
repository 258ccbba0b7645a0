//! Connect, Accept, Close and Reset.

use spray_core::flow::FlowConfig;
use spray_core::host::{ReceiveHalf, SendHalf};
use spray_wire::{Body, Close, CloseReason, Common, EvPort, Frame, Probe, RESET_UNKNOWN_CONNECTION, Reset, Terms};

use super::{
    ConnectError, ConnectionError, ConnectionId, EndpointEvent, Peer,
    buffers::ReceiveBuffers,
    connection::{Connection, Flow, Retry, Stage},
    machine::Machine,
    service::KEEP_ALIVE,
};

impl Machine {
    /// Takes a slot for a connection to `peer`. Its Connect goes at `now_ps`.
    pub(crate) fn connect(
        &mut self,
        now_ps: u64,
        peer: Peer,
        config: FlowConfig,
    ) -> Result<ConnectionId, ConnectError> {
        if peer.address.is_ipv4() != self.config.address.is_ipv4() {
            return Err(ConnectError::Family);
        }
        self.make_room();
        let (cookie, config) = (self.cookie(), config.sanitised());
        let make = |id| Connection::new(id, peer, cookie, Stage::Connecting, config, now_ps);
        let index = self.table.insert(make).ok_or(ConnectError::TableFull)?;
        self.outside.deadlines.set(index, now_ps);
        Ok(self.table.slot(index).ok_or(ConnectError::TableFull)?.id)
    }

    /// Answers a connection request. Nothing but a slot is spent on it until the peer has proved its address.
    //= docs/specs/endpoint.md#END-2 half-open connections
    pub(crate) fn on_connect(&mut self, now_ps: u64, frame: &Frame<'_>, connect: Terms) {
        let peer = Peer { address: frame.envelope.src, mac: frame.envelope.src_mac };
        if !self.config.flow.sanitised().accepts(&connect) {
            self.stats.malformed += 1;
            return;
        }
        if let Some(index) = self.table.find_peer(&(peer.address, connect.connection, connect.cookie)) {
            self.answer_again(index);
            return;
        }
        if self.config.accept {
            self.make_room();
        }
        if !self.config.accept || self.table.is_full() {
            self.refuse(now_ps, peer, connect);
            return;
        }
        self.half_open(now_ps, peer, connect);
    }

    /// Takes the peer's limits. The answer proves our address to the peer.
    pub(crate) fn on_accept(&mut self, now_ps: u64, index: u32, accept: Terms) {
        let port = self.any_port();
        let Some(connection) = self.table.slot(index) else { return };
        if connection.stage == Stage::Connecting {
            if !connection.config.accepts(&accept) {
                self.stats.malformed += 1;
                return;
            }
            connection.remote = accept;
            let (id, key) = (connection.id, connection.peer_key());
            self.table.name(key, index);
            self.open(now_ps, index);
            self.outside.events.push_back(EndpointEvent::Connected { connection: id, at_ps: now_ps });
        } else if connection.remote.cookie != accept.cookie {
            self.stats.unexpected += 1;
            return;
        }
        let Some(connection) = self.table.slot(index) else { return };
        //= docs/specs/endpoint.md#END-3 open by the cookie
        let probe = Probe { token: KEEP_ALIVE, timestamp_ps: now_ps };
        self.outside.outlet.push_to(connection, port, Body::Probe(probe));
        self.service(now_ps, index);
    }

    /// Opens a half-open connection: a frame with our cookie came back, so the peer's address is real.
    //= docs/specs/endpoint.md#END-3 open by the cookie
    pub(crate) fn on_proof(&mut self, now_ps: u64, index: u32) {
        self.open(now_ps, index);
        if let Some(connection) = self.table.slot(index) {
            let (connection, peer) = (connection.id, connection.peer);
            self.outside.events.push_back(EndpointEvent::Accepted { connection, peer, at_ps: now_ps });
        }
        self.service(now_ps, index);
    }

    /// Takes a Close: the peer closes, or answers our Close.
    //= docs/specs/endpoint.md#END-10 closing
    pub(crate) fn on_close(&mut self, now_ps: u64, index: u32, close: Close, port: EvPort) {
        let Some(connection) = self.table.slot(index) else { return };
        if connection.stage == Stage::Connecting {
            let refused = close.reason == CloseReason::Refused;
            let error = if refused { ConnectionError::Refused } else { ConnectionError::Aborted };
            self.fail(now_ps, index, error);
            return;
        }
        if connection.stage == Stage::HalfOpen {
            self.on_proof(now_ps, index);
        }
        let Some(connection) = self.table.slot(index) else { return };
        if !close.acknowledgement {
            let answer = connection.close_frame(close.reason, true);
            self.outside.outlet.push_to(connection, port, answer);
        } else if connection.stage != Stage::Closing {
            self.stats.unexpected += 1;
            return;
        }
        match close.reason {
            _ if connection.stage == Stage::Closing => self.finish(now_ps, index),
            CloseReason::Done if connection.is_delivered() => self.finish(now_ps, index),
            CloseReason::Done => self.fail(now_ps, index, ConnectionError::PeerClosed),
            _ => self.fail(now_ps, index, ConnectionError::Aborted),
        }
    }

    /// Takes a Reset: the peer does not know the connection. Only who holds the peer's cookie can say so.
    //= docs/specs/endpoint.md#END-7 resets
    pub(crate) fn on_reset(&mut self, now_ps: u64, frame: &Frame<'_>) {
        let key = (frame.envelope.src, frame.common.connection, frame.common.cookie);
        let Some(index) = self.table.find_peer(&key) else {
            self.stats.unknown_connection += 1;
            return;
        };
        match self.table.slot(index).map(|connection| connection.stage) {
            Some(Stage::Closing) => self.finish(now_ps, index),
            Some(Stage::Open) => self.fail(now_ps, index, ConnectionError::Reset),
            // Our Accept answered a Connect that the network delivered late.
            Some(Stage::HalfOpen) => drop(self.remove(index)),
            Some(Stage::Connecting) | None => self.stats.unexpected += 1,
        }
    }

    /// Answers a frame of an unknown connection with a Reset under the frame's own cookie, within the rate limit.
    //= docs/specs/endpoint.md#END-8 answers to strangers
    pub(crate) fn send_reset(&mut self, now_ps: u64, frame: &Frame<'_>) {
        if matches!(frame.body, Body::Close(Close { acknowledgement: true, .. })) {
            return;
        }
        if !self.limit.allow(now_ps) {
            self.stats.reset_limited += 1;
            return;
        }
        let peer = Peer { address: frame.envelope.src, mac: frame.envelope.src_mac };
        let common = Common { virtual_time_ps: 0, ..frame.common };
        let body = Body::Reset(Reset { reason: RESET_UNKNOWN_CONNECTION });
        self.outside.outlet.push(&peer, common, frame.envelope.src_port, body);
    }

    /// Begins the close handshake. Everything of ours is delivered by now.
    //= docs/specs/endpoint.md#END-10 closing
    pub(crate) fn start_close(&mut self, now_ps: u64, index: u32) {
        if let Some(connection) = self.table.slot(index) {
            connection.stage = Stage::Closing;
            connection.retry = Retry::start(now_ps);
            self.retransmit_handshake(now_ps, index);
            self.reschedule(now_ps, index);
        }
    }

    /// Repeats the frame whose answer the handshake waits for, or gives up.
    pub(crate) fn retransmit_handshake(&mut self, now_ps: u64, index: u32) {
        let (port, config) = (self.any_port(), self.config.handshake);
        let Some(connection) = self.table.slot(index) else { return };
        let goes_on = connection.retry.again(now_ps, &config);
        let (stage, id) = (connection.stage, connection.id);
        let body = match stage {
            Stage::Connecting => connection.connect_frame(),
            Stage::HalfOpen => connection.accept_frame(),
            Stage::Closing => connection.close_frame(CloseReason::Done, false),
            Stage::Open => {
                connection.retry = Retry::OFF;
                return;
            }
        };
        if goes_on {
            self.outside.outlet.push_to(connection, port, body);
            return;
        }
        match stage {
            Stage::Connecting => self.fail(now_ps, index, ConnectionError::ConnectTimeout),
            // All our data was acknowledged: a peer that is gone now is no failure.
            Stage::Closing => self.finish(now_ps, index),
            Stage::HalfOpen | Stage::Open => {
                self.stats.half_open_expired += 1;
                self.remove(index);
                self.half_open.retain(|&other| other != id);
            }
        }
    }

    /// Makes room in a full table: gives the oldest half-open connection up. A flood of requests cannot keep others
    /// out for longer than a round trip, and never ends an open connection.
    //= docs/specs/endpoint.md#END-5 A full table
    fn make_room(&mut self) {
        while self.table.is_full()
            && let Some(id) = self.half_open.pop_front()
        {
            if let Some(index) = self.table.find(id)
                && self.table.slot(index).is_some_and(|connection| connection.stage == Stage::HalfOpen)
            {
                self.stats.half_open_evicted += 1;
                self.remove(index);
            }
        }
    }

    fn half_open(&mut self, now_ps: u64, peer: Peer, connect: Terms) {
        let (cookie, config) = (self.cookie(), self.config.flow.sanitised());
        let make =
            |id| Connection { remote: connect, ..Connection::new(id, peer, cookie, Stage::HalfOpen, config, now_ps) };
        let Some(index) = self.table.insert(make) else { return };
        self.table.name((peer.address, connect.connection, connect.cookie), index);
        if self.half_open.len() >= 2 * self.config.max_connections as usize {
            let table = &self.table;
            self.half_open.retain(|&id| table.get(id).is_some_and(|connection| connection.stage == Stage::HalfOpen));
        }
        if let Some(connection) = self.table.slot(index) {
            self.half_open.push_back(connection.id);
        }
        self.retransmit_handshake(now_ps, index);
        self.reschedule(now_ps, index);
    }

    /// Answers a repeated Connect as before. The timer of our own repetitions does not change.
    fn answer_again(&mut self, index: u32) {
        let port = self.any_port();
        if let Some(connection) = self.table.slot(index) {
            let accept = connection.accept_frame();
            self.outside.outlet.push_to(connection, port, accept);
        }
    }

    fn refuse(&mut self, now_ps: u64, peer: Peer, connect: Terms) {
        self.stats.refused += 1;
        if !self.limit.allow(now_ps) {
            self.stats.reset_limited += 1;
            return;
        }
        let port = self.any_port();
        let common = Common { connection: connect.connection, cookie: connect.cookie, virtual_time_ps: 0 };
        let close = Close { final_psn: 0, reason: CloseReason::Refused, acknowledgement: false };
        self.outside.outlet.push(&peer, common, port, Body::Close(close));
    }

    /// Makes sender and receiver, within the limits of both sides.
    fn open(&mut self, now_ps: u64, index: u32) {
        let (idle_timeout_ps, key) = (self.config.idle_timeout_ps, self.hash_key);
        let Some(connection) = self.table.slot(index) else { return };
        let remote = connection.remote;
        //= docs/specs/endpoint.md#END-4 payload of both sides
        connection.config.payload_bytes = connection.config.payload_bytes.min(remote.max_payload);
        let config = &connection.config;
        let mut sending = SendHalf::new(config, remote.window_packets, remote.max_data, &mut self.host.rng);
        let receiving = ReceiveHalf::new(config).with_hash_key(key);
        if !connection.reachable.is_empty() {
            sending.sender.on_reachable(now_ps, &connection.reachable);
        }
        connection.flow = Some(Box::new(Flow { sending, receiving, receive_buffers: ReceiveBuffers::default() }));
        connection.stage = Stage::Open;
        connection.retry = Retry::OFF;
        connection.idle_check_ps = now_ps.saturating_add((idle_timeout_ps / 3).max(1));
    }
}
