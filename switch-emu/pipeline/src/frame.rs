//! Reading a frame once at the entry, and writing what changed once at the exit.

use spray_wire::checksum::{udp as nonzero, update_u16, update_u64};
use spray_wire::header::field;
use spray_wire::switch_view::{self as view, v4, v6};
use spray_wire::{DSCP_CONTROL, DSCP_TRIMMED, Kind, UDP_PORT, VERSION};

const MIN_V4: usize = view::min_len(false);
const MIN_V6: usize = view::min_len(true);
/// Ethernet, IPv4 and UDP headers: what it takes to see whose a frame is.
const PORTS_V4: usize = v4::UDP + view::UDP_BYTES;
const PORTS_V6: usize = v6::UDP + view::UDP_BYTES;
const ECN_CE: u8 = 3;

/// A frame in memory that its owner can bound-check.
pub trait Packet {
    /// Length of the whole Ethernet frame.
    fn len(&self) -> u32;
    /// The first `N` bytes, or `None` when the frame is shorter.
    fn head<const N: usize>(&mut self) -> Option<&mut [u8; N]>;
    /// Whether there is nothing in it.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Packet for &mut [u8] {
    fn len(&self) -> u32 {
        <[u8]>::len(self) as u32
    }
    fn head<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        self.first_chunk_mut()
    }
}

/// An address as the key of the host table: its 16 bytes in two words, IPv4 mapped into IPv6.
pub type Address = [u64; 2];

/// The key of an address.
pub fn address_key(address: [u8; 16]) -> Address {
    let (words, _) = address.as_chunks::<8>();
    [u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])]
}

/// What the switches need to know of a frame, and what they change.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Destination, see [`address_key`].
    pub destination: Address,
    /// Digest of the five-tuple.
    pub flow: u64,
    /// Virtual time as it stood in the frame.
    pub stamp_ps: u64,
    /// Virtual time now.
    pub time_ps: u64,
    /// The switch that it is at; [`OUTSIDE`](crate::config::OUTSIDE) once it left the chassis.
    pub switch: u32,
    /// The port that it last left by.
    pub port: u32,
    /// The header's CRC: the frame's share of the random decisions.
    pub crc: u32,
    /// Length now.
    pub len: u32,
    /// TTL or hop limit now.
    pub ttl: u8,
    /// ECN bits now.
    pub ecn: u8,
    /// IPv6.
    pub v6: bool,
    /// In the control class.
    pub control: bool,
    /// A data frame with something to cut off.
    pub trimmable: bool,
    /// Cut by a switch of this chassis.
    pub trimmed: bool,
    /// Length that it has when cut.
    pub trimmed_len: u16,
}

/// Outcome of looking at a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// Not of this transport: the kernel's.
    Foreign,
    /// Ours, but its lengths do not fit.
    Malformed,
    /// Ours.
    Ours(Frame),
}

/// Whether a frame is of this transport, by protocol and port alone.
#[inline(always)]
pub fn is_ours(packet: &mut impl Packet) -> bool {
    let Some(head) = packet.head::<PORTS_V4>() else { return false };
    match u16_at(head, view::ETHERTYPE) {
        view::ETHERTYPE_V4 => ours_v4(head),
        view::ETHERTYPE_V6 => packet.head().is_some_and(|head| ours_v6(head)),
        _ => false,
    }
}

/// Looks at a frame; `now_ps` is asked for what stands in for a virtual time of 0.
#[inline(always)]
pub fn parse(packet: &mut impl Packet, now_ps: impl FnOnce() -> u64) -> Parsed {
    let len = packet.len();
    let Some(head) = packet.head::<PORTS_V4>() else { return Parsed::Foreign };
    match u16_at(head, view::ETHERTYPE) {
        view::ETHERTYPE_V4 if ours_v4(head) => match packet.head() {
            Some(head) => parse_v4(head, len, now_ps),
            None => Parsed::Malformed,
        },
        view::ETHERTYPE_V6 => match packet.head() {
            Some(head) if ours_v6(head) => match packet.head() {
                Some(head) => parse_v6(head, len, now_ps),
                None => Parsed::Malformed,
            },
            _ => Parsed::Foreign,
        },
        _ => Parsed::Foreign,
    }
}

#[inline(always)]
fn ours_v4(head: &[u8; PORTS_V4]) -> bool {
    head[v4::VERSION_IHL] == v4::VERSION_IHL_PLAIN
        && head[v4::PROTOCOL] == view::PROTOCOL_UDP
        && u16_at(head, v4::FRAGMENT) & v4::FRAGMENT_MASK == 0
        && u16_at(head, view::udp_dst_port_offset(false)) == UDP_PORT
}

#[inline(always)]
fn ours_v6(head: &[u8; PORTS_V6]) -> bool {
    head[v6::VERSION_CLASS] >> 4 == 6
        && head[v6::NEXT_HEADER] == view::PROTOCOL_UDP
        && u16_at(head, view::udp_dst_port_offset(true)) == UDP_PORT
}

