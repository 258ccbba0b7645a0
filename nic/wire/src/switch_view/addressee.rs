//! Whom a frame of ours is addressed to: what the filter of a host's interface goes by. Datagrams of other programs to the same ports are left
//! to the kernel.

use super::words::{u8_at, u16_at, u32_ne, u64_ne};
use super::{Address, Packet, V4_HEADERS, V6_HEADERS, address_words, udp_port};
use crate::header::field;
use crate::offsets::{UDP_BYTES, v4, v6};
use crate::{Kind, Ports, VERSION, VERSION_SEALED};

/// An Ethernet address with the [`Ports`] behind it, and an IP address, as three words. No addressee is all zeros.
pub type Addressee = [u64; 3];

/// Return the words of an Ethernet address and an IP address; IPv4 must be mapped into IPv6.
pub fn addressee(mac: [u8; 6], address: [u8; 16], ports: Ports) -> Addressee {
    of(mac, ports.first(), address_words(address))
}

/// Read whom a frame is addressed to; `None` if it is no UDP, or does not begin as frames of ours do.
//= docs/specs/wire.md#WIRE-2 leaves to the kernel
#[inline(always)]
pub fn addressed_to(packet: &(impl Packet + ?Sized)) -> Option<Addressee> {
    let (v6, port) = udp_port(packet)?;
    let first = Ports::around(port).first();
    if first == 0 {
        return None;
    }
    if v6 {
        begins_as_ours::<{ V6_HEADERS + PEEKED }, { V6_HEADERS + DATA_BYTES }>(packet)?;
        let head = packet.head::<V6_HEADERS>()?;
        return Some(of(mac(head), first, [u64_ne(head, v6::DST), u64_ne(head, v6::DST + 8)]));
    }
    begins_as_ours::<{ V4_HEADERS + PEEKED }, { V4_HEADERS + DATA_BYTES }>(packet)?;
    let head = packet.head::<V4_HEADERS>()?;
    let [a, b, c, d] = u32_ne(head, v4::DST).to_ne_bytes();
    Some(of(mac(head), first, [0, u64::from_ne_bytes([0, 0, 0xff, 0xff, a, b, c, d])]))
}

/// Bytes of our header that are looked at.
const PEEKED: usize = 4;
const DATA_BYTES: usize = Kind::Data.bytes();

/// `None` unless the `PEEKED` bytes that end the first `N` have a version, a kind and a shard of ours, and a Data its header's `LONG` bytes. What
/// endpoints measure with begins with zeros and the complement of its source port.
#[inline(always)]
fn begins_as_ours<const N: usize, const LONG: usize>(packet: &(impl Packet + ?Sized)) -> Option<()> {
    let (head, start) = (packet.head::<N>()?, const { N - PEEKED });
    if u16_at(head, start) == 0 {
        return (u16_at(head, start + 2) == !u16_at(head, start - UDP_BYTES)).then_some(());
    }
    let version = u8_at(head, start + field::VERSION);
    let kind = Kind::from_u8(u8_at(head, start + field::KIND))?;
    let is_ours = (version == VERSION || version == VERSION_SEALED)
        && u16::from(u8_at(head, start + field::SHARD)) < Ports::COUNT
        && (kind != Kind::Data || packet.head::<LONG>().is_some());
    is_ours.then_some(())
}

#[inline(always)]
fn mac<const N: usize>(head: &[u8; N]) -> [u8; 6] {
    [head[0], head[1], head[2], head[3], head[4], head[5]]
}

#[inline(always)]
fn of([a, b, c, d, e, f]: [u8; 6], first_port: u16, [high, low]: Address) -> Addressee {
    let [g, h] = first_port.to_be_bytes();
    [u64::from_ne_bytes([a, b, c, d, e, f, g, h]), high, low]
}
