//! What a switch reads and changes of a frame: one parser for XDP programs and hosts.
//!
//! A switch changes ECN, DSCP, TTL, lengths and checksums only (WIRE-14), and verifies no checksum
//! of the spray header. Functions are generic over [`Packet`]: hosts pass a slice, the XDP program
//! a frame with bounds checks for the verifier. Nothing panics, and no loop depends on the frame.
//! Packet path: R3 of `docs/architecture.md`.

mod addressee;
mod any;
mod neighbour;
mod words;

pub use self::addressee::{Addressee, addressed_to, addressee};
pub use self::any::{parse_foreign, write_foreign};
pub use self::neighbour::{neighbour_of, source_of};
use self::words::{put, u8_at, u16_at, u32_at, u32_ne, u64_at, u64_le, u64_ne};
use crate::checksum::{fold, udp as nonzero, update_u16};
use crate::header::field;
use crate::offsets::{self as at, v4, v6};
use crate::{DSCP_CONTROL, DSCP_PAUSE, DSCP_TRIMMED, Kind, Ports, SEAL_BYTES, VERSION, VERSION_SEALED};

/// A frame in memory with checked bounds.
pub trait Packet {
    /// Returns the bytes of the whole Ethernet frame.
    fn frame_bytes(&self) -> u32;
    /// Returns the first `N` bytes, or `None` if the frame is shorter.
    fn head<const N: usize>(&self) -> Option<&[u8; N]>;
    /// Returns the first `N` bytes to write to, or `None` if the frame is shorter.
    fn head_mut<const N: usize>(&mut self) -> Option<&mut [u8; N]>;
}

impl Packet for [u8] {
    #[inline(always)]
    fn frame_bytes(&self) -> u32 {
        self.len() as u32
    }
    #[inline(always)]
    fn head<const N: usize>(&self) -> Option<&[u8; N]> {
        self.first_chunk()
    }
    #[inline(always)]
    fn head_mut<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        self.first_chunk_mut()
    }
}

impl<P: Packet + ?Sized> Packet for &mut P {
    #[inline(always)]
    fn frame_bytes(&self) -> u32 {
        (**self).frame_bytes()
    }
    #[inline(always)]
    fn head<const N: usize>(&self) -> Option<&[u8; N]> {
        (**self).head()
    }
    #[inline(always)]
    fn head_mut<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        (**self).head_mut()
    }
}

/// An IP address as two words in memory order; IPv4 is mapped into IPv6.
pub type Address = [u64; 2];

/// Converts an address of 16 bytes to words; IPv4 must be mapped into IPv6.
pub fn address_words(address: [u8; 16]) -> Address {
    let (words, _) = address.as_chunks::<8>();
    core::array::from_fn(|at| words.get(at).map_or(0, |word| u64::from_ne_bytes(*word)))
}

/// What a switch reads of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Whether the frame is IPv6.
    pub v6: bool,
    /// Destination address.
    pub destination: Address,
    /// Both addresses in 64 bits, see [`addresses_v4`] and [`addresses_v6`].
    pub addresses: u64,
    /// UDP source port in the high half, destination port in the low half.
    pub ports: u32,
    /// Flow label; 0 over IPv4.
    pub label: u32,
    /// Checksum of the spray header, or the first bytes of its tag.
    pub checksum: u32,
    /// Bytes of the Ethernet frame.
    pub bytes: u32,
    /// TTL or hop limit.
    pub ttl: u8,
    /// ECN bits.
    pub ecn: u8,
    /// DSCP.
    pub dscp: u8,
    /// Bytes that remain after trimming a Data with payload; 0 of every other frame.
    pub trimmed_len: u32,
}

/// The fields of Data and Ack that a switch with per-packet state reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketFields {
    /// Packet number of a Data, cumulative acknowledgement of an Ack.
    pub number: u64,
    /// Send time of the packet, or of the one that triggered the Ack, in ps by its sender's clock.
    pub stamp_ps: u64,
    /// Hop count in an Ack.
    pub hops: u8,
    /// Whether the frame acknowledges a packet that was not trimmed.
    pub is_ack: bool,
}

