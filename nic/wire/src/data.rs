//! Data: a piece of a message, placed by its offset (WIRE-7).

use crate::Error;
use crate::body::Header;
use crate::bytes::{View, Writer, chunk, chunk_mut};
use crate::header::field::FLAGS;

pub(crate) mod field {
    pub const PSN: usize = 28;
    pub const TIMESTAMP: usize = 36;
    pub const MESSAGE: usize = 44;
    pub const OFFSET: usize = 48;
    pub const MESSAGE_BYTES: usize = 56;
    pub const PAYLOAD_BYTES: usize = 64;
    pub const SECTION: usize = 66;
    pub const PAYLOAD_CRC: usize = 68;
}

const ACK_NOW: u8 = 1;
const RETRANSMIT: u8 = 2;
const TRAILER: u8 = 4;

/// The header of a data frame; the payload follows it, unless a switch trimmed the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Packet sequence number in the connection, from 0; a retransmission keeps it.
    pub psn: u64,
    /// When the sender sent it, by its own clock, in picoseconds; echoed.
    pub timestamp_ps: u64,
    /// Message that the payload belongs to.
    pub message: u32,
    /// Where in the message the payload goes, in bytes.
    pub offset: u64,
    /// Length of the whole message, in bytes.
    pub message_bytes: u64,
    /// Length of the payload, in bytes; a trimmed frame keeps the number.
    pub payload_bytes: u16,
    /// The sender wants an ACK at once.
    pub ack_now: bool,
    /// The packet was sent before.
    pub retransmit: bool,
    /// The frame is no packet but a trailer: it has no payload, and says which packets went before it on its path (WIRE-7).
    pub trailer: bool,
    /// The packets that this one follows on one path, if its sender keeps any in order.
    pub section: Section,
}

/// The packets of a connection that went before this one on the same path (WIRE-7).
///
/// Subflow *s* of 2^*k* has the packets whose sequence numbers are *s* modulo 2^*k*. A *section* is a run of a subflow's packets
/// that went over one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Section(u16);

impl Section {
    /// Says nothing of what went before.
    pub const NONE: Self = Self(0);
    /// Most subflows that a receiver understands.
    pub const MAX_SUBFLOWS: u32 = 64;
    /// Most packets before this one that it can count; more count as so many.
    pub const MAX_BEHIND: u16 = 0x0fff;

    /// One of 2^`log2_subflows` subflows, and `behind` packets before this one in its section.
    #[inline]
    pub const fn new(log2_subflows: u8, behind: u16) -> Self {
        let behind = if behind < Self::MAX_BEHIND { behind } else { Self::MAX_BEHIND };
        Self((log2_subflows as u16 + 1) << 12 | behind)
    }

    /// The number of subflows, and of packets before this one in its section. `None` if it says nothing, or nothing that a
    /// receiver understands.
    #[inline]
    pub const fn get(self) -> Option<(u32, u16)> {
        let code = self.0 >> 12;
        if code == 0 || 1 << (code - 1) > Self::MAX_SUBFLOWS {
            return None;
        }
        Some((1 << (code - 1), self.0 & Self::MAX_BEHIND))
    }

    /// The field on the wire.
    #[inline]
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// From the field on the wire, of any value.
    #[inline]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
}

impl Header for Data {
    const BYTES: usize = 72;

    fn parse(header: &[u8]) -> Result<Self, Error> {
        let view = View(chunk::<{ Self::BYTES }>(header)?);
        let flags = view.u8::<FLAGS>();
        Ok(Self {
            psn: view.u64::<{ field::PSN }>(),
            timestamp_ps: view.u64::<{ field::TIMESTAMP }>(),
            message: view.u32::<{ field::MESSAGE }>(),
            offset: view.u64::<{ field::OFFSET }>(),
            message_bytes: view.u64::<{ field::MESSAGE_BYTES }>(),
            payload_bytes: view.u16::<{ field::PAYLOAD_BYTES }>(),
            ack_now: flags & ACK_NOW != 0,
            retransmit: flags & RETRANSMIT != 0,
            trailer: flags & TRAILER != 0,
            section: Section::from_bits(view.u16::<{ field::SECTION }>()),
        })
    }

    /// Write everything but the payload's CRC, which is left 0.
    fn emit(&self, header: &mut [u8]) -> Result<(), Error> {
        Writer(chunk_mut::<{ Self::BYTES }>(header)?)
            .u64::<{ field::PSN }>(self.psn)
            .u64::<{ field::TIMESTAMP }>(self.timestamp_ps)
            .u32::<{ field::MESSAGE }>(self.message)
            .u64::<{ field::OFFSET }>(self.offset)
            .u64::<{ field::MESSAGE_BYTES }>(self.message_bytes)
            .u16::<{ field::PAYLOAD_BYTES }>(self.payload_bytes)
            .u16::<{ field::SECTION }>(self.section.to_bits())
            .u32::<{ field::PAYLOAD_CRC }>(0);
        Ok(())
    }

    fn flags(&self) -> u8 {
        (if self.ack_now { ACK_NOW } else { 0 })
            | (if self.retransmit { RETRANSMIT } else { 0 })
            | (if self.trailer { TRAILER } else { 0 })
    }
}
