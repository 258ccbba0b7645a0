//! Deadlines of a connection: those of its halves, the idle timeout, and its end.

use spray_core::Time;
use spray_wire::{Body, Close, CloseReason, Probe};

use super::{
    ConnectionError, EndpointEvent,
    connection::{Connection, Stage},
    machine::Machine,
    shared::Outcome,
};

/// Token of keep-alive probes. Tokens of balancers count up from 1, so that no sender takes the
/// answer for its own.
const KEEP_ALIVE: u64 = u64::MAX;

/// How long a closing connection waits for a peer that acknowledges nothing, in idle timeouts: 300
/// s for 5 s.
const STUCK_TIMEOUTS: u64 = 60;

/// Memory of an ended connection, in bytes, from which on the heap is trimmed after the user has
/// taken all events.
const TRIM_BYTES: u64 = 1 << 20;

impl Machine {
    /// Handles what is due at a connection, and calls of its user.
    pub(crate) fn service(&mut self, now: Time, index: u32) {
        let Some(connection) = self.table.slot(index) else { return };
        if connection.stage != Stage::Open {
            return self.shared.reschedule(now, connection);
        }
        let outcome = self.shared.on_deadlines(now, connection);
        self.on_outcome(now, index, outcome);
    }

    /// Ends a connection that has delivered everything or failed.
    pub(crate) fn on_outcome(&mut self, now: Time, index: u32, outcome: Outcome) {
        match outcome {
            Outcome::Open => {}
            Outcome::Delivered => self.start_close(now, index),
            Outcome::Failed => {
                let connection = self.table.slot(index);
                let error =
                    connection.map_or(ConnectionError::PeerUnresponsive, |connection| connection.classify_timeout(now));
                self.give_up(now, index, error, CloseReason::Timeout);
            }
        }
    }

    /// Handles a connection's deadline.
    pub(crate) fn on_deadline(&mut self, now: Time, index: u32) {
        self.shared.deadlines.set(index, Time::NEVER);
        let Some(connection) = self.table.slot(index) else { return };
        let check_at = connection.check_at;
        if connection.retransmit.at <= now {
            self.retransmit_handshake(now, index);
        }
        if check_at <= now {
            self.check_keys(now, index);
            self.check_idle(now, index);
        }
        self.service(now, index);
    }

    /// Ends a connection with an error, and notifies the peer.
    pub(crate) fn give_up(&mut self, now: Time, index: u32, error: ConnectionError, reason: CloseReason) {
        let port = self.any_port();
        if let Some(connection) = self.table.slot(index)
            && connection.flow.is_some()
        {
            let close = connection.close_frame(reason, false);
            self.shared.control_queue.push_to(connection, port, close);
        }
        self.fail(now, index, error);
    }

    /// Ends all connections with an error, and removes half-open ones. With a `reason`, peers are
    /// notified.
    pub(crate) fn end_all(&mut self, now: Time, error: ConnectionError, reason: Option<CloseReason>) {
        for index in 0..self.config.max_connections {
            match (self.table.slot(index).map(|connection| connection.stage), reason) {
                (Some(Stage::HalfOpen), _) => drop(self.remove(index)),
                (Some(_), Some(reason)) => self.give_up(now, index, error, reason),
                (Some(_), None) => self.fail(now, index, error),
                (None, _) => {}
            }
        }
    }

    pub(crate) fn fail(&mut self, now: Time, index: u32, error: ConnectionError) {
        if let Some(connection) = self.end(index) {
            let event = EndpointEvent::Failed { connection: connection.id, error, at: now };
            self.shared.events.push_back(event);
        }
    }

    /// Ends a connection after closing.
    pub(crate) fn finish(&mut self, now: Time, index: u32) {
        if let Some(connection) = self.end(index) {
            self.shared.events.push_back(EndpointEvent::Closed { connection: connection.id, at: now });
        }
    }

    /// Removes a connection. The next one to its peer starts with its path measurements.
    fn end(&mut self, index: u32) -> Option<Box<Connection>> {
        let connection = self.remove(index)?;
        if let Some(flow) = connection.flow.as_deref() {
            self.shared.host.save_history(connection.peer.number(), &flow.sending);
        }
        Some(connection)
    }

