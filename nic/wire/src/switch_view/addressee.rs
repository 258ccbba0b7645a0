//! Whom a frame of ours is addressed to: what the filter of a host's interface goes by.

use super::words::{u32_ne, u64_ne};
use super::{Address, Packet, V4_HEADERS, V6_HEADERS, address_words, classify};
use crate::offsets::{v4, v6};

/// An Ethernet address and an IP address, as three words. No addressee is all zeros.
pub type Addressee = [u64; 3];

/// The last two bytes of the word that holds an Ethernet address: they tell an addressee from an empty place in a table.
const MARK: [u8; 2] = [1, 0];

/// Return the words of an Ethernet address and an IP address; IPv4 must be mapped into IPv6.
pub fn addressee(mac: [u8; 6], address: [u8; 16]) -> Addressee {
    of(mac, address_words(address))
}

/// Read whom a frame is addressed to; `None` if it is not ours.
#[inline(always)]
pub fn addressed_to(packet: &(impl Packet + ?Sized)) -> Option<Addressee> {
    if classify(packet)? {
        let head = packet.head::<V6_HEADERS>()?;
        return Some(of(mac(head), [u64_ne(head, v6::DST), u64_ne(head, v6::DST + 8)]));
    }
    let head = packet.head::<V4_HEADERS>()?;
    let [a, b, c, d] = u32_ne(head, v4::DST).to_ne_bytes();
    Some(of(mac(head), [0, u64::from_ne_bytes([0, 0, 0xff, 0xff, a, b, c, d])]))
}

#[inline(always)]
fn mac<const N: usize>(head: &[u8; N]) -> [u8; 6] {
    [head[0], head[1], head[2], head[3], head[4], head[5]]
}

#[inline(always)]
fn of([a, b, c, d, e, f]: [u8; 6], [first, second]: Address) -> Addressee {
    [u64::from_ne_bytes([a, b, c, d, e, f, MARK[0], MARK[1]]), first, second]
}
