//! The two halves of a connection, without I/O: [`Sender`] and [`Receiver`]. The code cites the
//! numbered clauses (`TRN-n`) of `docs/specs/transport.md`.

mod config;
mod messages;
mod receiver;
mod sender;

#[cfg(test)]
mod tests;

pub use self::config::{
    DEFAULT_GIVE_UP_PS, DEFAULT_SACK_GAP_PACKETS, FIRST_PACKETS, FlowConfig, MAX_WINDOW_PACKETS, MESSAGE_SLOTS,
    MIN_PAYLOAD_BYTES,
};
pub use self::messages::{HashKey, Part, PayloadSlot};
pub use self::receiver::{Arrival, DataOutcome, OrderStats, Receiver, ReceiverStats, ReorderDegrees};
pub use self::sender::{Limit, Limits, QueueFull, Sender, SenderEvent, SenderStats, Transmit};