    /// Removes a connection. A turn that it still has is skipped, since its number is not reused
    /// soon.
    pub(crate) fn remove(&mut self, index: u32) -> Option<Box<Connection>> {
        self.shared.deadlines.set(index, Time::NEVER);
        let connection = self.table.remove(index)?;
        if let Some(flow) = connection.flow.as_deref() {
            self.shared.host.close(&flow.receiving);
            let events = self.shared.events.capacity() * size_of::<EndpointEvent>();
            self.trims_heap |= flow.held_bytes(&connection.config).max(events as u64) >= TRIM_BYTES;
        }
        Some(connection)
    }

    /// Fails a connection after too long a silence of the peer, or accepts nothing while
    /// closing. Sends keep-alives after a third of that time, until one is answered.
    //= docs/specs/endpoint.md#END-9 keep-alives
    fn check_idle(&mut self, now: Time, index: u32) {
        let (timeout, port) = (self.config.idle_timeout_ps, self.any_port());
        let Some(connection) = self.table.slot(index) else { return };
        let silent = now.since(connection.last_arrival);
        if silent >= timeout {
            self.give_up(now, index, ConnectionError::IdleTimeout, CloseReason::Timeout);
            return;
        }
        if connection.is_stuck(now, timeout) {
            self.give_up(now, index, ConnectionError::PeerUnresponsive, CloseReason::Timeout);
            return;
        }
        let asks = silent >= timeout / 3;
        // Each draws another entropy value: a dead path loses only some of them.
        let (from, wait) = if asks { (now, timeout / 30) } else { (connection.last_arrival, timeout / 3) };
        connection.check_by(from.after(wait.max(1)));
        if asks {
            self.shared.control_queue.push_to(connection, port, keep_alive(now));
        }
    }
}

/// Returns a frame that the peer answers.
pub(crate) fn keep_alive(now: Time) -> Body {
    Body::Probe(Probe { token: KEEP_ALIVE, timestamp: now })
}

impl Connection {
    /// Returns whether a closing connection has long had nothing acknowledged, though the peer is
    /// alive.
    //= docs/specs/endpoint.md#END-10 60 idle timeouts
    fn is_stuck(&mut self, now: Time, timeout_ps: u64) -> bool {
        if !self.close_wanted || self.stage != Stage::Open {
            return false;
        }
        let bytes = self.flow.as_ref().map_or(0, |flow| flow.sending.sender.stats().bytes_acked);
        match self.acked {
            Some((before, since)) if before == bytes => now.since(since) >= timeout_ps.saturating_mul(STUCK_TIMEOUTS),
            _ => {
                self.acked = Some((bytes, now));
                false
            }
        }
    }

    /// Returns why a peer has acknowledged nothing for the give-up time: it is gone, or only long packets are lost
    /// (MTU), since keep-alives are sent at a third of that time or more often.
    fn classify_timeout(&self, now: Time) -> ConnectionError {
        const ETHERNET_HEADER: u32 = 14;
        if now.since(self.last_arrival) >= self.config.give_up_ps / 2 {
            return ConnectionError::PeerUnresponsive;
        }
        ConnectionError::MtuBlackHole { bytes: self.config.packet_bytes() - ETHERNET_HEADER }
    }

    pub(crate) fn close_frame(&self, reason: CloseReason, acknowledgement: bool) -> Body {
        let cumulative = self.flow.as_ref().map_or(0, |flow| flow.receiving.receiver.cumulative());
        Body::Close(Close { cumulative, reason, acknowledgement })
    }

    /// Submits messages to the sender in order, as many as it accepts.
    pub(crate) fn submit_backlog(&mut self) {
        let Some(flow) = self.flow.as_deref_mut() else { return };
        while let Some(&message) = self.backlog.front() {
            let bytes = self.send_buffers.get(message).map_or(0, |outgoing| outgoing.content.bytes());
            if flow.sending.sender.send_message(message, bytes).is_err() {
                return;
            }
            self.backlog.pop_front();
        }
    }
}
