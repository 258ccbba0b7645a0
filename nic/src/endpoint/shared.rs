//! The state that the connections of an endpoint share, and what follows from an event at one of them.
//!
//! Packet path: R4 and R6 of `docs/architecture.md`, around the halves of the connection.

use std::collections::VecDeque;

use bytes::Bytes;
use spray_core::Time;
use spray_core::flow::{Arrival, DataOutcome, PayloadSlot, SenderEvent};
use spray_core::host::{EventLog, FramePath, Scheduler};
use spray_wire::{Body, Data, Frame};

use super::{
    Chunk, EndpointEvent, EndpointStats, MessageId, Sink,
    connection::deadlines::Deadlines,
    connection::{Connection, Flow},
    payload::buffers::Piece,
    payload::pages::Pool,
    transmit::control_queue::ControlQueue,
};

/// Maximum number of received messages of a connection that the user has not taken. Flow control bounds their bytes,
/// but not the number of tiny ones. The receiver accepts no further messages until the user takes some.
//= docs/specs/endpoint.md#END-12 whole messages
pub(crate) const MAX_UNREAD: u32 = 4096;

/// The state that all connections of an endpoint share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) host: Scheduler,
    pub(crate) control_queue: ControlQueue,
    pub(crate) events: VecDeque<EndpointEvent>,
    pub(crate) deadlines: Deadlines,
    pub(crate) log: EventLog,
    pub(crate) pool: Pool,
    /// Takes payload in place of buffers.
    pub(crate) sink: Option<Box<dyn Sink>>,
    pub(crate) stats: EndpointStats,
}

/// The state of a connection after an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Outcome {
    #[default]
    Open,
    /// It is to close, and everything is delivered.
    Delivered,
    /// Its sender has given up.
    Failed,
}

/// What an arrived frame did.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub(crate) struct Handled {
    /// Acknowledged packets, so that the sender may have room for others.
    pub(crate) acknowledged: bool,
    /// Bytes of payload that were stored: 0 for a duplicate.
    pub(crate) placed_bytes: u16,
    pub(crate) outcome: Outcome,
}

impl Shared {
    /// Handles a frame of an open connection.
    #[inline]
    pub(crate) fn on_frame(
        &mut self,
        now: Time,
        connection: &mut Connection,
        frame: &Frame<'_>,
        misrouted: bool,
    ) -> Handled {
        match &frame.body {
            Body::Data(data) => self.on_data(now, connection, frame, data, misrouted),
            body => {
                let (port, hops, marked) = (frame.envelope.src_port, frame.envelope.hops(), frame.envelope.marked());
                let path = FramePath { port, hops, marked, pause: frame.is_pause() };
                let outcome = self.on_control(now, connection, body, &path);
                Handled { acknowledged: matches!(body, Body::Ack(_)), placed_bytes: 0, outcome }
            }
        }
    }

    #[inline]
    fn on_data(
        &mut self,
        now: Time,
        connection: &mut Connection,
        frame: &Frame<'_>,
        data: &Data,
        misrouted: bool,
    ) -> Handled {
        let Some(flow) = connection.flow.as_deref_mut() else { return Handled::default() };
        let Flow { receiving, receive_buffers, .. } = flow;
        let arrival = Arrival {
            data: *data,
            port: frame.envelope.src_port,
            marked: frame.envelope.marked(),
            hops: frame.envelope.hops(),
            trimmed: frame.trimmed,
            last_port: frame.is_trimmed_last(),
            misrouted,
        };
        let Data { message, message_bytes, offset, timestamp, .. } = *data;
        let payload = frame.payload;
        let piece = Piece { message, message_bytes, offset, timestamp, payload };
        let (pool, sink) = (&self.pool, &mut self.sink);
        let mut lent = false;
        let place = |slot: PayloadSlot| {
            let Some(sink) = sink else { return receive_buffers.place(&piece, slot, pool) };
            lent = receive_buffers.lend(&piece, slot);
            if lent {
                //= docs/specs/endpoint.md#END-12a zero-copy receive
                let (connection, message) = (connection.id, MessageId(message));
                sink.take(&Chunk { connection, message, message_bytes, offset, payload });
            }
            lent
        };
        let accept = self.host.on_data(now, receiving, &arrival, place);
        if lent {
            receiving.receiver.consumed(payload.len() as u64);
        }
        self.serve_receiver(now, connection);
        let mut handled = Handled::default();
        match accept {
            DataOutcome::New { .. } => handled.placed_bytes = data.payload_bytes,
            DataOutcome::Trimmed | DataOutcome::Trailer | DataOutcome::OutOfOrder => {}
            DataOutcome::Duplicate => self.stats.duplicates += 1,
            DataOutcome::OutOfWindow => self.stats.out_of_window += 1,
            DataOutcome::Invalid => self.stats.invalid += 1,
        }
        handled
    }

