//! Frame layouts of the spray transport: checked views and builders, `no_std`.
//!
//! A frame is Ethernet, IPv4 or IPv6, UDP to one of the receiver's [`Ports`], then a header of ours that starts with the 20 bytes of
//! [`header`] and goes on by kind ([`Body`]); only [`Data`] has a payload. `docs/specs/wire.md` states the layouts and
//! the rules of acceptance as numbered clauses (`WIRE-n`), which the code cites.
//!
//! | module | content |
//! |---|---|
//! | [`frame`] | whole frames: [`parse`], [`emit`], [`emit_in_place`] (feature `std`, for the checksum) |
//! | `sealed` | the same for sealed frames: [`open`], [`emit_sealed`] |
//! | [`offsets`] | where the fields lie |
//! | [`switch_view`] | what a switch reads and changes: one parser for kernel and hosts |
//! | [`checksum`] | Internet checksum, whole and incremental |
//! | [`flowcut`] | when Flowcut calls a path congested: one rule for hosts and switches |
//! | the others | one header each |
#![no_std]
// Without the checksum nothing parses or emits whole frames, and the codecs of single headers are unused.
#![cfg_attr(not(feature = "std"), expect(dead_code))]
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]

#[cfg(test)]
extern crate std;

mod ack;
mod body;
mod bytes;
pub mod checksum;
mod close;
mod data;
mod declare;
mod echoes;
mod envelope;
mod error;
mod ev;
pub mod flowcut;
#[cfg(feature = "std")]
pub mod frame;
mod handshake;
pub mod header;
mod kind;
mod nack;
pub mod offsets;
mod ports;
mod probe;
mod pull;
mod rekey;
#[cfg(feature = "std")]
mod sealed;
pub mod switch_view;
mod time;

#[cfg(test)]
#[cfg(feature = "std")]
mod tests;

pub use ack::{Ack, BITMAP_BITS};
pub use body::{Body, header_bytes};
pub use close::{Close, CloseReason, RESET_UNKNOWN_CONNECTION, Reset};
pub use data::{Data, Section};
pub use echoes::{Echoes, MAX_ECHOES};
pub use envelope::{Ecn, Envelope};
pub use error::Error;
pub use ev::{Ev, EvPort, MAX_EVS};
#[cfg(feature = "std")]
pub use frame::{Frame, emit, emit_in_place, parse, peek_packet, xxh3};
pub use handshake::{Accept, Connect, Retry, Terms};
pub use header::Common;
pub use kind::Kind;
pub use nack::Nack;
pub use ports::Ports;
pub use probe::{Probe, ProbeAck};
pub use pull::{Pull, PullRequest};
pub use rekey::{Rekey, RekeyMessage};
#[cfg(feature = "std")]
pub use sealed::{Seal, Sealed, emit_sealed, open, seal_bytes};
pub use time::Time;

/// Version of the layouts, first byte of every header of ours.
pub const VERSION: u8 = 1;
/// The first byte of a sealed frame (WIRE-18).
pub const VERSION_SEALED: u8 = 2;
/// Bytes that the seal adds behind our header. It has room for four more there.
pub const SEAL_BYTES: usize = 12;
/// Bytes that the seal adds behind a payload.
pub const TAG_BYTES: usize = 16;
/// DSCP of data frames that have no other (AF11).
pub const DSCP_DATA: u8 = 10;
/// The largest DSCP that data frames may have. From 44 on there are those of trimmed and control frames, and of the network's own control.
pub const MAX_DATA_DSCP: u8 = 43;
/// DSCP of everything but data: ACKs and the handshake go in the control class (EF).
pub const DSCP_CONTROL: u8 = 46;
/// DSCP that a switch gives to a control frame against the data of a flow whose sender must pause (`docs/specs/flowcut-switch.md`, FCS-5);
/// control class too (local use).
pub const DSCP_PAUSE: u8 = 45;
/// DSCP that a switch gives to a data frame whose payload it cut off; control class too (VOICE-ADMIT).
pub const DSCP_TRIMMED: u8 = 44;
/// DSCP of a data frame that the last port of its path trimmed, where that has one of its own; control class too (local use).
pub const DSCP_TRIMMED_LAST: u8 = 47;
/// TTL or hop limit of a frame as sent; every switch takes one off.
pub const INITIAL_TTL: u8 = 64;
