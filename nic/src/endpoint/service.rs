//! What follows from an event of a connection: reports, acknowledgements, a turn to send, the end, the next deadline.

use bytes::Bytes;
use spray_core::flow::SenderEvent;
use spray_wire::{Body, Close, CloseReason, Probe};

use super::{
    ConnectionError, EndpointEvent, MessageId,
    connection::{Connection, Flow, State},
    deadlines::NEVER,
    machine::Machine,
    messages::Incoming,
};

/// Token of the probes that only ask for a sign of life; senders count theirs up from 0.
pub(crate) const KEEP_ALIVE: u64 = u64::MAX;

/// Received messages that may wait for the user, per connection. Flow control bounds their bytes, but not the number of tiny ones;
/// beyond this the receiver takes no more until some are taken.
//= docs/specs/endpoint.md#END-12
pub(crate) const MAX_UNREAD: u32 = 4096;

impl Machine {
    /// Does everything that may follow from an event of a connection.
    pub(crate) fn service(&mut self, now_ps: u64, index: u32) {
        let Some(connection) = self.table.slot(index) else { return };
        if connection.flow.is_some() && connection.state == State::Open {
            if !connection.report_sent(&mut self.events) {
                self.give_up(now_ps, index, ConnectionError::PeerUnresponsive, CloseReason::Timeout);
                return;
            }
            connection.report_received(now_ps, &mut self.events);
            while let Some(nack) = connection.poll_nack() {
                self.outlet.push_to(connection, nack.ev, Body::Nack(nack));
            }
            while let Some(ack) = connection.poll_ack() {
                self.outlet.push_to(connection, ack.ev, Body::Ack(ack));
            }
            connection.submit_backlog();
            if connection.close_wanted && connection.is_delivered() {
                self.start_close(now_ps, index);
            } else {
                self.make_ready(index);
            }
        }
        self.reschedule(now_ps, index);
    }

    /// Does what a connection's deadline was set for.
    pub(crate) fn on_deadline(&mut self, now_ps: u64, index: u32) {
        let Some(connection) = self.table.slot(index) else { return };
        if connection.retry.at_ps <= now_ps {
            self.retransmit_handshake(now_ps, index);
        }
        let Some(connection) = self.table.slot(index) else { return };
        self.log.connection = connection.id;
        if let Some(flow) = connection.flow.as_mut() {
            if flow.sender.poll_timeout().is_some_and(|at_ps| at_ps <= now_ps) {
                flow.sender.on_timeout(now_ps, &mut self.log);
                connection.timed_ps = now_ps;
            }
            if flow.receiver.poll_timeout().is_some_and(|at_ps| at_ps <= now_ps) {
                flow.receiver.on_timeout(now_ps);
            }
        }
        if connection.idle_check_ps <= now_ps {
            self.check_idle(now_ps, index);
        }
        self.service(now_ps, index);
    }

    /// Sets a connection's deadline anew.
    pub(crate) fn reschedule(&mut self, now_ps: u64, index: u32) {
        if let Some(connection) = self.table.slot(index) {
            self.deadlines.set(index, connection.deadline_ps(now_ps));
        }
    }

    /// Ends a connection with an error, telling the peer why.
    pub(crate) fn give_up(&mut self, now_ps: u64, index: u32, error: ConnectionError, reason: CloseReason) {
        let port = self.any_port();
        if let Some(connection) = self.table.slot(index)
            && connection.flow.is_some()
        {
            let close = connection.close_frame(reason, false);
            self.outlet.push_to(connection, port, close);
        }
        self.fail(now_ps, index, error);
    }

    /// Ends a connection with an error.
    pub(crate) fn fail(&mut self, now_ps: u64, index: u32, error: ConnectionError) {
        if let Some(connection) = self.remove(index) {
            self.events.push_back(EndpointEvent::Failed { connection: connection.id, error, at_ps: now_ps });
        }
    }

    /// Ends a connection that was closed.
    pub(crate) fn finish(&mut self, now_ps: u64, index: u32) {
        if let Some(connection) = self.remove(index) {
            self.events.push_back(EndpointEvent::Closed { connection: connection.id, at_ps: now_ps });
        }
    }

