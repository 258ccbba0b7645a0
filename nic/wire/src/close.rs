//! Close and Reset, which end a connection.

use crate::Error;
use crate::declare::{header, values};

/// [`Reset::reason`]: the receiver has no connection with that number.
pub const RESET_UNKNOWN_CONNECTION: u32 = 0;

/// Why a connection ends; the value is the number on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum CloseReason {
    /// All data was sent and acknowledged.
    #[default]
    Done = 0,
    /// The application aborted.
    Aborted = 1,
    /// The peer timed out.
    Timeout = 2,
    /// The peer accepts no (more) connections.
    Refused = 3,
    /// The keys of the two sides do not match.
    Key = 4,
}

impl CloseReason {
    /// Returns the reason with this number on the wire.
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
    /// Closes a connection, or acknowledges a Close.
    Close, 32 bytes;
    /// Why.
    20 reason: CloseReason;
    /// Every packet with a lower sequence number was received, as in an [`Ack`](crate::Ack).
    24 cumulative: u64;
    flags:
    /// Acknowledges the peer's Close.
    1 acknowledgement;
}

//= docs/specs/wire.md#WIRE-17 resets
header! {
    /// Answers a frame of an unknown connection, with that frame's cookie (WIRE-17).
    Reset, 24 bytes;
    /// Why: [`RESET_UNKNOWN_CONNECTION`]; other numbers are for diagnosis only.
    20 reason: u32;
}
