//! Observed frames, for people: captures for Wireshark, and the life of chosen packets.
//!
//! An [`Observer`] takes a [`FrameRecord`] of each frame. It writes a capture ([`Capture`]), follows
//! packets ([`Tracer`]), or both. Without observers nothing here runs.
#![forbid(unsafe_code)]

mod observer;
mod pcapng;
mod record;
mod trace;

pub use observer::{Observer, ObserverState};
pub use pcapng::{Capture, CaptureStats};
pub use record::{Content, FrameRecord, PortAction, SNAP_BYTES};
pub use trace::{PacketEvent, Row, Rows, TapPoint, Tracer};