/// Reads the fields of Data and Ack; the default for other kinds and for frames that are too short.
#[inline(always)]
pub fn packet_fields(packet: &(impl Packet + ?Sized), v6: bool) -> PacketFields {
    let fields = if v6 {
        packet.head::<{ V6_HEADERS + FIELDS_END }>().map(|head| fields(head, true))
    } else {
        packet.head::<{ V4_HEADERS + FIELDS_END }>().map(|head| fields(head, false))
    };
    fields.unwrap_or_default()
}

const STAMP_AT: usize = crate::data::PSN + 8;
const FIELDS_END: usize = STAMP_AT + 8;

#[inline(always)]
fn fields<const N: usize>(head: &[u8; N], v6: bool) -> PacketFields {
    let (ours, kind) = (at::udp_payload_offset(v6), u8_at(head, at::kind_offset(v6)));
    let is_ack = kind == Kind::Ack as u8;
    if !is_ack && kind != Kind::Data as u8 {
        return PacketFields::default();
    }
    let hops = if is_ack { u8_at(head, ours + crate::ack::HOPS) } else { 0 };
    //= docs/specs/flowcut-switch.md#FCS-4 acknowledged packets
    let is_ack = is_ack && u8_at(head, at::flags_offset(v6)) & 1 == 0;
    PacketFields {
        number: u64_at(head, ours + crate::data::PSN),
        // A timestamp counts steps of `Time`. The product wraps after 213 days.
        stamp_ps: u64_at(head, ours + STAMP_AT).wrapping_mul(crate::Time::STEP_PS),
        hops,
        is_ack,
    }
}

/// The result of [`parse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A frame of another protocol, port or version.
    Foreign,
    /// A spray frame with contradictory lengths.
    Malformed,
    /// A spray frame.
    Ours(Headers),
}

/// What a switch writes into a frame that it forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changes {
    /// TTL or hop limit.
    pub ttl: u8,
    /// ECN bits.
    pub ecn: u8,
    /// Sets [`DSCP_PAUSE`] on a control frame (else [`DSCP_CONTROL`]): the flow's sender must
    /// pause.
    pub pause: bool,
}

const V4_HEADERS: usize = at::udp_payload_offset(false);
const V6_HEADERS: usize = at::udp_payload_offset(true);
const V4_LEAST: usize = at::min_len(false);
const V6_LEAST: usize = at::min_len(true);

/// Returns `None` unless a frame is spray's (unfragmented UDP to one of `ports`, without IP
/// options), else whether it is IPv6. Version, lengths and checksums are checked by [`parse`] and
/// [`crate::parse`].
//= docs/specs/wire.md#WIRE-2 classification
#[inline(always)]
pub fn classify(packet: &(impl Packet + ?Sized), ports: Ports) -> Option<bool> {
    let (v6, port) = udp_port(packet)?;
    ports.contain(port).then_some(v6)
}

/// Returns IP version (IPv6 or not) and destination port of an unfragmented UDP datagram.
#[inline(always)]
pub fn udp_port(packet: &(impl Packet + ?Sized)) -> Option<(bool, u16)> {
    let head = packet.head::<V4_HEADERS>()?;
    match u16_at(head, at::ETHERTYPE) {
        at::ETHERTYPE_V4 => is_udp_v4(head).then(|| (false, u16_at(head, at::udp_dst_port_offset(false)))),
        at::ETHERTYPE_V6 => {
            let head = packet.head::<V6_HEADERS>()?;
            is_udp_v6(head).then(|| (true, u16_at(head, at::udp_dst_port_offset(true))))
        }
        _ => None,
    }
}

#[inline(always)]
fn is_udp_v4(head: &[u8; V4_HEADERS]) -> bool {
    head[v4::VERSION_IHL] == v4::VERSION_IHL_PLAIN
        && head[v4::PROTOCOL] == at::PROTOCOL_UDP
        && u16_at(head, v4::FRAGMENT) & v4::FRAGMENT_MASK == 0
}

#[inline(always)]
fn is_udp_v6(head: &[u8; V6_HEADERS]) -> bool {
    head[v6::VERSION_CLASS] >> 4 == 6 && head[v6::NEXT_HEADER] == at::PROTOCOL_UDP
}

