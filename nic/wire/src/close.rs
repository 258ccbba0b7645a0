//! Close and Reset: the two ends of a connection's life.

use crate::Error;
use crate::declare::{header, values};

/// [`Reset::reason`]: the receiver knows no connection of that number.
pub const RESET_UNKNOWN_CONNECTION: u32 = 0;

/// Why a connection ends; the value is the number on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum CloseReason {
    /// Everything was sent and acknowledged.
    #[default]
    Done = 0,
    /// The application gave up.
    Aborted = 1,
    /// The peer was silent for too long.
    Timeout = 2,
    /// The peer takes no (more) connections.
    Refused = 3,
    /// The keys of the two sides do not fit.
    Key = 4,
}

impl CloseReason {
    /// Return the reason with this number on the wire.
    pub const fn from_u32(value: u32) -> Option<Self> {
        Some(match value {
            0 => Self::Done,
            1 => Self::Aborted,
            2 => Self::Timeout,
            3 => Self::Refused,
            4 => Self::Key,
            _ => return None,
        })
    }
}

values! {
    CloseReason: u32, value => Self::from_u32(value).ok_or(Error::Value)?, value as u32;
}

header! {
    /// The end of a connection, or the acknowledgement of its end.
    Close, 32 bytes;
    /// Why.
    20 reason: CloseReason;
    /// Every packet of the peer's with a lower sequence number was received, as in an [`Ack`](crate::Ack).
    24 cumulative: u64;
    flags:
    /// This answers a Close of the peer's.
    1 acknowledgement;
}

//= docs/specs/wire.md#WIRE-17 resets
header! {
    /// The answer to a frame of an unknown connection, under the cookie of that frame (WIRE-17).
    Reset, 24 bytes;
    /// Why: [`RESET_UNKNOWN_CONNECTION`]; other numbers are for diagnosis only.
    20 reason: u32;
}
