//! The addressee of a spray frame, by which the filter of a host's interface redirects. Datagrams
//! of other programs to the same ports stay with the kernel.

use super::words::{u8_at, u16_at, u32_ne, u64_ne};
use super::{Address, Packet, V4_HEADERS, V6_HEADERS, address_words, udp_port};
use crate::header::field;
use crate::offsets::{UDP_BYTES, v4, v6};
use crate::{Kind, Ports, VERSION, VERSION_SEALED};

/// MAC address, first of the [`Ports`] and IP address, as three words. Never all zeros.
pub type Addressee = [u64; 3];

/// Returns an addressee; IPv4 addresses must be mapped into IPv6.
pub fn addressee(mac: [u8; 6], address: [u8; 16], ports: Ports) -> Addressee {
    of(mac, ports.first(), address_words(address))
}

/// Returns the addressee of a frame; `None` if it is not UDP or does not begin as spray frames do.
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

/// Bytes of the spray header that [`begins_as_ours`] reads.
const PEEKED: usize = 4;
const DATA_BYTES: usize = Kind::Data.bytes();

/// Returns `None` unless the `PEEKED` bytes that end the first `N` have a valid version, kind and
/// shard, and a Data has `LONG` bytes. Measurement frames begin with zeros and the complement of
/// their source port.
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
