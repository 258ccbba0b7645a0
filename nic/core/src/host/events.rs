//! What follows from a frame, a timer, or a call of the user.

use spray_wire::{Body, EvPort, Probe, ProbeAck};

use super::{Entry, Host, Owner, ReceiveHalf, SendHalf};
use crate::Time;
use crate::flow::{Accept, Arrival, SenderEvent};

/// What a frame tells of the path that it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// UDP source port: the entropy value to echo.
    pub port: EvPort,
    /// Switches that it passed.
    pub hops: u8,
    /// It carries an ECN mark.
    pub marked: bool,
    /// A switch asks the connection's sender to pause; without it a reply lets it go on.
    pub pause: bool,
}

/// Whether a connection goes on after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Fate {
    /// It goes on.
    Open,
    /// [`Owner::submit`] found nothing left to do: the owner ends the connection.
    Done,
    /// Its sender has given up: the owner ends the connection.
    Failed,
}

impl Host {
    /// Takes a data frame of an open connection.
    #[inline]
    pub fn on_data<O: Owner>(
        &mut self,
        now: Time,
        number: u32,
        connection: &mut O::Connection,
        arrival: &Arrival,
        payload: O::Payload<'_>,
        owner: &mut O,
    ) -> Accept {
        let Some(half) = connection.receiving() else { return Accept::Invalid };
        let mut accept = half.receiver.on_data(now, arrival);
        if let Accept::New { place: Some(place) } = accept
            && !owner.place(connection, &arrival.data, place, payload)
        {
            accept = Accept::Invalid;
        }
        self.take_back(now, connection, arrival, accept, owner);
        self.serve_receiver(now, number, connection, owner);
        accept
    }

    /// Takes a frame without payload of an open connection. Frames of the handshake do nothing here.
    #[inline]
    pub fn on_control<O: Owner>(
        &mut self,
        now: Time,
        number: u32,
        connection: &mut O::Connection,
        body: &Body,
        path: &Passage,
        owner: &mut O,
    ) -> Fate {
        match body {
            Body::PullRequest(request) => {
                self.on_pull_request(now, number, connection, path.port, request, owner);
            }
            Body::Probe(probe) if connection.receiving().is_some() => {
                owner.send(now, number, connection, path.port, answer(probe, path));
            }
            _ => {}
        }
        let Some(SendHalf { sender, .. }) = connection.sending() else { return Fate::Open };
        sender.on_pause(path.pause);
        match body {
            Body::Ack(ack) => sender.on_ack(now, ack, &mut owner.log().of(number)),
            Body::Nack(nack) => sender.on_nack(now, nack, &mut owner.log().of(number)),
            Body::ProbeAck(answer) => sender.on_probe_ack(now, answer, &mut owner.log().of(number)),
            Body::Pull(pull) => sender.on_pull(now, pull),
            Body::PullRequest(_) | Body::Probe(_) => return Fate::Open,
            Body::Data(_)
            | Body::Connect(_)
            | Body::Accept(_)
            | Body::Close(_)
            | Body::Retry(_)
            | Body::Reset(_)
            | Body::Rekey(_) => return Fate::Open,
        }
        self.serve_sender(now, number, connection, owner)
    }

    /// Does what may follow from an event at a connection's sender: its reports, new messages, a turn, its timer.
    #[inline]
    pub fn serve_sender<O: Owner>(
        &mut self,
        now: Time,
        number: u32,
        connection: &mut O::Connection,
        owner: &mut O,
    ) -> Fate {
        while let Some(event) = connection.sending().and_then(|half| half.sender.poll_event()) {
            match event {
                SenderEvent::MessageDelivered { message, at } => {
                    owner.on_delivered(number, connection, message, at);
                }
                SenderEvent::Failed => return Fate::Failed,
            }
        }
        if !owner.submit(connection) {
            return Fate::Done;
        }
        let Some(half) = connection.sending() else { return Fate::Open };
        if !core::mem::replace(&mut half.ready, true) {
            self.turns.push_back(number);
        }
        owner.arm_sender(now, number, connection, false);
        Fate::Open
    }

    /// Does what may follow from an event at a connection's receiver: messages, NACKs, ACKs, its timer.
    #[inline]
    pub fn serve_receiver<O: Owner>(&mut self, now: Time, number: u32, connection: &mut O::Connection, owner: &mut O) {
        owner.take_messages(now, number, connection);
        while let Some(nack) = connection.receiving().and_then(|half| half.receiver.poll_nack()) {
            owner.send(now, number, connection, nack.port, Body::Nack(nack));
        }
        while let Some((port, ack)) = connection.receiving().and_then(ReceiveHalf::poll_ack) {
            owner.send(now, number, connection, port, Body::Ack(ack));
        }
        owner.arm_receiver(now, number, connection);
    }

    /// Does what is due at the sender's deadline. Calling early gives the sender a turn.
    pub fn on_sender_deadline<O: Owner>(
        &mut self,
        now: Time,
        number: u32,
        connection: &mut O::Connection,
        owner: &mut O,
    ) -> Fate {
        if let Some(half) = connection.sending()
            && half.is_due(now)
        {
            half.sender.on_timeout(now, &mut owner.log().of(number));
        }
        self.serve_sender(now, number, connection, owner)
    }

    /// Does what is due at the receiver's deadline. Calling early does no harm.
    #[inline]
    pub fn on_receiver_deadline<O: Owner>(
        &mut self,
        now: Time,
        number: u32,
        connection: &mut O::Connection,
        owner: &mut O,
    ) {
        if let Some(half) = connection.receiving() {
            half.receiver.on_timeout(now);
        }
        self.serve_receiver(now, number, connection, owner);
    }
}

/// The answer to a probe. It goes from the port that the probe came from, as an acknowledgement would.
fn answer(probe: &Probe, path: &Passage) -> Body {
    let Passage { port, hops, marked, .. } = *path;
    Body::ProbeAck(ProbeAck { token: probe.token, timestamp: probe.timestamp, port, hops, marked })
}
