//! One connection's two halves, without input or output: [`Sender`] and [`Receiver`].
//!
//! Both are driven by whoever owns the frames. What they decide is stated in `docs/specs/transport.md` as numbered
//! clauses (`TRN-n`), which the code cites.

mod config;
mod messages;
mod receiver;
mod ring;
mod sender;

#[cfg(test)]
mod tests;

pub use self::config::{DEFAULT_GIVE_UP_PS, DEFAULT_SACK_GAP_PACKETS, FlowConfig, MAX_WINDOW_PACKETS, MESSAGE_SLOTS};
pub use self::receiver::{Accept, Arrival, Receiver, ReceiverStats};
pub use self::sender::{Full, Sender, SenderEvent, SenderStats, Transmit};