/// Parses a frame as a switch does.
#[inline(always)]
pub fn parse(packet: &(impl Packet + ?Sized), ports: Ports) -> Parsed {
    let bytes = packet.frame_bytes();
    match classify(packet, ports) {
        None => Parsed::Foreign,
        Some(false) => packet.head().map_or(Parsed::Malformed, |head| parse_v4(head, bytes)),
        Some(true) => packet.head().map_or(Parsed::Malformed, |head| parse_v6(head, bytes)),
    }
}

#[inline(always)]
fn parse_v4(head: &[u8; V4_LEAST], bytes: u32) -> Parsed {
    let total = u32::from(u16_at(head, v4::TOTAL_LENGTH));
    let lengths = Lengths { datagram: total.wrapping_sub(20), end: total + at::ETHERNET_BYTES as u32, bytes };
    let trimmed_len = match trimmed_len(head, false, &lengths) {
        Ok(len) => len,
        Err(other) => return other,
    };
    headers(head, false, bytes, trimmed_len, &Ip::v4(head))
}

#[inline(always)]
fn parse_v6(head: &[u8; V6_LEAST], bytes: u32) -> Parsed {
    let payload = u32::from(u16_at(head, v6::PAYLOAD_LENGTH));
    let lengths = Lengths { datagram: payload, end: payload + v6::UDP as u32, bytes };
    let trimmed_len = match trimmed_len(head, true, &lengths) {
        Ok(len) => len,
        Err(other) => return other,
    };
    headers(head, true, bytes, trimmed_len, &Ip::v6(head))
}

/// Lengths of a frame: from the IP header, and received.
struct Lengths {
    /// Bytes of the UDP header and its payload.
    datagram: u32,
    /// Offset in the frame at which the IP packet ends.
    end: u32,
    /// Bytes of the Ethernet frame.
    bytes: u32,
}

/// Checks version and lengths. Returns [`Headers::trimmed_len`], or the result of [`parse`].
#[inline(always)]
fn trimmed_len<const N: usize>(head: &[u8; N], v6: bool, lengths: &Lengths) -> Result<u32, Parsed> {
    // The two versions are consecutive numbers.
    let seals = u8_at(head, at::version_offset(v6)).wrapping_sub(VERSION);
    if seals > VERSION_SEALED - VERSION {
        return Err(Parsed::Foreign);
    }
    let data = u8_at(head, at::kind_offset(v6)) == Kind::Data as u8;
    let header = if data { u32::from(at::TRIMMED_UDP_LENGTH) } else { (at::min_len(v6) - at::udp_offset(v6)) as u32 };
    let least = header + u32::from(seals) * SEAL_BYTES as u32;
    let udp_length = u32::from(u16_at(head, at::udp_length_offset(v6)));
    if udp_length != lengths.datagram || udp_length < least || lengths.end > lengths.bytes {
        return Err(Parsed::Malformed);
    }
    Ok(if data && udp_length > least { at::udp_offset(v6) as u32 + least } else { 0 })
}

/// Fields of an IP header.
struct Ip {
    class: u8,
    ttl: u8,
    destination: Address,
    addresses: u64,
    label: u32,
}

impl Ip {
    #[inline(always)]
    fn v4<const N: usize>(head: &[u8; N]) -> Self {
        let address = u32_ne(head, v4::DST).to_ne_bytes();
        Self {
            class: head[v4::TOS],
            ttl: head[v4::TTL],
            destination: [0, u64::from_ne_bytes([0, 0, 0xff, 0xff, address[0], address[1], address[2], address[3]])],
            addresses: u64_le(head, v4::SRC),
            label: 0,
        }
    }

    #[inline(always)]
    fn v6<const N: usize>(head: &[u8; N]) -> Self {
        Self {
            class: (u16_at(head, v6::VERSION_CLASS) >> 4) as u8,
            ttl: head[v6::HOP_LIMIT],
            destination: [u64_ne(head, v6::DST), u64_ne(head, v6::DST + 8)],
            addresses: addresses_v6(
                [u64_le(head, v6::SRC), u64_le(head, v6::SRC + 8)],
                [u64_le(head, v6::DST), u64_le(head, v6::DST + 8)],
            ),
            label: u32_at(head, v6::VERSION_CLASS) & 0xf_ffff,
        }
    }
}

