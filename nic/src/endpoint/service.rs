//! What follows at a connection after an event, and when nothing comes: the host's rules, the end, the next deadline.

use spray_core::Time;
use spray_wire::{Body, Close, CloseReason, Probe};

use super::{
    ConnectionError, EndpointEvent,
    connection::{Connection, Stage},
    machine::Machine,
    shared::Outcome,
};

/// Token of keep-alive probes. Balancers' probes count up from 1, so no sender takes the answer for one of theirs.
const KEEP_ALIVE: u64 = u64::MAX;

/// How long a connection that is to close waits for a peer that takes nothing, in idle timeouts: 300 s where that is 5.
const STUCK_TIMEOUTS: u64 = 60;

/// From this amount on, the memory of a connection that ends returns to the system once the user has taken all events.
const TRIM_BYTES: u64 = 1 << 20;

impl Machine {
    /// Does what is due at a connection, and what follows from a call of its user.
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

    /// Does what is due at a connection's deadline.
    pub(crate) fn on_deadline(&mut self, now: Time, index: u32) {
        self.shared.deadlines.set(index, Time::NEVER);
        let Some(connection) = self.table.slot(index) else { return };
        let check_at = connection.check_at;
        if connection.repeat.at <= now {
            self.retransmit_handshake(now, index);
        }
        if check_at <= now {
            self.check_keys(now, index);
            self.check_idle(now, index);
        }
        self.service(now, index);
    }

    /// Ends a connection with an error and tells the peer why.
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

    /// Ends every connection with an error, and forgets the half-open ones. Peers are told, where there is a reason for them.
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

    /// Ends a connection with an error.
    pub(crate) fn fail(&mut self, now: Time, index: u32, error: ConnectionError) {
        if let Some(connection) = self.end(index) {
            let event = EndpointEvent::Failed { connection: connection.id, error, at: now };
            self.shared.events.push_back(event);
        }
    }

    /// Ends a connection that was closed.
    pub(crate) fn finish(&mut self, now: Time, index: u32) {
        if let Some(connection) = self.end(index) {
            self.shared.events.push_back(EndpointEvent::Closed { connection: connection.id, at: now });
        }
    }

    /// Frees the slot of a connection that was open; the next one to its peer begins with what it has learned.
    fn end(&mut self, index: u32) -> Option<Box<Connection>> {
        let connection = self.remove(index)?;
        if let Some(flow) = connection.flow.as_deref() {
            self.shared.host.remember(connection.peer.number(), &flow.sending);
        }
        Some(connection)
    }

    /// Frees a connection's slot. A turn that it still has is passed over: its number is not used again soon.
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

    /// Fails a connection whose peer has been silent too long, or lets it not end. Sends a keep-alive after a third of that time, and more until it
    /// is answered.
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
        // Each draws its entropy value anew: a dead path loses some of them only.
        let (from, wait) = if asks { (now, timeout / 30) } else { (connection.last_arrival, timeout / 3) };
        connection.check_by(from.after(wait.max(1)));
        if asks {
            self.shared.control_queue.push_to(connection, port, keep_alive(now));
        }
    }
}

/// A frame whose answer shows that the peer lives.
pub(crate) fn keep_alive(now: Time) -> Body {
    Body::Probe(Probe { token: KEEP_ALIVE, timestamp: now })
}

impl Connection {
    /// Whether it was to close long ago, and nothing more is acknowledged: the peer is there, but takes nothing.
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
        ConnectionError::LongLost { bytes: self.config.packet_bytes() - ETHERNET_HEADER }
    }

    pub(crate) fn close_frame(&self, reason: CloseReason, acknowledgement: bool) -> Body {
        let cumulative = self.flow.as_ref().map_or(0, |flow| flow.receiving.receiver.cumulative());
        Body::Close(Close { cumulative, reason, acknowledgement })
    }

    /// Hands messages to the sender in order, as many as it takes.
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
