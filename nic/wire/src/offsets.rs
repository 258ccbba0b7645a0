//! Offsets of the fields that switches and hosts read, in bytes from the Ethernet header.
//!
//! They hold for IPv4 without options and IPv6 without extension headers, hence for every frame
//! that [`classify`](crate::switch_view::classify) accepts.

use crate::Kind;
use crate::header::field;

/// Bytes of the Ethernet header, without VLAN tag.
pub const ETHERNET_BYTES: usize = 14;
/// Offset of the `u16` EtherType.
pub const ETHERTYPE: usize = 12;
/// EtherType of IPv4.
pub const ETHERTYPE_V4: u16 = 0x0800;
/// EtherType of IPv6.
pub const ETHERTYPE_V6: u16 = 0x86dd;
/// IP protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;
/// Bytes of the UDP header.
pub const UDP_BYTES: usize = 8;

/// Offsets in an IPv4 frame.
pub mod v4 {
    /// `u8`: version and header length.
    pub const VERSION_IHL: usize = 14;
    /// [`VERSION_IHL`] of a header without options.
    pub const VERSION_IHL_PLAIN: u8 = 0x45;
    /// `u8`: DSCP in the six high bits, ECN in the two low ones.
    pub const TOS: usize = 15;
    /// `u16`: bytes of header and payload.
    pub const TOTAL_LENGTH: usize = 16;
    /// `u16`: flags and fragment offset.
    pub const FRAGMENT: usize = 20;
    /// Bits of [`FRAGMENT`] that are zero in an unfragmented datagram.
    pub const FRAGMENT_MASK: u16 = 0x3fff;
    /// `u8`.
    pub const TTL: usize = 22;
    /// `u8`.
    pub const PROTOCOL: usize = 23;
    /// `u16`: header checksum.
    pub const CHECKSUM: usize = 24;
    /// Source address, 4 bytes.
    pub const SRC: usize = 26;
    /// Destination address, 4 bytes.
    pub const DST: usize = 30;
    /// The UDP header.
    pub const UDP: usize = 34;
}

/// Offsets in an IPv6 frame.
pub mod v6 {
    /// `u16`: version (4 bits), traffic class (8: DSCP, ECN), high bits of the flow label (4).
    pub const VERSION_CLASS: usize = 14;
    /// `u16`: low bits of the flow label.
    pub const LABEL: usize = 16;
    /// `u16`: bytes of the payload, extension headers included.
    pub const PAYLOAD_LENGTH: usize = 18;
    /// `u8`.
    pub const NEXT_HEADER: usize = 20;
    /// `u8`.
    pub const HOP_LIMIT: usize = 21;
    /// Source address, 16 bytes.
    pub const SRC: usize = 22;
    /// Destination address, 16 bytes.
    pub const DST: usize = 38;
    /// The UDP header.
    pub const UDP: usize = 54;
}

/// Offset of the UDP header.
#[inline(always)]
pub const fn udp_offset(v6: bool) -> usize {
    if v6 { v6::UDP } else { v4::UDP }
}

macro_rules! offsets {
    ($($(#[$about:meta])* $name:ident = $base:ident + $more:expr;)+) => {
        $(
            $(#[$about])*
            #[inline(always)]
            pub const fn $name(v6: bool) -> usize {
                $base(v6) + $more
            }
        )+
    };
}

offsets! {
    /// Offset of the UDP source port, which encodes the entropy value.
    udp_src_port_offset = udp_offset + 0;
    /// Offset of the UDP destination port.
    udp_dst_port_offset = udp_offset + 2;
    /// Offset of the UDP length.
    udp_length_offset = udp_offset + 4;
    /// Offset of the UDP checksum.
    udp_checksum_offset = udp_offset + 6;
    /// Offset of the spray header.
    udp_payload_offset = udp_offset + UDP_BYTES;
    /// Offset of its version byte.
    version_offset = udp_payload_offset + field::VERSION;
    /// Offset of its kind byte, see [`Kind`].
    kind_offset = udp_payload_offset + field::KIND;
    /// Offset of its flags byte.
    flags_offset = udp_payload_offset + field::FLAGS;
    /// Bytes of the shortest spray frame: all headers up to the end of the common one.
    min_len = udp_payload_offset + crate::header::COMMON_BYTES;
    /// Bytes of a trimmed frame, Data header included. A sealed one keeps
    /// [`SEAL_BYTES`](crate::SEAL_BYTES) more.
    trimmed_len = udp_payload_offset + Kind::Data.bytes();
}

/// UDP length of a trimmed frame. A sealed one keeps [`SEAL_BYTES`](crate::SEAL_BYTES) more.
pub const TRIMMED_UDP_LENGTH: u16 = (UDP_BYTES + Kind::Data.bytes()) as u16;
