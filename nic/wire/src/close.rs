//! Close and Reset: the two ends of a connection's life.

use crate::Error;
use crate::body::Header;
use crate::bytes::{View, Writer, chunk, chunk_mut};
use crate::header::field::FLAGS;

mod field {
    pub const FINAL_PSN: usize = 28;
    pub const CLOSE_REASON: usize = 36;
    pub const RESET_REASON: usize = 28;
}

const ACKNOWLEDGEMENT: u8 = 1;

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
}

impl CloseReason {
    /// Return the reason with this number on the wire.
    pub const fn from_u32(value: u32) -> Option<Self> {
        Some(match value {
            0 => Self::Done,
            1 => Self::Aborted,
            2 => Self::Timeout,
            3 => Self::Refused,
            _ => return None,
        })
    }
}

/// The end of a connection, or the acknowledgement of its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Close {
    /// One past the last sequence number that the sender used.
    pub final_psn: u64,
    /// Why.
    pub reason: CloseReason,
    /// This answers a Close of the peer's.
    pub acknowledgement: bool,
}

impl Header for Close {
    const BYTES: usize = 40;

    fn parse(header: &[u8]) -> Result<Self, Error> {
        let view = View(chunk::<{ Self::BYTES }>(header)?);
        Ok(Self {
            final_psn: view.u64::<{ field::FINAL_PSN }>(),
            reason: CloseReason::from_u32(view.u32::<{ field::CLOSE_REASON }>()).ok_or(Error::Value)?,
            acknowledgement: view.u8::<FLAGS>() & ACKNOWLEDGEMENT != 0,
        })
    }

    fn emit(&self, header: &mut [u8]) -> Result<(), Error> {
        Writer(chunk_mut::<{ Self::BYTES }>(header)?).u64::<{ field::FINAL_PSN }>(self.final_psn).u32::<{
            field::CLOSE_REASON
        }>(
            self.reason as u32
        );
        Ok(())
    }

    fn flags(&self) -> u8 {
        if self.acknowledgement { ACKNOWLEDGEMENT } else { 0 }
    }
}

/// The answer to a frame of an unknown connection, under the cookie of that frame (WIRE-17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reset {
    /// Why: [`RESET_UNKNOWN_CONNECTION`]; other numbers are for diagnosis only.
    pub reason: u32,
}

impl Header for Reset {
    const BYTES: usize = 32;

    fn parse(header: &[u8]) -> Result<Self, Error> {
        Ok(Self { reason: View(chunk::<{ Self::BYTES }>(header)?).u32::<{ field::RESET_REASON }>() })
    }

    fn emit(&self, header: &mut [u8]) -> Result<(), Error> {
        Writer(chunk_mut::<{ Self::BYTES }>(header)?).u32::<{ field::RESET_REASON }>(self.reason);
        Ok(())
    }
}