#[inline(always)]
fn headers<const N: usize>(head: &[u8; N], v6: bool, bytes: u32, trimmed_len: u32, ip: &Ip) -> Parsed {
    Parsed::Ours(Headers {
        v6,
        destination: ip.destination,
        addresses: ip.addresses,
        ports: u32_at(head, at::udp_src_port_offset(v6)),
        label: ip.label,
        checksum: u32_at(head, at::udp_payload_offset(v6) + field::HEADER_CHECKSUM),
        bytes,
        ttl: ip.ttl,
        ecn: ip.class & 3,
        dscp: ip.class >> 2,
        trimmed_len,
    })
}

/// Returns two IPv4 addresses as one little-endian number, source first.
pub const fn addresses_v4(source: [u8; 4], destination: [u8; 4]) -> u64 {
    (u32::from_le_bytes(destination) as u64) << 32 | u32::from_le_bytes(source) as u64
}

/// Returns two IPv6 addresses, each given as two little-endian words, in the form of IPv4's: each
/// is the exclusive or of its four 32-bit words, as switches fold them for hashing.
#[inline(always)]
pub const fn addresses_v6(source: [u64; 2], destination: [u64; 2]) -> u64 {
    let (source, destination) = (source[0] ^ source[1], destination[0] ^ destination[1]);
    (destination ^ destination >> 32) << 32 | (source ^ source >> 32) & 0xffff_ffff
}

/// Writes the changes into a frame that [`parse`] accepted, and updates its checksums. Returns
/// `None` only if the frame is too short, which [`parse`] excludes.
//= docs/specs/wire.md#WIRE-14 changes by a switch
//= docs/specs/switch.md#SW-14 checksums
#[inline(always)]
pub fn write(packet: &mut (impl Packet + ?Sized), v6: bool, changes: &Changes) -> Option<()> {
    if v6 {
        let head = packet.head_mut::<V6_LEAST>()?;
        put_life_v6(head, changes, true);
    } else {
        let head = packet.head_mut::<V4_LEAST>()?;
        put_life_v4(head, changes, true);
    }
    Some(())
}

/// Returns the traffic class of a frame with the changes.
#[inline(always)]
fn class(old: u8, changes: &Changes, ours: bool) -> u8 {
    let dscp = match old >> 2 {
        DSCP_CONTROL | DSCP_PAUSE if ours && changes.pause => DSCP_PAUSE,
        DSCP_CONTROL | DSCP_PAUSE if ours => DSCP_CONTROL,
        other => other,
    };
    dscp << 2 | changes.ecn & 3
}

#[inline(always)]
fn put_life_v6<const N: usize>(head: &mut [u8; N], changes: &Changes, ours: bool) {
    let word = u16_at(head, v6::VERSION_CLASS);
    put(head, v6::VERSION_CLASS, word & 0xf00f | u16::from(class((word >> 4) as u8, changes, ours)) << 4);
    head[v6::HOP_LIMIT] = changes.ttl;
}

#[inline(always)]
fn put_life_v4<const N: usize>(head: &mut [u8; N], changes: &Changes, ours: bool) {
    let (word, life) = (u16_at(head, v4::VERSION_IHL), u16_at(head, v4::TTL));
    let new_word = word & 0xff00 | u16::from(class(word as u8, changes, ours));
    let new_life = life & 0xff | u16::from(changes.ttl) << 8;
    let checksum = update_u16(update_u16(u16_at(head, v4::CHECKSUM), word, new_word), life, new_life);
    put(head, v4::VERSION_IHL, new_word);
    put(head, v4::TTL, new_life);
    put(head, v4::CHECKSUM, checksum);
}

