//! Parses whole frames with every check, and builds them. Packet path: T5 and R3.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::bytes::{View, Writer, chunk, chunk_mut};
use crate::declare::Header as _;
use crate::header::{COMMON_BYTES, field};
use crate::offsets::{
    ETHERTYPE_V4, ETHERTYPE_V6, PROTOCOL_UDP, UDP_BYTES, udp_checksum_offset, udp_offset, udp_payload_offset, v4, v6,
};
use crate::switch_view::classify;
use crate::{
    Body, Common, DSCP_PAUSE, DSCP_TRIMMED, DSCP_TRIMMED_LAST, Data, Ecn, Envelope, Error, EvPort, Kind, MAX_ECHOES,
    Ports, VERSION, ack, checksum, data, echoes,
};

const V4_HEADERS: usize = udp_payload_offset(false);
const V6_HEADERS: usize = udp_payload_offset(true);
const DONT_FRAGMENT: u16 = 0x4000;

/// A spray frame that passed every check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Addresses, ports and IP fields.
    pub envelope: Envelope,
    /// Connection, cookie and shard.
    pub common: Common,
    /// Fields of the kind.
    pub body: Body,
    /// Payload of a Data, or key exchange message; empty for other kinds and when trimmed.
    pub payload: &'a [u8],
    /// A switch removed the payload.
    pub trimmed: bool,
    /// The frame was sealed: it is authenticated with the connection's keys.
    pub sealed: bool,
}

impl Frame<'_> {
    /// Returns whether the last port of the path trimmed the frame.
    pub fn is_trimmed_last(&self) -> bool {
        self.trimmed && self.envelope.dscp == DSCP_TRIMMED_LAST
    }

    /// Returns whether a switch requests a pause (`docs/specs/flowcut-switch.md`, FCS-5).
    pub fn is_pause(&self) -> bool {
        self.envelope.dscp == DSCP_PAUSE
    }
}

/// Parses an Ethernet frame. Returns `Ok(None)` if it is not UDP to one of `ports`. Bytes after the
/// IP datagram are padding.
///
/// # Errors
///
/// The spray frame is malformed or corrupt and must be dropped (WIRE-9 to WIRE-12).
//= docs/specs/wire.md#WIRE-9 order of checks
#[inline]
pub fn parse(frame: &[u8], ports: Ports) -> Result<Option<Frame<'_>>, Error> {
    match classify(frame, ports) {
        None => Ok(None),
        Some(false) => parse_v4(frame).and_then(|(envelope, udp)| parse_behind(envelope, udp)),
        Some(true) => parse_v6(frame).and_then(|(envelope, udp)| parse_behind(envelope, udp)),
    }
}

/// Parses what follows the IP header. One instance per IP version keeps the envelope in registers.
/// Returns what [`parse`] does, since a conversion would copy the frame.
#[inline(always)]
fn parse_behind(envelope: Envelope, udp: &[u8]) -> Result<Option<Frame<'_>>, Error> {
    let ours = udp.get(UDP_BYTES..).ok_or(Error::Truncated)?;
    let (common, kind) = Common::parse::<VERSION>(ours.first_chunk::<COMMON_BYTES>().ok_or(Error::Truncated)?)?;
    // The instance for data has constant lengths.
    match kind {
        Kind::Data => parse_kind(envelope, common, Kind::Data, ours),
        _ => parse_kind(envelope, common, kind, ours),
    }
}

#[inline(always)]
fn parse_kind(envelope: Envelope, common: Common, kind: Kind, ours: &[u8]) -> Result<Option<Frame<'_>>, Error> {
    let (header, payload) = ours.split_at_checked(our_bytes(kind, ours)?).ok_or(Error::Truncated)?;
    if header_checksum(&envelope, kind, header)?
        != View(chunk::<COMMON_BYTES>(header)?).u32::<{ field::HEADER_CHECKSUM }>()
    {
        return Err(Error::HeaderChecksum);
    }
    let body = Body::parse(kind, header)?;
    let trimmed = check_payload(&envelope, &body, header, payload)?;
    Ok(Some(Frame { envelope, common, body, payload, trimmed, sealed: false }))
}

