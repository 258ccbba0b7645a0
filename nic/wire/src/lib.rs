//! Frame layouts of the spray transport: checked views and builders, `no_std`.
//!
//! A frame is Ethernet, IPv4 or IPv6, UDP to one of a receiver's [`Ports`], then a spray header:
//! the 20 bytes of [`header`], then fields by kind ([`Body`]). Only [`Data`] has a payload.
//! `docs/specs/wire.md` states layouts and acceptance rules as numbered clauses (`WIRE-n`).
//!
//! | module | content |
//! |---|---|
//! | [`frame`] | whole frames: [`parse`], [`emit`], [`emit_in_place`] (feature `std`) |
//! | `sealed` | the same for sealed (encrypted, authenticated) frames: [`open`], [`emit_sealed`] |
//! | [`offsets`] | byte offsets of the fields |
//! | [`switch_view`] | what a switch reads and changes: one parser for kernel and hosts |
//! | [`checksum`] | Internet checksum, whole and incremental |
//! | [`flowcut`] | the congestion rule of Flowcut, shared by hosts and switches |
//! | the others | one header each |
#![no_std]
// Without the checksum whole frames are not parsed or emitted, and header codecs are unused.
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

/// Version of the layouts: the first byte of every spray header that is not sealed.
pub const VERSION: u8 = 1;
/// The first byte of a sealed frame (WIRE-18).
pub const VERSION_SEALED: u8 = 2;
/// Bytes of the tag behind a sealed header; the other four replace its checksum.
pub const SEAL_BYTES: usize = 12;
/// Bytes of the tag behind an encrypted payload.
pub const TAG_BYTES: usize = 16;
/// Default DSCP of data frames (AF11).
pub const DSCP_DATA: u8 = 10;
/// The largest DSCP allowed for data frames: from 44 on are trimmed, control and network control.
pub const MAX_DATA_DSCP: u8 = 43;
/// DSCP of all frames but data: the control class (EF).
pub const DSCP_CONTROL: u8 = 46;
/// DSCP that a switch sets on a control frame to pause the flow's sender (FCS-5); control class.
pub const DSCP_PAUSE: u8 = 45;
/// DSCP that a switch sets on a data frame that it trims; control class (VOICE-ADMIT).
pub const DSCP_TRIMMED: u8 = 44;
/// DSCP of a data frame trimmed at the last port of its path, if distinguished; control class.
pub const DSCP_TRIMMED_LAST: u8 = 47;
/// TTL or hop limit of a frame as sent; every switch decrements it.
pub const INITIAL_TTL: u8 = 64;