/// Trims a Data to its header: sets `dscp`, lengths and checksums (WIRE-15). Returns the bytes to
/// truncate the frame to, or `None` if it is too short.
///
/// `bytes` is [`Headers::trimmed_len`], and `dscp` one of those of trimmed frames.
//= docs/specs/wire.md#WIRE-15 trimming
//= docs/specs/switch.md#SW-14 checksums
#[inline(always)]
pub fn cut(packet: &mut (impl Packet + ?Sized), v6: bool, dscp: u8, bytes: u32) -> Option<u32> {
    if v6 {
        let tail = if bytes as usize > at::trimmed_len(true) { seal_sum(packet.head()?) } else { 0 };
        cut_v6(packet.head_mut()?, dscp, bytes as u16, tail);
    } else {
        cut_v4(packet.head_mut()?, dscp, bytes as u16);
    }
    Some(bytes)
}

#[inline(always)]
fn cut_v4(head: &mut [u8; at::trimmed_len(false)], dscp: u8, bytes: u16) {
    let (class, length) = (u16_at(head, v4::VERSION_IHL), u16_at(head, v4::TOTAL_LENGTH));
    let (new_class, new_length) = (class & !0xfc | u16::from(dscp) << 2, bytes - at::ETHERNET_BYTES as u16);
    let checksum = update_u16(u16_at(head, v4::CHECKSUM), class, new_class);
    put(head, v4::CHECKSUM, update_u16(checksum, length, new_length));
    put(head, v4::VERSION_IHL, new_class);
    put(head, v4::TOTAL_LENGTH, new_length);
    put(head, at::udp_length_offset(false), bytes - v4::UDP as u16);
    put(head, at::udp_checksum_offset(false), 0);
}

/// Trims a frame to `bytes`; `tail` is the sum of the bytes that remain after the Data header.
#[inline(always)]
fn cut_v6(head: &mut [u8; at::trimmed_len(true)], dscp: u8, bytes: u16, tail: u64) {
    let (class, udp_length) = (u16_at(head, v6::VERSION_CLASS), bytes - v6::UDP as u16);
    put(head, v6::VERSION_CLASS, class & !0x0fc0 | u16::from(dscp) << 6);
    put(head, v6::PAYLOAD_LENGTH, udp_length);
    put(head, at::udp_length_offset(true), udp_length);
    let checksum = trimmed_udp_checksum_v6(head, udp_length, tail);
    put(head, at::udp_checksum_offset(true), checksum);
}

/// Returns the sum of the tag's bytes after a Data header.
#[inline(always)]
fn seal_sum(headers: &[u8; at::trimmed_len(true) + SEAL_BYTES]) -> u64 {
    let (_, tail) = headers.split_at(at::trimmed_len(true));
    sum_of_words(tail)
}

#[inline(always)]
fn sum_of_words(bytes: &[u8]) -> u64 {
    let mut sum = 0;
    for word in bytes.as_chunks::<4>().0 {
        sum += u64::from(u32::from_be_bytes(*word));
    }
    sum
}

/// Returns the UDP checksum of a trimmed IPv6 frame as transmitted. `headers` has the new UDP
/// length and any checksum; `tail` is the sum of the bytes after it.
#[inline(always)]
pub(crate) fn trimmed_udp_checksum_v6(headers: &[u8; at::trimmed_len(true)], udp_length: u16, tail: u64) -> u16 {
    // Addresses, UDP header and spray header are consecutive; two numbers complete the pseudo
    // header.
    const { assert!((at::trimmed_len(true) - v6::SRC).is_multiple_of(4) && SEAL_BYTES.is_multiple_of(4)) }
    let (_, row) = headers.split_at(v6::SRC);
    let sum = u64::from(udp_length) + u64::from(at::PROTOCOL_UDP) + sum_of_words(row) + tail;
    // Adding the complement of a word removes it from a ones' complement sum.
    nonzero(!fold(sum + u64::from(!u16_at(headers, at::udp_checksum_offset(true)))))
}

/// Trims a data frame in place (WIRE-15). Returns the remaining bytes, or `None`, with the frame
/// unchanged, if it is not a spray Data with a payload.
pub fn trim(frame: &mut [u8], ports: Ports) -> Option<usize> {
    match parse(frame, ports) {
        Parsed::Ours(Headers { v6, trimmed_len: bytes @ 1.., .. }) => {
            cut(frame, v6, DSCP_TRIMMED, bytes).map(|bytes| bytes as usize)
        }
        _ => None,
    }
}