/// Returns the connection and, of a Data, the packet number, of an Ack, the cumulative one; of
/// other kinds the same bytes. `None` if the frame is not spray's or too short. Verifies nothing.
#[inline]
pub fn peek_packet(frame: &[u8], ports: Ports) -> Option<(u32, u64)> {
    const NUMBER: usize = crate::data::PSN;
    let head = frame.get(udp_payload_offset(classify(frame, ports)?)..)?.first_chunk::<{ NUMBER + 8 }>()?;
    Some((View(head).u32::<{ field::CONNECTION }>(), View(head).u64::<NUMBER>()))
}

#[inline]
pub(crate) fn our_bytes(kind: Kind, ours: &[u8]) -> Result<usize, Error> {
    if kind == Kind::Ack { ack::bytes(ours) } else { Ok(kind.bytes()) }
}

/// Checks length and checksum of the payload; returns whether a switch trimmed the frame.
//= docs/specs/wire.md#WIRE-11 payload checksum
#[inline(always)]
fn check_payload(envelope: &Envelope, body: &Body, header: &[u8], payload: &[u8]) -> Result<bool, Error> {
    let Body::Data(data) = body else {
        return if payload.len() == body.payload_bytes() { Ok(false) } else { Err(Error::Length) };
    };
    if is_cut(envelope, payload) {
        return Ok(true);
    }
    if payload.len() != data.payload_bytes as usize {
        return Err(Error::Length);
    }
    if xxh3(payload) != View(chunk::<{ Data::BYTES }>(header)?).u32::<{ data::PAYLOAD_CHECKSUM }>() {
        return Err(Error::PayloadChecksum);
    }
    Ok(false)
}

//= docs/specs/wire.md#WIRE-12 trimmed frames
#[inline(always)]
pub(crate) fn is_cut(envelope: &Envelope, payload: &[u8]) -> bool {
    matches!(envelope.dscp, DSCP_TRIMMED | DSCP_TRIMMED_LAST) && payload.is_empty()
}

#[inline(always)]
pub(crate) fn parse_envelope(frame: &[u8], is_v6: bool) -> Result<(Envelope, &[u8]), Error> {
    if is_v6 { parse_v6(frame) } else { parse_v4(frame) }
}

#[inline(always)]
fn parse_v4(frame: &[u8]) -> Result<(Envelope, &[u8]), Error> {
    let head = View(chunk::<V4_HEADERS>(frame)?);
    let ip = frame.get(v4::VERSION_IHL..v4::UDP).ok_or(Error::Truncated)?;
    if checksum::fold(checksum::add(0, ip)) != 0xffff {
        return Err(Error::IpChecksum);
    }
    let tos = head.u8::<{ v4::TOS }>();
    let envelope = Envelope {
        src_mac: head.array::<6, 6>(),
        dst_mac: head.array::<0, 6>(),
        src: IpAddr::V4(Ipv4Addr::from(head.u32::<{ v4::SRC }>())),
        dst: IpAddr::V4(Ipv4Addr::from(head.u32::<{ v4::DST }>())),
        src_port: EvPort::new(head.u16::<{ v4::UDP }>()),
        dst_port: head.u16::<{ v4::UDP + 2 }>(),
        dscp: tos >> 2,
        ecn: Ecn::from_tos(tos),
        ttl: head.u8::<{ v4::TTL }>(),
    };
    let length = (head.u16::<{ v4::TOTAL_LENGTH }>() as usize).checked_sub(ip.len()).ok_or(Error::Length)?;
    let udp = udp(frame, v4::UDP, length)?;
    // Spray frames have none over IPv4 (WIRE-4). If a device on the path added one, it must match.
    if head.u16::<{ udp_checksum_offset(false) }>() != 0 {
        check_udp(&head.0[v4::SRC..v4::UDP], udp)?;
    }
    Ok((envelope, udp))
}

fn parse_v6(frame: &[u8]) -> Result<(Envelope, &[u8]), Error> {
    let head = View(chunk::<V6_HEADERS>(frame)?);
    let tos = (head.u16::<{ v6::VERSION_CLASS }>() >> 4) as u8;
    let envelope = Envelope {
        src_mac: head.array::<6, 6>(),
        dst_mac: head.array::<0, 6>(),
        src: IpAddr::V6(Ipv6Addr::from(head.array::<{ v6::SRC }, 16>())),
        dst: IpAddr::V6(Ipv6Addr::from(head.array::<{ v6::DST }, 16>())),
        src_port: EvPort::new(head.u16::<{ v6::UDP }>()),
        dst_port: head.u16::<{ v6::UDP + 2 }>(),
        dscp: tos >> 2,
        ecn: Ecn::from_tos(tos),
        ttl: head.u8::<{ v6::HOP_LIMIT }>(),
    };
    let udp = udp(frame, v6::UDP, head.u16::<{ v6::PAYLOAD_LENGTH }>() as usize)?;
    if head.u16::<{ udp_checksum_offset(true) }>() == 0 {
        return Err(Error::UdpChecksum);
    }
    check_udp(&head.0[v6::SRC..v6::UDP], udp)?;
    Ok((envelope, udp))
}

