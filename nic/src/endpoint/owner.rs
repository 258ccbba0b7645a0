//! What surrounds the endpoint's host: frames on their way out, reports to the user, buffers, timers.

use std::collections::VecDeque;

use bytes::Bytes;
use spray_core::Time;
use spray_core::flow::PayloadSlot;
use spray_core::host::{self, Entry, Log, ReceiveHalf, SendHalf};
use spray_wire::{Body, Data, EvPort};

use super::{
    ConnectionId, EndpointEvent, Lent, MessageId, Sink,
    connection::deadlines::Deadlines,
    connection::table::Table,
    connection::{Connection, Flow},
    payload::buffers::Piece,
    payload::pages::Pool,
    transmit::control_queue::ControlQueue,
};

/// Most received messages of a connection that wait for the user. Flow control bounds their bytes, but not the number
/// of tiny ones. Above it the receiver accepts nothing until the user takes some.
//= docs/specs/endpoint.md#END-12 whole messages
pub(crate) const MAX_UNREAD: u32 = 4096;

/// The [`Owner`](spray_core::host::Owner) of the host's connections.
#[derive(Debug)]
pub(crate) struct HostOwner {
    pub(crate) control_queue: ControlQueue,
    /// The data frame that the host sends now.
    pub(crate) data: Option<(ConnectionId, EvPort, Body)>,
    pub(crate) events: VecDeque<EndpointEvent>,
    pub(crate) deadlines: Deadlines,
    pub(crate) log: Log,
    pub(crate) pool: Pool,
    /// Takes payload in place of buffers.
    pub(crate) sink: Option<Box<dyn Sink>>,
}

impl HostOwner {
    /// Updates a connection's timer. A deadline that has come stays until it is handled, since a late poll may handle
    /// frames before timers.
    #[inline]
    pub(crate) fn reschedule(&mut self, now: Time, connection: &Connection) {
        let slot = connection.slot;
        if self.deadlines.of(slot) > now {
            self.deadlines.set(slot, connection.deadline(now));
        }
    }
}

impl host::Owner for HostOwner {
    type Connection = Connection;
    type Payload<'a> = &'a [u8];

    #[inline]
    fn log(&mut self) -> &mut Log {
        &mut self.log
    }

    #[inline]
    fn send(&mut self, _now: Time, _number: u32, connection: &mut Connection, port: EvPort, body: Body) {
        self.control_queue.push_to(connection, port, body);
    }

    #[inline]
    fn send_data(&mut self, _now: Time, number: u32, _connection: &mut Connection, port: EvPort, data: &Data) {
        self.data = Some((ConnectionId(number), port, Body::Data(*data)));
    }

    #[inline]
    fn place(&mut self, connection: &mut Connection, data: &Data, place: PayloadSlot, payload: &[u8]) -> bool {
        let Some(flow) = connection.flow.as_deref_mut() else { return false };
        let Data { message, message_bytes, offset, timestamp, .. } = *data;
        let piece = Piece { message, message_bytes, offset, timestamp, payload };
        let Some(sink) = &mut self.sink else { return flow.receive_buffers.place(&piece, place, &self.pool) };
        if !flow.receive_buffers.lend(&piece, place) {
            return false;
        }
        //= docs/specs/endpoint.md#END-12a zero-copy receive
        sink.take(&Lent { connection: connection.id, message: MessageId(message), message_bytes, offset, payload });
        flow.receiving.receiver.consumed(payload.len() as u64);
        true
    }

    fn take_messages(&mut self, now: Time, _number: u32, connection: &mut Connection) {
        let Some(Flow { receiving, receive_buffers, .. }) = connection.flow.as_deref_mut() else { return };
        while connection.unread < MAX_UNREAD
            && let Some((message, bytes)) = receiving.receiver.message_completed()
        {
            connection.unread += 1;
            // A message without bytes has no packet with a place.
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

    fn on_delivered(&mut self, _number: u32, connection: &mut Connection, message: u32, at: Time) {
        let Some(sent) = connection.send_buffers.remove(message) else { return };
        let (connection, started_at) = (connection.id, sent.started_at);
        self.events.push_back(EndpointEvent::Delivered { connection, message: MessageId(message), started_at, at });
    }

    fn submit(&mut self, connection: &mut Connection) -> bool {
        connection.submit_backlog();
        !(connection.close_wanted && connection.is_delivered())
    }

    #[inline]
    fn arm_sender(&mut self, now: Time, _number: u32, connection: &mut Connection, _sent: bool) {
        self.reschedule(now, connection);
    }

    #[inline]
    fn arm_receiver(&mut self, now: Time, _number: u32, connection: &mut Connection) {
        self.reschedule(now, connection);
    }
}

impl Entry for Connection {
    #[inline]
    fn sending(&mut self) -> Option<&mut SendHalf> {
        Some(&mut self.flow.as_deref_mut()?.sending)
    }

    #[inline]
    fn receiving(&mut self) -> Option<&mut ReceiveHalf> {
        Some(&mut self.flow.as_deref_mut()?.receiving)
    }
}

impl host::Table<Connection> for Table {
    #[inline]
    fn entry(&mut self, number: u32) -> Option<&mut Connection> {
        self.slot(self.find(ConnectionId(number))?)
    }
}
