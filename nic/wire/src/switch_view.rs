//! What a switch sees and changes: byte offsets, constants, and edits in place.
//!
//! A switch touches ECN, DSCP, TTL, lengths, checksums and the virtual time, nothing else (WIRE-14), and it computes no
//! CRC. Everything here holds for frames that [`classify`] recognises: IPv4 without options, IPv6 without extension
//! headers. The constants are for the XDP program, which checks them against `data_end` itself; the functions over
//! slices are their reference. Offsets count from the first byte of the Ethernet header.

use crate::checksum::{fold, udp, update_u16, update_u64};
use crate::header::field;
use crate::{DSCP_TRIMMED, Kind, UDP_PORT, VERSION, header_bytes};

/// Bytes of the Ethernet header; VLAN tags are not ours.
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
    /// `u16`: header and payload, without Ethernet.
    pub const TOTAL_LENGTH: usize = 16;
    /// `u16`: flags and fragment offset.
    pub const FRAGMENT: usize = 20;
    /// Bits of [`FRAGMENT`] that are zero in a whole datagram: more-fragments and the offset.
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
    /// `u16`: version (4 bits), traffic class (8: DSCP, ECN), high bits of the flow label.
    pub const VERSION_CLASS: usize = 14;
    /// `u16`: payload, without the IPv6 header.
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

/// Offset of the UDP source port: the entropy value.
#[inline(always)]
pub const fn udp_src_port_offset(v6: bool) -> usize {
    udp_offset(v6)
}

/// Offset of the UDP destination port.
#[inline(always)]
pub const fn udp_dst_port_offset(v6: bool) -> usize {
    udp_offset(v6) + 2
}

/// Offset of the UDP length.
#[inline(always)]
pub const fn udp_length_offset(v6: bool) -> usize {
    udp_offset(v6) + 4
}

/// Offset of the UDP checksum.
#[inline(always)]
pub const fn udp_checksum_offset(v6: bool) -> usize {
    udp_offset(v6) + 6
}

/// Offset of our header.
#[inline(always)]
pub const fn udp_payload_offset(v6: bool) -> usize {
    udp_offset(v6) + UDP_BYTES
}

/// Offset of the version byte of our header.
#[inline(always)]
pub const fn version_offset(v6: bool) -> usize {
    udp_payload_offset(v6) + field::VERSION
}

/// Offset of the kind byte, see [`Kind`].
#[inline(always)]
pub const fn kind_offset(v6: bool) -> usize {
    udp_payload_offset(v6) + field::KIND
}

/// Offset of the `u64` virtual time.
#[inline(always)]
pub const fn virtual_time_offset(v6: bool) -> usize {
    udp_payload_offset(v6) + field::VIRTUAL_TIME
}

/// Bytes that a switch must see to handle any frame of ours: all headers up to the end of the common one.
#[inline(always)]
pub const fn min_len(v6: bool) -> usize {
    udp_payload_offset(v6) + crate::header::COMMON_BYTES
}

/// Length of a trimmed frame: Ethernet up to the end of the Data header.
#[inline(always)]
pub const fn trimmed_len(v6: bool) -> usize {
    header_bytes(v6, Kind::Data)
}

/// UDP length of a trimmed frame: UDP header and Data header.
pub const TRIMMED_UDP_LENGTH: u16 = (UDP_BYTES + Kind::Data.bytes()) as u16;
/// IPv4 total length of a trimmed frame.
pub const TRIMMED_V4_TOTAL_LENGTH: u16 = 20 + TRIMMED_UDP_LENGTH;
/// [`trimmed_len`] over IPv4, as a constant for array types.
pub const TRIMMED_LEN_V4: usize = trimmed_len(false);
/// [`trimmed_len`] over IPv6, as a constant for array types.
pub const TRIMMED_LEN_V6: usize = trimmed_len(true);

/// Return the UDP checksum of a trimmed IPv6 frame over its remaining bytes, as it is written into the frame.
///
/// `headers` is the frame after trimming, with its new UDP length; whatever its checksum field holds is left out. One
/// loop of 28 rounds, no panic.
#[inline(always)]
pub fn trimmed_udp_checksum_v6(headers: &[u8; TRIMMED_LEN_V6]) -> u16 {
    // Both addresses, the UDP header and ours lie in a row; the rest of the pseudo header are two small numbers.
    const { assert!((TRIMMED_LEN_V6 - v6::SRC).is_multiple_of(4)) }
    let mut sum = TRIMMED_UDP_LENGTH as u64 + PROTOCOL_UDP as u64;
    let (_, row) = headers.split_at(v6::SRC);
    for word in row.as_chunks::<4>().0 {
        sum += u32::from_be_bytes(*word) as u64;
    }
    const AT: usize = udp_checksum_offset(true);
    let old = u16::from_be_bytes([headers[AT], headers[AT + 1]]);
    // Adding the complement of a word takes it out of a ones' complement sum.
    udp(!fold(sum + !old as u64))
}

