//! Payload without copies: written directly into frames, and read where it arrived.

use std::fmt::Debug;

use crate::endpoint::{ConnectionId, MessageId};

/// A message that is written directly into frames.
pub trait Source: Debug + Send {
    /// Returns the bytes of the message.
    fn bytes(&self) -> u64;

    /// Writes the bytes from `offset` on that fit into `to`.
    ///
    /// Lost packets are sent again, so that the bytes must be the same each time until the message
    /// is delivered.
    //= docs/specs/endpoint.md#END-12b zero-copy send
    fn fill(&self, offset: u64, to: &mut [u8]);
}

/// Takes payload from the frames in which it arrives.
pub trait Sink: Debug + Send {
    /// Takes a piece of a message. Each byte comes once; pieces come in any order, mixed with those
    /// of other messages.
    //= docs/specs/endpoint.md#END-12a zero-copy receive
    fn take(&mut self, piece: &Chunk<'_>);
}

/// A piece of a message in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The connection.
    pub connection: ConnectionId,
    /// The message's number.
    pub message: MessageId,
    /// Bytes of the whole message.
    pub message_bytes: u64,
    /// The offset of the piece in the message.
    pub offset: u64,
    /// The bytes. The frame returns to the device after [`Sink::take`].
    pub payload: &'a [u8],
}