    /// Handles a control frame of an open connection.
    #[inline]
    pub(crate) fn on_control(
        &mut self,
        now: Time,
        connection: &mut Connection,
        body: &Body,
        path: &FramePath,
    ) -> Outcome {
        let number = connection.id.raw();
        let Some(flow) = connection.flow.as_deref_mut() else { return Outcome::Open };
        let reply = self.host.on_request(now, number, &mut flow.receiving, body, path);
        let is_feedback = flow.sending.on_feedback(now, body, path, &mut self.log.of(number));
        if let Some(reply) = reply {
            self.control_queue.push_to(connection, path.port, reply);
        }
        if is_feedback { self.serve_sender(now, connection) } else { Outcome::Open }
    }

    /// Handles the deadlines of an open connection's halves. Has no effect on halves that are not due.
    pub(crate) fn on_deadlines(&mut self, now: Time, connection: &mut Connection) -> Outcome {
        let number = connection.id.raw();
        let Some(flow) = connection.flow.as_deref_mut() else { return Outcome::Open };
        flow.receiving.receiver.on_timeout(now);
        self.serve_receiver(now, connection);
        if let Some(flow) = connection.flow.as_deref_mut() {
            flow.sending.on_deadline(now, &mut self.log.of(number));
        }
        self.serve_sender(now, connection)
    }

    /// Does what follows from an event at a connection's sender: its events, messages, turn and deadline.
    #[inline]
    fn serve_sender(&mut self, now: Time, connection: &mut Connection) -> Outcome {
        let Some(flow) = connection.flow.as_deref_mut() else { return Outcome::Open };
        while let Some(event) = flow.sending.sender.poll_event() {
            match event {
                SenderEvent::MessageDelivered { message, at } => {
                    let Some(sent) = connection.send_buffers.remove(message) else { continue };
                    self.events.push_back(EndpointEvent::Delivered {
                        connection: connection.id,
                        message: MessageId(message),
                        started_at: sent.started_at,
                        at,
                    });
                }
                SenderEvent::Failed => return Outcome::Failed,
            }
        }
        connection.submit_backlog();
        if connection.close_wanted && connection.is_delivered() {
            return Outcome::Delivered;
        }
        if let Some(flow) = connection.flow.as_deref_mut() {
            self.host.request_turn(connection.id.raw(), &mut flow.sending);
        }
        self.reschedule(now, connection);
        Outcome::Open
    }

    /// Does what follows from an event at a connection's receiver: its messages, NACKs, ACKs and deadline.
    #[inline]
    fn serve_receiver(&mut self, now: Time, connection: &mut Connection) {
        self.take_messages(now, connection);
        let mut frame = connection.flow.as_deref_mut().and_then(|flow| flow.receiving.poll_control());
        if frame.is_none() {
            let delayed_ack = connection.flow.as_deref().map_or(Time::NEVER, |flow| flow.receiving.deadline());
            return self.advance(connection.slot, delayed_ack);
        }
        while let Some((port, body)) = frame {
            self.control_queue.push_to(connection, port, body);
            frame = connection.flow.as_deref_mut().and_then(|flow| flow.receiving.poll_control());
        }
        self.reschedule(now, connection);
    }

    /// Reports complete messages to the user.
    fn take_messages(&mut self, now: Time, connection: &mut Connection) {
        let Some(Flow { receiving, receive_buffers, .. }) = connection.flow.as_deref_mut() else { return };
        while connection.unread < MAX_UNREAD
            && let Some((message, bytes)) = receiving.receiver.message_completed()
        {
            connection.unread += 1;
            // A message without bytes has no slot.
            let whole = if bytes > 0 { receive_buffers.take(message) } else { None };
            let (data, started_at) = whole.map_or((Bytes::new(), now), |whole| (whole.data, whole.started_at));
            self.events.push_back(EndpointEvent::Received {
                connection: connection.id,
                message: MessageId(message),
                data,
                started_at,
                completed_at: now,
            });
        }
    }

    /// Makes a connection's timer no later than `at`. Used for packets, each of which would move the timer: the next
    /// acknowledgement moves it.
    #[inline]
    pub(crate) fn advance(&mut self, slot: u32, at: Time) {
        if at < self.deadlines.of(slot) {
            self.deadlines.set(slot, at);
        }
    }

    /// Updates a connection's timer. A deadline that has passed stays until it is handled, since a late poll may handle
    /// frames before timers.
    #[inline]
    pub(crate) fn reschedule(&mut self, now: Time, connection: &Connection) {
        let slot = connection.slot;
        if self.deadlines.of(slot) > now {
            self.deadlines.set(slot, connection.deadline(now));
        }
    }
}