#[inline(always)]
fn parse_v4(head: &mut [u8; MIN_V4], len: u32, now_ps: impl FnOnce() -> u64) -> Parsed {
    let total = u32::from(u16_at(head, v4::TOTAL_LENGTH));
    let address = u32_ne(head, v4::DST).to_ne_bytes();
    let ip = Ip {
        datagram: total.wrapping_sub(20),
        end: total + view::ETHERNET_BYTES as u32,
        class: head[v4::TOS],
        ttl: head[v4::TTL],
        destination: [0, u64::from_ne_bytes([0, 0, 0xff, 0xff, address[0], address[1], address[2], address[3]])],
        addresses: addresses_v4(u64_le(head, v4::SRC)),
    };
    finish(head, false, len, &ip, now_ps)
}

#[inline(always)]
fn parse_v6(head: &mut [u8; MIN_V6], len: u32, now_ps: impl FnOnce() -> u64) -> Parsed {
    let payload = u32::from(u16_at(head, v6::PAYLOAD_LENGTH));
    let ip = Ip {
        datagram: payload,
        end: payload + v6::UDP as u32,
        class: (u16_at(head, v6::VERSION_CLASS) >> 4) as u8,
        ttl: head[v6::HOP_LIMIT],
        destination: [u64_ne(head, v6::DST), u64_ne(head, v6::DST + 8)],
        addresses: addresses_v6(
            [u64_le(head, v6::SRC), u64_le(head, v6::SRC + 8)],
            [u64_le(head, v6::DST), u64_le(head, v6::DST + 8)],
        ),
    };
    finish(head, true, len, &ip, now_ps)
}

/// Odd multipliers that keep the addresses and ports of a five-tuple apart (fractions of square roots).
const K: [u64; 5] =
    [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1, 0x510e_527f_ade6_82d1];

/// Digest of a five-tuple, from that of its addresses and from both ports, the source's in the high half (SW-4).
#[inline(always)]
pub const fn digest(addresses: u64, ports: u32) -> u64 {
    crate::hash::mix(addresses ^ (ports as u64).wrapping_mul(K[4]))
}

/// Digest of the IPv4 addresses of a frame, read as one little-endian number from where the source's begins.
#[inline(always)]
pub const fn addresses_v4(both: u64) -> u64 {
    both.wrapping_mul(K[0])
}

/// Digest of the IPv6 addresses of a frame, each read as two little-endian numbers.
#[inline(always)]
pub const fn addresses_v6(source: [u64; 2], destination: [u64; 2]) -> u64 {
    source[0].wrapping_mul(K[0])
        ^ source[1].wrapping_mul(K[1]).rotate_left(16)
        ^ destination[0].wrapping_mul(K[2]).rotate_left(32)
        ^ destination[1].wrapping_mul(K[3]).rotate_left(48)
}

/// What the IP header says.
struct Ip {
    /// Length of the UDP header and payload.
    datagram: u32,
    /// End of the IP packet in the frame.
    end: u32,
    class: u8,
    ttl: u8,
    destination: Address,
    /// Digest of both addresses.
    addresses: u64,
}

#[inline(always)]
fn finish<const N: usize>(head: &[u8; N], v6: bool, len: u32, ip: &Ip, now_ps: impl FnOnce() -> u64) -> Parsed {
    let ours = view::udp_payload_offset(v6);
    if head[ours] != VERSION {
        return Parsed::Foreign;
    }
    let data = head[view::kind_offset(v6)] == Kind::Data as u8;
    let least =
        if data { u32::from(view::TRIMMED_UDP_LENGTH) } else { (view::min_len(v6) - view::udp_offset(v6)) as u32 };
    let udp_length = u32::from(u16_at(head, view::udp_length_offset(v6)));
    if udp_length != ip.datagram || udp_length < least || ip.end > len {
        return Parsed::Malformed;
    }
    let stamp_ps = u64_at(head, view::virtual_time_offset(v6));
    let time_ps = if stamp_ps == 0 { now_ps() } else { stamp_ps };
    let ports = u32_at(head, view::udp_src_port_offset(v6));
    let dscp = ip.class >> 2;
    Parsed::Ours(Frame {
        destination: ip.destination,
        flow: digest(ip.addresses, ports),
        stamp_ps,
        time_ps,
        switch: 0,
        port: 0,
        crc: u32_at(head, ours + field::HEADER_CRC),
        len,
        ttl: ip.ttl,
        ecn: ip.class & 3,
        v6,
        control: dscp == DSCP_CONTROL || dscp == DSCP_TRIMMED,
        trimmable: data && udp_length > least,
        trimmed: false,
        trimmed_len: view::trimmed_len(v6) as u16,
    })
}

/// Writes the changes back. Returns the length to cut the frame to, 0 = keep it; `None` when the frame is too short.
#[inline(always)]
pub fn write(packet: &mut impl Packet, frame: &Frame) -> Option<u32> {
    if frame.v6 {
        write_v6(packet.head()?, frame);
        if !frame.trimmed {
            return Some(0);
        }
        trim_v6(packet.head()?);
    } else {
        write_v4(packet.head()?, frame);
        if !frame.trimmed {
            return Some(0);
        }
        trim_v4(packet.head()?);
    }
    Some(view::trimmed_len(frame.v6) as u32)
}