/// Return whether a frame is ours to handle, and if so whether it is IPv6: UDP to our port, whole, without IP options.
///
/// Looks no further than the UDP ports: version, lengths and checksums are [`parse`](crate::parse)'s business.
#[inline]
pub fn classify(frame: &[u8]) -> Option<bool> {
    let v6 = match u16_at(frame, ETHERTYPE)? {
        ETHERTYPE_V4 => {
            let plain = u8_at(frame, v4::VERSION_IHL)? == v4::VERSION_IHL_PLAIN
                && u16_at(frame, v4::FRAGMENT)? & v4::FRAGMENT_MASK == 0
                && u8_at(frame, v4::PROTOCOL)? == PROTOCOL_UDP;
            if !plain {
                return None;
            }
            false
        }
        ETHERTYPE_V6 => {
            let plain = u16_at(frame, v6::VERSION_CLASS)? >> 12 == 6 && u8_at(frame, v6::NEXT_HEADER)? == PROTOCOL_UDP;
            if !plain {
                return None;
            }
            true
        }
        _ => return None,
    };
    (u16_at(frame, udp_dst_port_offset(v6))? == UDP_PORT).then_some(v6)
}

/// Return the virtual time of a frame in picoseconds, or `None` if it is not ours or shorter than the common header.
///
/// Checks no CRC: a receiver may hold the frame until then, and parse it afterwards.
#[inline]
pub fn peek_virtual_time(frame: &[u8]) -> Option<u64> {
    let v6 = classify_version(frame)?;
    u64_at(frame, virtual_time_offset(v6))
}

/// Set the virtual time of a frame, in picoseconds, and keep its UDP checksum right; a frame that is not ours stays.
#[inline]
pub fn set_virtual_time(frame: &mut [u8], virtual_time_ps: u64) {
    let Some(v6) = classify_version(frame) else { return };
    let Some(old) = u64_at(frame, virtual_time_offset(v6)) else { return };
    let Some(checksum) = u16_at(frame, udp_checksum_offset(v6)) else { return };
    put(frame, virtual_time_offset(v6), virtual_time_ps.to_be_bytes());
    // 0 stands for "no checksum" and has to stay (WIRE-4).
    if checksum != 0 {
        put(frame, udp_checksum_offset(v6), udp(update_u64(checksum, old, virtual_time_ps)).to_be_bytes());
    }
}

/// Trim a data frame in place: cut DSCP, lengths and checksums to a header-only frame (WIRE-15). Returns its length, or
/// `None`, with the frame as it was, if it is no data frame or has no payload.
pub fn trim(frame: &mut [u8]) -> Option<usize> {
    let v6 = classify_version(frame)?;
    let len = trimmed_len(v6);
    if u8_at(frame, kind_offset(v6))? != Kind::Data as u8 || frame.len() <= len {
        return None;
    }
    if v6 { trim_v6(frame) } else { trim_v4(frame) }?;
    Some(len)
}

fn trim_v4(frame: &mut [u8]) -> Option<()> {
    let tos = u16_at(frame, v4::VERSION_IHL)?;
    let new_tos = tos & !0xfc | (DSCP_TRIMMED as u16) << 2;
    let length = u16_at(frame, v4::TOTAL_LENGTH)?;
    let checksum = update_u16(u16_at(frame, v4::CHECKSUM)?, tos, new_tos);
    let checksum = update_u16(checksum, length, TRIMMED_V4_TOTAL_LENGTH);
    put(frame, v4::VERSION_IHL, new_tos.to_be_bytes());
    put(frame, v4::TOTAL_LENGTH, TRIMMED_V4_TOTAL_LENGTH.to_be_bytes());
    put(frame, v4::CHECKSUM, checksum.to_be_bytes());
    put(frame, udp_length_offset(false), TRIMMED_UDP_LENGTH.to_be_bytes());
    put(frame, udp_checksum_offset(false), [0, 0]);
    Some(())
}

fn trim_v6(frame: &mut [u8]) -> Option<()> {
    let class = u16_at(frame, v6::VERSION_CLASS)?;
    put(frame, v6::VERSION_CLASS, (class & !0x0fc0 | (DSCP_TRIMMED as u16) << 6).to_be_bytes());
    put(frame, v6::PAYLOAD_LENGTH, TRIMMED_UDP_LENGTH.to_be_bytes());
    put(frame, udp_length_offset(true), TRIMMED_UDP_LENGTH.to_be_bytes());
    let checksum = trimmed_udp_checksum_v6(frame.first_chunk()?);
    put(frame, udp_checksum_offset(true), checksum.to_be_bytes());
    Some(())
}

#[inline]
fn classify_version(frame: &[u8]) -> Option<bool> {
    let v6 = classify(frame)?;
    (frame.len() >= min_len(v6) && u8_at(frame, version_offset(v6))? == VERSION).then_some(v6)
}

#[inline(always)]
pub(crate) fn u8_at(frame: &[u8], at: usize) -> Option<u8> {
    frame.get(at).copied()
}

#[inline(always)]
pub(crate) fn u16_at(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

#[inline(always)]
fn u64_at(frame: &[u8], at: usize) -> Option<u64> {
    frame.get(at..)?.first_chunk().copied().map(u64::from_be_bytes)
}

/// Write at an offset; does nothing if the frame is too short.
#[inline(always)]
fn put<const N: usize>(frame: &mut [u8], at: usize, bytes: [u8; N]) {
    if let Some(field) = frame.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *field = bytes;
    }
}
