//! Observed frames, for people: captures for Wireshark, and the life of chosen packets.
//!
//! An observer passes a [`Sighting`] of each frame to a [`Witness`], which writes a capture
//! ([`Capture`]), follows packets ([`Tracer`]), or both. Without observers nothing here runs.
#![forbid(unsafe_code)]

mod pcapng;
mod sighting;
mod trace;
mod witness;

pub use pcapng::{Capture, Written};
pub use sighting::{Content, SNAP_BYTES, Sighting, Treatment};
pub use trace::{Life, Place, Row, Rows, Tracer};
pub use witness::{Shared, Witness};