/// Returns the UDP datagram, if its length matches that in the IP header.
//= docs/specs/wire.md#WIRE-3 ip headers and lengths
#[inline(always)]
fn udp(frame: &[u8], at: usize, length: usize) -> Result<&[u8], Error> {
    let udp = frame.get(at..at + length).ok_or(Error::Truncated)?;
    let udp_bytes = View(udp.first_chunk::<UDP_BYTES>().ok_or(Error::Length)?).u16::<4>();
    if udp_bytes as usize != length {
        return Err(Error::Length);
    }
    Ok(udp)
}

//= docs/specs/wire.md#WIRE-4 udp checksum
fn check_udp(addresses: &[u8], udp: &[u8]) -> Result<(), Error> {
    if checksum::fold(udp_sum(addresses, udp)) == 0xffff || is_unfinished(addresses, udp) {
        Ok(())
    } else {
        Err(Error::UdpChecksum)
    }
}

/// Returns whether the checksum covers the pseudo header alone: the local kernel left the rest to
/// a device that does not complete it, such as veth.
fn is_unfinished(addresses: &[u8], udp: &[u8]) -> bool {
    let checksum = udp.first_chunk::<UDP_BYTES>().map(|head| View(head).u16::<6>());
    checksum == Some(checksum::fold(pseudo_sum(addresses, udp.len())))
}

fn udp_sum(addresses: &[u8], udp: &[u8]) -> u64 {
    checksum::add(pseudo_sum(addresses, udp.len()), udp)
}

fn pseudo_sum(addresses: &[u8], udp_bytes: usize) -> u64 {
    checksum::add(udp_bytes as u64 + u64::from(PROTOCOL_UDP), addresses)
}

/// Bytes covered by the header's checksum or tag before the kind's fields.
const COVERED_START: usize = 16 + 16 + 2 + 2 + field::HEADER_CHECKSUM;
const COVERED_MAX: usize = COVERED_START + Kind::Ack.bytes() + echoes::bytes_of(MAX_ECHOES) - COMMON_BYTES;
const COVERED_DATA: usize = COVERED_START + Data::BYTES - COMMON_BYTES;

/// A contiguous, aligned copy of the bytes that the header's checksum or tag covers: both addresses
/// (16 bytes each, IPv4 as v4-mapped), both ports, and the header without the checksum (WIRE-10).
#[repr(align(8))]
pub(crate) struct Covered<const MAX: usize = COVERED_MAX>([u8; MAX]);

impl<const MAX: usize> Covered<MAX> {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self([0; MAX])
    }

    #[inline(always)]
    pub(crate) fn of(&mut self, envelope: &Envelope, header: &[u8]) -> Result<&[u8], Error> {
        Writer(&mut self.0)
            .array::<0, 16>(mapped(envelope.src))
            .array::<16, 16>(mapped(envelope.dst))
            .u16::<32>(envelope.src_port.number())
            .u16::<34>(envelope.dst_port)
            .array::<36, { field::HEADER_CHECKSUM }>(*chunk(header)?);
        let rest = header.get(COMMON_BYTES..).ok_or(Error::Truncated)?;
        let end = COVERED_START + rest.len();
        self.0.get_mut(COVERED_START..end).ok_or(Error::Length)?.copy_from_slice(rest);
        self.0.get(..end).ok_or(Error::Length)
    }
}

//= docs/specs/wire.md#WIRE-10 header checksum
#[inline(always)]
fn header_checksum(envelope: &Envelope, kind: Kind, header: &[u8]) -> Result<u32, Error> {
    Ok(match kind {
        Kind::Data => xxh3(Covered::<COVERED_DATA>::new().of(envelope, header)?),
        _ => xxh3(Covered::<COVERED_MAX>::new().of(envelope, header)?),
    })
}

