//! Data: a segment of a message (WIRE-7).

use crate::Time;
use crate::declare::{header, values};

/// Offset of the packet number. An Ack has its cumulative one at the same offset.
pub(crate) const PSN: usize = 24;
/// Offset of the payload's checksum, a `u32`, sent as 0 until the payload is known.
pub(crate) const PAYLOAD_CHECKSUM: usize = 60;

values! {
    Section: u16, value => Self::from_bits(value), value.to_bits();
}

//= docs/specs/wire.md#WIRE-7 data
header! {
    /// The header of a data frame. The payload follows it, unless a switch trimmed the frame.
    Data, 64 bytes;
    /// Message number.
    20 message: u32;
    /// Packet sequence number in the connection, from 0; kept by a retransmission.
    24 psn: u64;
    /// Send time by the sender's clock; echoed.
    32 timestamp: Time;
    /// Offset of the payload in the message, in bytes.
    40 offset: u64;
    /// Length of the whole message, in bytes.
    48 message_bytes: u64;
    /// Length of the payload, in bytes, before trimming.
    56 payload_bytes: u16;
    /// Position in a sequence of packets on one path, if the sender keeps any in order.
    58 section: Section;
    flags:
    /// Requests an immediate ACK.
    1 ack_now;
    /// The packet is a retransmission.
    2 retransmit;
    /// A trailer: no packet and no payload, only the [`Section`] that preceded it (WIRE-7).
    4 trailer;
}

/// The number of packets that preceded this one on the same path (WIRE-7).
///
/// Subflow *s* of 2^*k* has the packets with sequence numbers that are *s* modulo 2^*k*. A
/// *section* is a run of a subflow's packets on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Section(u16);

impl Section {
    /// No information.
    pub const NONE: Self = Self(0);
    /// The maximum number of subflows that a receiver supports.
    pub const MAX_SUBFLOWS: u32 = 64;
    /// The largest count of preceding packets; higher counts are clamped to it.
    pub const MAX_BEHIND: u16 = 0x0fff;

    /// Creates the field for 2^`log2_subflows` subflows and `behind` preceding packets.
    #[inline]
    pub const fn new(log2_subflows: u8, behind: u16) -> Self {
        let behind = if behind < Self::MAX_BEHIND { behind } else { Self::MAX_BEHIND };
        Self((log2_subflows as u16 + 1) << 12 | behind)
    }

    /// Returns the number of subflows, and of preceding packets in the section. `None` without
    /// information or if the number of subflows is not supported.
    #[inline]
    pub const fn get(self) -> Option<(u32, u16)> {
        let code = self.0 >> 12;
        if code == 0 || 1 << (code - 1) > Self::MAX_SUBFLOWS {
            return None;
        }
        Some((1 << (code - 1), self.0 & Self::MAX_BEHIND))
    }

    /// Returns the field on the wire.
    #[inline]
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// Creates the field from its bits on the wire, of any value.
    #[inline]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
}
