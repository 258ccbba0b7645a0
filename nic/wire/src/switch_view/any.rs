//! Any IP packet as a switch reads it: for fabrics that carry other traffic too.

use super::words::{u16_at, u32_at};
use super::{Changes, Headers, Ip, Packet, put_life_v4, put_life_v6};
use crate::offsets::{self as at, v4, v6};

/// The IP header without options or extensions; then the ports of TCP and UDP.
const V4_IP: usize = v4::UDP;
const V6_IP: usize = v6::UDP;
const V4_PORTS: usize = V4_IP + 4;
const V6_PORTS: usize = V6_IP + 4;
const PROTOCOL_TCP: u8 = 6;

/// Reads the IP packet of a frame that [`parse`](super::parse) calls foreign; `None` if it is not
/// IP or truncated. Ports are 0 unless TCP or UDP, unfragmented, without options or extensions.
#[inline(always)]
pub fn parse_foreign(packet: &(impl Packet + ?Sized)) -> Option<Headers> {
    let head = packet.head::<V4_IP>()?;
    match u16_at(head, at::ETHERTYPE) {
        at::ETHERTYPE_V4 => foreign_v4(packet, head),
        at::ETHERTYPE_V6 => foreign_v6(packet, packet.head()?),
        _ => None,
    }
}

#[inline(always)]
fn foreign_v4(packet: &(impl Packet + ?Sized), head: &[u8; V4_IP]) -> Option<Headers> {
    let bytes = packet.frame_bytes();
    let end = u32::from(u16_at(head, v4::TOTAL_LENGTH)) + at::ETHERNET_BYTES as u32;
    if head[v4::VERSION_IHL] >> 4 != 4 || end < V4_IP as u32 || end > bytes {
        return None;
    }
    let whole = head[v4::VERSION_IHL] == v4::VERSION_IHL_PLAIN && u16_at(head, v4::FRAGMENT) & v4::FRAGMENT_MASK == 0;
    let ports = match packet.head::<V4_PORTS>() {
        Some(longer) if whole && has_ports(head[v4::PROTOCOL]) => u32_at(longer, V4_IP),
        _ => 0,
    };
    // The identification and the checksum: no two packets of a flow in a row have the same.
    let own = u32::from(u16_at(head, v4::TOTAL_LENGTH + 2)) << 16 | u32::from(u16_at(head, v4::CHECKSUM));
    Some(foreign(false, bytes, ports, own, &Ip::v4(head)))
}

#[inline(always)]
fn foreign_v6(packet: &(impl Packet + ?Sized), head: &[u8; V6_IP]) -> Option<Headers> {
    let bytes = packet.frame_bytes();
    let end = u32::from(u16_at(head, v6::PAYLOAD_LENGTH)) + V6_IP as u32;
    if head[v6::VERSION_CLASS] >> 4 != 6 || end > bytes {
        return None;
    }
    let ports = match packet.head::<V6_PORTS>() {
        Some(longer) if has_ports(head[v6::NEXT_HEADER]) => u32_at(longer, V6_IP),
        _ => 0,
    };
    Some(foreign(true, bytes, ports, ports ^ end, &Ip::v6(head)))
}

#[inline(always)]
fn has_ports(protocol: u8) -> bool {
    protocol == PROTOCOL_TCP || protocol == at::PROTOCOL_UDP
}

#[inline(always)]
fn foreign(v6: bool, bytes: u32, ports: u32, checksum: u32, ip: &Ip) -> Headers {
    Headers {
        v6,
        destination: ip.destination,
        addresses: ip.addresses,
        ports,
        label: ip.label,
        checksum,
        bytes,
        ttl: ip.ttl,
        ecn: ip.class & 3,
        dscp: ip.class >> 2,
        trimmed_len: 0,
    }
}

/// Write what a switch changed into a frame that [`parse_foreign`] took, of IPv6 or not: TTL and
/// ECN. Returns `None` if the frame is too short, which such a frame is not.
#[inline(always)]
pub fn write_foreign(packet: &mut (impl Packet + ?Sized), v6: bool, changes: &Changes) -> Option<()> {
    if v6 {
        put_life_v6(packet.head_mut::<V6_IP>()?, changes, false);
    } else {
        put_life_v4(packet.head_mut::<V4_IP>()?, changes, false);
    }
    Some(())
}
