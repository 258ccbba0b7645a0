//! What a sender returns: frames and events.

use spray_wire::{Data, Probe, PullRequest};

use crate::Time;
use crate::feedback::Ev;
use crate::flow::messages::Segment;

/// The message queue is full: poll the events, which frees slots of delivered messages, and retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull;

impl core::fmt::Display for QueueFull {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the connection's message queue is full")
    }
}

impl core::error::Error for QueueFull {}

/// A frame to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// A data frame with `data.payload_bytes` of message `data.message` from `data.offset`. Without
    /// payload it is an empty message, a trailer, or a request for the peer's grant.
    Data {
        /// The header.
        data: Data,
        /// The path, which determines the UDP source port.
        ev: Ev,
    },
    /// A probe of one path.
    Probe {
        /// The header.
        probe: Probe,
        /// The path, which determines the UDP source port.
        ev: Ev,
    },
    /// A request for credit.
    PullRequest {
        /// Its contents.
        request: PullRequest,
        /// Any path.
        ev: Ev,
    },
}

/// An event for the sender's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// The peer acknowledged every packet of a message; once per message.
    MessageDelivered {
        /// The message's number.
        message: u32,
        /// Time of the last acknowledgement.
        at: Time,
    },
    /// Nothing was acknowledged for `give_up_ps`: the sender has failed, and ignores all input.
    Failed,
}

#[inline]
pub(super) fn data(now: Time, psn: u64, segment: &Segment, ack_now: bool, retransmit: bool) -> Data {
    Data {
        psn,
        timestamp: now,
        message: segment.message,
        offset: segment.offset,
        message_bytes: segment.message_bytes,
        payload_bytes: segment.payload_bytes,
        ack_now,
        retransmit,
        ..Data::default()
    }
}