/// Returns the checksum of headers and payload: the low half of unseeded XXH3-64.
#[inline]
pub fn xxh3(bytes: &[u8]) -> u32 {
    twox_hash::XxHash3_64::oneshot(bytes) as u32
}

#[inline(always)]
fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// Builds an Ethernet frame at the start of `out` and returns its length.
///
/// # Errors
///
/// [`Error::BufferTooSmall`]; [`Error::Family`] if the addresses are of different IP versions;
/// [`Error::Length`] if the payload contradicts the header or exceeds what UDP can carry.
#[inline]
pub fn emit(out: &mut [u8], e: &Envelope, c: &Common, body: &Body, payload: &[u8]) -> Result<usize, Error> {
    let at = body.header_bytes(e.is_v6());
    let room = out.get_mut(at..).and_then(|rest| rest.get_mut(..payload.len())).ok_or(Error::BufferTooSmall)?;
    room.copy_from_slice(payload);
    emit_in_place(out, e, c, body, payload.len())
}

/// Like [`emit`], with a payload of `bytes` already in `out` at [`Body::header_bytes`].
#[inline]
pub fn emit_in_place(out: &mut [u8], e: &Envelope, c: &Common, body: &Body, bytes: usize) -> Result<usize, Error> {
    match body {
        Body::Data(data) => emit_kind(out, e, c, &Body::Data(*data), bytes),
        _ => emit_kind(out, e, c, body, bytes),
    }
}

#[inline(always)]
fn emit_kind(out: &mut [u8], e: &Envelope, c: &Common, body: &Body, bytes: usize) -> Result<usize, Error> {
    let udp_bytes = udp_length(body, bytes, 0)?;
    let out = out.get_mut(..udp_offset(e.is_v6()) + udp_bytes as usize).ok_or(Error::BufferTooSmall)?;
    let ours = out.get_mut(udp_payload_offset(e.is_v6())..).ok_or(Error::BufferTooSmall)?;
    let (header, payload) = ours.split_at_mut_checked(body.bytes()).ok_or(Error::BufferTooSmall)?;
    emit_header(header, e, c, body, payload)?;
    emit_envelope(out, e, udp_bytes)?;
    Ok(out.len())
}

/// Writes Ethernet, IP and UDP headers in front of a UDP payload of `bytes` already in `out` at
/// [`udp_payload_offset`], such as one received from a socket. Returns the frame's length.
pub fn envelop(out: &mut [u8], e: &Envelope, bytes: usize) -> Result<usize, Error> {
    let udp_bytes =
        u16::try_from(UDP_BYTES + bytes).ok().filter(|bytes| *bytes <= u16::MAX - 20).ok_or(Error::Length)?;
    let out = out.get_mut(..udp_payload_offset(e.is_v6()) + bytes).ok_or(Error::BufferTooSmall)?;
    emit_envelope(out, e, udp_bytes)?;
    Ok(out.len())
}

/// Writes Ethernet, IP and UDP headers of a datagram that extends to the end of `out`.
#[inline(always)]
pub(crate) fn emit_envelope(out: &mut [u8], e: &Envelope, udp_bytes: u16) -> Result<(), Error> {
    match (e.src, e.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => emit_v4(chunk_mut(out)?, e, src, dst, udp_bytes),
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            emit_v6(chunk_mut(out)?, e, src, dst, udp_bytes);
            let (head, udp) = out.split_first_chunk::<{ v6::UDP }>().ok_or(Error::BufferTooSmall)?;
            let sum = udp_sum(&head[v6::SRC..], udp);
            let checksum = checksum::udp(!checksum::fold(sum));
            Writer(chunk_mut::<V6_HEADERS>(out)?).u16::<{ udp_checksum_offset(true) }>(checksum);
        }
        _ => return Err(Error::Family),
    }
    Ok(())
}

/// Returns the UDP length of a frame with `seal_bytes` of tags.
#[inline(always)]
pub(crate) fn udp_length(body: &Body, payload_bytes: usize, seal_bytes: usize) -> Result<u16, Error> {
    if payload_bytes != body.payload_bytes() {
        return Err(Error::Length);
    }
    let length = UDP_BYTES + body.bytes() + payload_bytes + seal_bytes;
    // The IPv4 total length includes the IP header.
    if length > u16::MAX as usize - 20 {
        return Err(Error::Length);
    }
    Ok(length as u16)
}

