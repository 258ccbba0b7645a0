//! Whom a frame of ours is addressed to: what the filter of a host's interface goes by.

use super::words::{u32_ne, u64_ne};
use super::{Address, Packet, V4_HEADERS, V6_HEADERS, address_words, udp_port};
use crate::Ports;
use crate::offsets::{v4, v6};

/// An Ethernet address with the [`Ports`] behind it, and an IP address, as three words. No addressee is all zeros.
pub type Addressee = [u64; 3];

/// Return the words of an Ethernet address and an IP address; IPv4 must be mapped into IPv6.
pub fn addressee(mac: [u8; 6], address: [u8; 16], ports: Ports) -> Addressee {
    of(mac, ports.first(), address_words(address))
}

/// Read whom a frame is addressed to; `None` if it is no UDP.
#[inline(always)]
pub fn addressed_to(packet: &(impl Packet + ?Sized)) -> Option<Addressee> {
    let (v6, port) = udp_port(packet)?;
    let first = Ports::around(port).first();
    if first == 0 {
        return None;
    }
    if v6 {
        let head = packet.head::<V6_HEADERS>()?;
        return Some(of(mac(head), first, [u64_ne(head, v6::DST), u64_ne(head, v6::DST + 8)]));
    }
    let head = packet.head::<V4_HEADERS>()?;
    let [a, b, c, d] = u32_ne(head, v4::DST).to_ne_bytes();
    Some(of(mac(head), first, [0, u64::from_ne_bytes([0, 0, 0xff, 0xff, a, b, c, d])]))
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