    /// Frees a connection's slot.
    pub(crate) fn remove(&mut self, index: u32) -> Option<Box<Connection>> {
        self.deadlines.set(index, NEVER);
        let connection = self.table.remove(index)?;
        if let Some(pacer) = self.pacer.as_deref_mut()
            && let Some(entry) = connection.flow.as_ref().and_then(|flow| flow.pull_entry)
        {
            pacer.close(entry);
        }
        if connection.ready {
            self.ready.retain(|&other| other != index);
        }
        Some(connection)
    }

    /// Fails a connection whose peer has been silent too long, and asks one that has been silent for a third of that.
    //= docs/specs/endpoint.md#END-9
    fn check_idle(&mut self, now_ps: u64, index: u32) {
        let (timeout, port) = (self.config.idle_timeout_ps, self.any_port());
        let Some(connection) = self.table.slot(index) else { return };
        let silent = now_ps.saturating_sub(connection.heard_ps);
        if silent >= timeout {
            self.give_up(now_ps, index, ConnectionError::IdleTimeout, CloseReason::Timeout);
            return;
        }
        let asks = silent >= timeout / 3;
        connection.idle_check_ps = if asks { now_ps } else { connection.heard_ps } + (timeout / 3).max(1);
        if asks {
            let probe = Probe { token: KEEP_ALIVE, timestamp_ps: now_ps };
            self.outlet.push_to(connection, port, Body::Probe(probe));
        }
    }
}

impl Connection {
    pub(crate) fn close_frame(&self, reason: CloseReason, acknowledgement: bool) -> Body {
        let final_psn = self.flow.as_ref().map_or(0, |flow| flow.sender.next_psn());
        Body::Close(Close { final_psn, reason, acknowledgement })
    }

    /// Reports delivered messages; `false` when the sender has given up.
    fn report_sent(&mut self, events: &mut std::collections::VecDeque<EndpointEvent>) -> bool {
        let Some(flow) = self.flow.as_mut() else { return true };
        while let Some(event) = flow.sender.poll_event() {
            match event {
                SenderEvent::Failed => return false,
                SenderEvent::MessageDelivered { message, at_ps } => {
                    let Some(sent) = self.outbox.remove(message) else { continue };
                    let (connection, started_ps) = (self.id, sent.started_ps);
                    let message = MessageId(message);
                    events.push_back(EndpointEvent::Delivered { connection, message, started_ps, at_ps });
                }
            }
        }
        true
    }

    /// Reports messages that have arrived whole.
    fn report_received(&mut self, now_ps: u64, events: &mut std::collections::VecDeque<EndpointEvent>) {
        let Some(flow) = self.flow.as_mut() else { return };
        while self.unread < MAX_UNREAD
            && let Some((message, _)) = flow.receiver.message_completed()
        {
            self.unread += 1;
            // A message without bytes has no packet with a place.
            let whole = flow.inbox.finish(message).unwrap_or(Incoming { data: Vec::new(), started_ps: now_ps });
            events.push_back(EndpointEvent::Received {
                connection: self.id,
                message: MessageId(message),
                data: Bytes::from(whole.data),
                started_ps: whole.started_ps,
                completed_ps: now_ps,
            });
        }
    }

    fn poll_nack(&mut self) -> Option<spray_wire::Nack> {
        self.flow.as_mut()?.receiver.poll_nack()
    }

    fn poll_ack(&mut self) -> Option<spray_wire::Ack> {
        self.flow.as_mut()?.receiver.poll_ack()
    }

    /// Hands messages to the sender, in order, as many as it takes.
    fn submit_backlog(&mut self) {
        let Some(Flow { sender, .. }) = self.flow.as_deref_mut() else { return };
        while let Some(&message) = self.backlog.front() {
            let bytes = self.outbox.get(message).map_or(0, |outgoing| outgoing.data.len() as u64);
            if sender.send_message(message, bytes).is_err() {
                return;
            }
            self.backlog.pop_front();
        }
    }
}
