//! What a sender returns: frames and events.

use spray_wire::{Data, Probe, PullRequest};

use crate::Time;
use crate::feedback::Ev;
use crate::flow::messages::Segment;

/// The message queue is full: poll the events, which frees the slots of delivered messages, and try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl core::fmt::Display for Full {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the connection's message queue is full")
    }
}

impl core::error::Error for Full {}

/// A frame to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// A data frame with `data.payload_bytes` of message `data.message` from `data.offset` on.
    ///
    /// With `payload_bytes == 0` there is no payload: the frame is an empty message, a trailer, or a request for the
    /// peer's grant.
    Data {
        /// The header.
        data: Data,
        /// The path: the UDP source port follows from it.
        ev: Ev,
    },
    /// A probe of one path.
    Probe {
        /// The header.
        probe: Probe,
        /// The path: the UDP source port follows from it.
        ev: Ev,
    },
    /// A request for credit.
    PullRequest {
        /// What it says.
        request: PullRequest,
        /// Any path.
        ev: Ev,
    },
}

/// What a sender tells its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// The peer acknowledged every packet of a message. Comes once for each message.
    MessageDelivered {
        /// The message.
        message: u32,
        /// When the last acknowledgement came.
        at: Time,
    },
    /// Nothing was newly acknowledged for `give_up_ps`. The sender has failed: it sends nothing and takes nothing.
    Failed,
}

/// The header of a packet.
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
