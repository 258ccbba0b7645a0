//! One connection's two halves, without input or output: [`Sender`] and [`Receiver`].
//!
//! Whoever owns the frames drives both. `docs/specs/transport.md` states their rules as numbered clauses (`TRN-n`),
//! which the code cites.

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
