//! The two halves of a connection, without I/O: [`Sender`] and [`Receiver`]. The code cites the
//! numbered clauses (`TRN-n`) of `docs/specs/transport.md`.

mod config;
mod messages;
mod receiver;
mod sender;

#[cfg(test)]
mod tests;

pub use self::config::{
    DEFAULT_GIVE_UP_PS, DEFAULT_SACK_GAP_PACKETS, FIRST_PACKETS, FlowConfig, LEAST_PAYLOAD_BYTES, MAX_WINDOW_PACKETS,
    MESSAGE_SLOTS,
};
pub use self::messages::{HashKey, Part, PayloadSlot};
pub use self::receiver::{Accept, Arrival, Degrees, OrderStats, Receiver, ReceiverStats};
pub use self::sender::{Full, Limit, Limits, Sender, SenderEvent, SenderStats, Transmit};
