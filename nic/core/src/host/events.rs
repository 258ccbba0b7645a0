//! Arriving frames: data, and control frames for either half.
//!
//! Packet path: R5 of `docs/architecture.md`.

use spray_wire::{Body, EvPort, ProbeAck};

use super::{ReceiveHalf, Scheduler, SendHalf};
use crate::Time;
use crate::event::Publisher;
use crate::flow::{Arrival, DataOutcome, PayloadSlot};

/// The path of an arrived frame, as its headers show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePath {
    /// UDP source port: the entropy value to echo.
    pub port: EvPort,
    /// The number of switches.
    pub hops: u8,
    /// Carries an ECN mark.
    pub marked: bool,
    /// A switch pauses the connection's sender; a frame without this flag resumes it.
    pub pause: bool,
}

impl Scheduler {
    /// Handles a data frame. `place` stores the payload in the slot that it gets, and returns `false` if the payload
    /// does not fit its message: the frame is then invalid.
    #[inline]
    pub fn on_data(
        &mut self,
        now: Time,
        half: &mut ReceiveHalf,
        arrival: &Arrival,
        place: impl FnOnce(PayloadSlot) -> bool,
    ) -> DataOutcome {
        let mut accept = half.receiver.on_data(now, arrival);
        if let DataOutcome::New { place: Some(slot) } = accept
            && !place(slot)
        {
            accept = DataOutcome::Invalid;
        }
        self.return_credit(now, half, arrival, accept);
        accept
    }

    /// Handles a control frame for the receiving half of connection `number`: a request for credit, or a probe. Returns
    /// the reply, to be sent from the port by which the frame arrived. Ignores all other frames.
    #[inline]
    pub fn on_request(
        &mut self,
        now: Time,
        number: u32,
        half: &mut ReceiveHalf,
        body: &Body,
        path: &FramePath,
    ) -> Option<Body> {
        let FramePath { port, hops, marked, .. } = *path;
        match body {
            Body::PullRequest(request) => self.on_pull_request(now, number, half, port, request),
            Body::Probe(probe) => {
                let (token, timestamp) = (probe.token, probe.timestamp);
                return Some(Body::ProbeAck(ProbeAck { token, timestamp, port, hops, marked }));
            }
            _ => {}
        }
        None
    }
}

impl SendHalf {
    /// Handles a control frame of an open connection. Returns whether it is an ACK, a NACK, the answer to a probe, or
    /// a pull, so that the sender has to be served.
    #[inline]
    pub fn on_feedback(&mut self, now: Time, body: &Body, path: &FramePath, publisher: &mut impl Publisher) -> bool {
        self.sender.on_pause(path.pause);
        match body {
            Body::Ack(ack) => self.sender.on_ack(now, ack, publisher),
            Body::Nack(nack) => self.sender.on_nack(now, nack, publisher),
            Body::ProbeAck(answer) => self.sender.on_probe_ack(now, answer, publisher),
            Body::Pull(pull) => self.sender.on_pull(now, pull),
            _ => return false,
        }
        true
    }
}
