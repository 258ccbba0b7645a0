//! The messages of a connection.

/// A message of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// Its number on the connection, from 0.
    pub number: u32,
    /// Its flow.
    pub flow: u32,
    /// The number of its first packet. A sender numbers packets in the order of its messages.
    pub first_psn: u64,
    pub bytes: u64,
}

/// The messages of a connection that has several, in order.
#[derive(Debug)]
pub(super) struct Series(pub Vec<Message>);

impl Message {
    /// The only message of a connection, or its first one.
    pub(super) fn first(flow: u32, bytes: u64) -> Self {
        Self { number: 0, flow, first_psn: 0, bytes }
    }
}
