//! What was seen of frames, for people: captures that Wireshark reads, and the life of chosen packets.
//!
//! Whoever sees a frame makes a [`Sighting`] of it and hands it to a [`Witness`], which writes a capture
//! ([`Capture`]), follows packets ([`Tracer`]), or does both. Nothing here is on the path of frames that nobody wants to see.
#![forbid(unsafe_code)]

mod pcapng;
mod sighting;
mod trace;
mod witness;

pub use pcapng::{Capture, Written};
pub use sighting::{Content, SNAP_BYTES, Sighting, Treatment};
pub use trace::{Life, Place, Row, Rows, Tracer};
pub use witness::{Shared, Witness};
