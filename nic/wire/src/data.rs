//! Data: a piece of a message, placed by its offset (WIRE-7).

use crate::Time;
use crate::declare::{header, values};

/// Offset of the packet's number. An Ack has its own, of all that arrived, in the same place.
pub(crate) const PSN: usize = 24;
/// Offset of the payload's checksum, a `u32`. It is sent as 0 until the payload is known.
pub(crate) const PAYLOAD_CHECKSUM: usize = 60;

values! {
    Section: u16, value => Self::from_bits(value), value.to_bits();
}

//= docs/specs/wire.md#WIRE-7 data
header! {
    /// The header of a data frame; the payload follows it, unless a switch trimmed the frame.
    Data, 64 bytes;
    /// Message that the payload belongs to.
    20 message: u32;
    /// Packet sequence number in the connection, from 0; a retransmission keeps it.
    24 psn: u64;
    /// When the sender sent it, by its own clock; echoed.
    32 timestamp: Time;
    /// Where in the message the payload goes, in bytes.
    40 offset: u64;
    /// Length of the whole message, in bytes.
    48 message_bytes: u64;
    /// Length of the payload, in bytes; a trimmed frame keeps the number.
    56 payload_bytes: u16;
    /// The packets that this one follows on one path, if its sender keeps any in order.
    58 section: Section;
    flags:
    /// The sender wants an ACK at once.
    1 ack_now;
    /// The packet was sent before.
    2 retransmit;
    /// The frame is no packet but a trailer: it has no payload, and says which packets went before it on its path (WIRE-7).
    4 trailer;
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
