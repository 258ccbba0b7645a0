//! Payload that is not copied: written straight into frames, and looked at where it arrived.

use std::fmt::Debug;

use crate::endpoint::{ConnectionId, MessageId};

/// A message whose bytes are made when a packet of it is sent, in the frame itself.
pub trait Source: Debug + Send {
    /// Bytes of the message.
    fn bytes(&self) -> u64;

    /// Writes those that begin at `offset`, as many as `to` has room for.
    ///
    /// A packet that got lost is sent again, so the bytes must be the same each time until the message is delivered.
    //= docs/specs/endpoint.md#END-12b zero-copy send
    fn fill(&self, offset: u64, to: &mut [u8]);
}

/// Takes payload out of the frames in which it arrives.
pub trait Sink: Debug + Send {
    /// Takes a piece of a message. Each byte comes once; pieces come in any order, and those of several messages mixed.
    //= docs/specs/endpoint.md#END-12a zero-copy receive
    fn take(&mut self, piece: &Lent<'_>);
}

/// A piece of a message, as it lies in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lent<'a> {
    /// The connection that it came on.
    pub connection: ConnectionId,
    /// The message's number among the peer's.
    pub message: MessageId,
    /// Bytes of the whole message.
    pub message_bytes: u64,
    /// Where in the message the piece begins.
    pub offset: u64,
    /// Its bytes. The frame goes back to the device as soon as [`Sink::take`] returns.
    pub payload: &'a [u8],
}