#[inline(always)]
fn emit_header(header: &mut [u8], e: &Envelope, c: &Common, body: &Body, payload: &[u8]) -> Result<(), Error> {
    c.emit(chunk_mut(header)?, VERSION, body.kind(), body.flags());
    body.emit(header)?;
    if body.kind() == Kind::Data {
        let checksum = xxh3(payload);
        Writer(chunk_mut::<{ Data::BYTES }>(header)?).u32::<{ data::PAYLOAD_CHECKSUM }>(checksum);
    }
    let checksum = header_checksum(e, body.kind(), header)?;
    Writer(chunk_mut::<COMMON_BYTES>(header)?).u32::<{ field::HEADER_CHECKSUM }>(checksum);
    Ok(())
}

#[inline(always)]
fn emit_v4(head: &mut [u8; V4_HEADERS], e: &Envelope, src: Ipv4Addr, dst: Ipv4Addr, udp_bytes: u16) {
    let mut writer = Writer(head);
    writer
        .array::<0, 6>(e.dst_mac)
        .array::<6, 6>(e.src_mac)
        .u16::<12>(ETHERTYPE_V4)
        .u8::<{ v4::VERSION_IHL }>(v4::VERSION_IHL_PLAIN)
        .u8::<{ v4::TOS }>(e.tos())
        .u16::<{ v4::TOTAL_LENGTH }>(20 + udp_bytes)
        .u16::<18>(0)
        .u16::<{ v4::FRAGMENT }>(DONT_FRAGMENT)
        .u8::<{ v4::TTL }>(e.ttl)
        .u8::<{ v4::PROTOCOL }>(PROTOCOL_UDP)
        .u16::<{ v4::CHECKSUM }>(0)
        .array::<{ v4::SRC }, 4>(src.octets())
        .array::<{ v4::DST }, 4>(dst.octets());
    emit_udp::<V4_HEADERS, { v4::UDP }>(&mut writer, e, udp_bytes);
    writer.u16::<{ v4::CHECKSUM }>(ip_checksum(e, src, dst, 20 + udp_bytes));
}

/// Returns the checksum of an IPv4 header. Computed from the values: reading back bytes just
/// written would stall on store forwarding.
#[inline(always)]
fn ip_checksum(e: &Envelope, src: Ipv4Addr, dst: Ipv4Addr, total_bytes: u16) -> u16 {
    let words = [
        u16::from_be_bytes([v4::VERSION_IHL_PLAIN, e.tos()]),
        total_bytes,
        DONT_FRAGMENT,
        u16::from_be_bytes([e.ttl, PROTOCOL_UDP]),
    ];
    let addresses = [src, dst].into_iter().map(|address| u64::from(address.to_bits())).sum();
    !checksum::fold(words.into_iter().fold(addresses, |sum, word| sum + u64::from(word)))
}

fn emit_v6(head: &mut [u8; V6_HEADERS], e: &Envelope, src: Ipv6Addr, dst: Ipv6Addr, udp_bytes: u16) {
    let mut writer = Writer(head);
    writer
        .array::<0, 6>(e.dst_mac)
        .array::<6, 6>(e.src_mac)
        .u16::<12>(ETHERTYPE_V6)
        .u16::<{ v6::VERSION_CLASS }>(6 << 12 | u16::from(e.tos()) << 4)
        .u16::<{ v6::LABEL }>(e.src_port.number())
        .u16::<{ v6::PAYLOAD_LENGTH }>(udp_bytes)
        .u8::<{ v6::NEXT_HEADER }>(PROTOCOL_UDP)
        .u8::<{ v6::HOP_LIMIT }>(e.ttl)
        .array::<{ v6::SRC }, 16>(src.octets())
        .array::<{ v6::DST }, 16>(dst.octets());
    emit_udp::<V6_HEADERS, { v6::UDP }>(&mut writer, e, udp_bytes);
}

/// Writes the UDP header, which ends the array, with checksum 0.
#[inline(always)]
fn emit_udp<const N: usize, const AT: usize>(writer: &mut Writer<'_, N>, e: &Envelope, length: u16) {
    let [a, b] = e.src_port.number().to_be_bytes();
    let [c, d] = e.dst_port.to_be_bytes();
    let [e, f] = length.to_be_bytes();
    writer.array::<AT, UDP_BYTES>([a, b, c, d, e, f, 0, 0]);
}