#[inline(always)]
fn write_v4(head: &mut [u8; MIN_V4], frame: &Frame) {
    let (class, life) = (u16_at(head, v4::VERSION_IHL), u16_at(head, v4::TTL));
    let new_class = class & !3 | u16::from(frame.ecn);
    let new_life = life & 0xff | u16::from(frame.ttl) << 8;
    let checksum = update_u16(update_u16(u16_at(head, v4::CHECKSUM), class, new_class), life, new_life);
    put(head, v4::VERSION_IHL, new_class);
    put(head, v4::TTL, new_life);
    put(head, v4::CHECKSUM, checksum);
    write_time(head, false, frame);
}

#[inline(always)]
fn write_v6(head: &mut [u8; MIN_V6], frame: &Frame) {
    let class = u16_at(head, v6::VERSION_CLASS);
    put(head, v6::VERSION_CLASS, class & !0x30 | u16::from(frame.ecn) << 4);
    head[v6::HOP_LIMIT] = frame.ttl;
    write_time(head, true, frame);
}

/// Stamps the virtual time; a frame that is not emulated stays so.
#[inline(always)]
fn write_time<const N: usize>(head: &mut [u8; N], v6: bool, frame: &Frame) {
    if frame.stamp_ps == 0 {
        return;
    }
    let checksum = u16_at(head, view::udp_checksum_offset(v6));
    if checksum != 0 {
        let checksum = nonzero(update_u64(checksum, frame.stamp_ps, frame.time_ps));
        put(head, view::udp_checksum_offset(v6), checksum);
    }
    let at = view::virtual_time_offset(v6);
    for (i, byte) in frame.time_ps.to_be_bytes().into_iter().enumerate() {
        head[at + i] = byte;
    }
}

#[inline(always)]
fn trim_v4(head: &mut [u8; view::TRIMMED_LEN_V4]) {
    let (class, length) = (u16_at(head, v4::VERSION_IHL), u16_at(head, v4::TOTAL_LENGTH));
    let new_class = class & !0xfc | u16::from(DSCP_TRIMMED) << 2;
    let checksum = update_u16(u16_at(head, v4::CHECKSUM), class, new_class);
    put(head, v4::CHECKSUM, update_u16(checksum, length, view::TRIMMED_V4_TOTAL_LENGTH));
    put(head, v4::VERSION_IHL, new_class);
    put(head, v4::TOTAL_LENGTH, view::TRIMMED_V4_TOTAL_LENGTH);
    put(head, view::udp_length_offset(false), view::TRIMMED_UDP_LENGTH);
    put(head, view::udp_checksum_offset(false), 0);
}

#[inline(always)]
fn trim_v6(head: &mut [u8; view::TRIMMED_LEN_V6]) {
    let class = u16_at(head, v6::VERSION_CLASS);
    put(head, v6::VERSION_CLASS, class & !0x0fc0 | u16::from(DSCP_TRIMMED) << 6);
    put(head, v6::PAYLOAD_LENGTH, view::TRIMMED_UDP_LENGTH);
    put(head, view::udp_length_offset(true), view::TRIMMED_UDP_LENGTH);
    let checksum = view::trimmed_udp_checksum_v6(head);
    put(head, view::udp_checksum_offset(true), checksum);
}

/// Sets congestion experienced on a frame whose sender understands it; false when it already was or cannot be.
#[inline(always)]
pub(crate) fn mark(frame: &mut Frame) -> bool {
    let marks = frame.ecn != 0 && frame.ecn != ECN_CE;
    if marks {
        frame.ecn = ECN_CE;
    }
    marks
}

/// Makes a frame a trimmed header.
#[inline(always)]
pub(crate) fn trim(frame: &mut Frame) {
    frame.len = u32::from(frame.trimmed_len);
    frame.control = true;
    frame.trimmable = false;
    frame.trimmed = true;
}

#[inline(always)]
fn u16_at<const N: usize>(head: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([head[at], head[at + 1]])
}

#[inline(always)]
fn u32_at<const N: usize>(head: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

#[inline(always)]
fn u64_at<const N: usize>(head: &[u8; N], at: usize) -> u64 {
    u64::from(u32_at(head, at)) << 32 | u64::from(u32_at(head, at + 4))
}

/// Eight bytes for hashing: the order is the same everywhere and costs nothing on little-endian machines.
#[inline(always)]
fn u64_le<const N: usize>(head: &[u8; N], at: usize) -> u64 {
    u64_at(head, at).swap_bytes()
}

#[inline(always)]
fn put<const N: usize>(head: &mut [u8; N], at: usize, value: u16) {
    let [high, low] = value.to_be_bytes();
    head[at] = high;
    head[at + 1] = low;
}

/// A word as it lies in memory.
#[inline(always)]
fn u32_ne<const N: usize>(head: &[u8; N], at: usize) -> u32 {
    u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

#[inline(always)]
fn u64_ne<const N: usize>(head: &[u8; N], at: usize) -> u64 {
    u64_at(head, at).to_be()
}
