//! The messages of a connection.

/// A message of a connection; `number` counts from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub number: u32,
    pub flow: u32,
    /// Senders number packets in the order of the messages.
    pub first_psn: u64,
    pub bytes: u64,
}

#[derive(Debug)]
pub(super) struct MessageList(pub Vec<Message>);

impl Message {
    pub(super) fn first(flow: u32, bytes: u64) -> Self {
        Self { number: 0, flow, first_psn: 0, bytes }
    }
}
