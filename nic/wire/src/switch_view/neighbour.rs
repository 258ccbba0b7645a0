//! Address resolution: ARP (RFC 826) and neighbour discovery (RFC 4861).

use super::words::{u16_at, u32_ne, u64_ne};
use super::{Address, Packet, at, v4, v6};

const ETHERTYPE_ARP: u16 = 0x0806;
const ICMP_V6: u8 = 58;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Offset of the target address in ARP for IPv4 over Ethernet, and in neighbour discovery.
const ARP_TARGET: usize = at::ETHERNET_BYTES + 24;
const ND_TARGET: usize = v6::UDP + 8;

/// Returns the address that a request resolves, or that of the requester in an advertisement; in
/// ARP always the target. `None` of any other frame.
#[inline(always)]
pub fn neighbour_of(packet: &(impl Packet + ?Sized)) -> Option<Address> {
    let head = packet.head::<{ ARP_TARGET + 4 }>()?;
    match u16_at(head, at::ETHERTYPE) {
        ETHERTYPE_ARP => Some(mapped(u32_ne(head, ARP_TARGET))),
        at::ETHERTYPE_V6 => {
            let head = packet.head::<{ ND_TARGET + 16 }>()?;
            let place = match (head[v6::NEXT_HEADER], head[v6::UDP]) {
                (ICMP_V6, SOLICITATION) => ND_TARGET,
                (ICMP_V6, ADVERTISEMENT) => v6::DST,
                _ => return None,
            };
            Some([u64_ne(head, place), u64_ne(head, place + 8)])
        }
        _ => None,
    }
}

/// Returns the source of an IP packet, or `None` of any other frame.
#[inline(always)]
pub fn source_of(packet: &(impl Packet + ?Sized)) -> Option<Address> {
    let head = packet.head::<{ v4::UDP }>()?;
    match u16_at(head, at::ETHERTYPE) {
        at::ETHERTYPE_V4 => Some(mapped(u32_ne(head, v4::SRC))),
        at::ETHERTYPE_V6 => {
            let head = packet.head::<{ v6::UDP }>()?;
            Some([u64_ne(head, v6::SRC), u64_ne(head, v6::SRC + 8)])
        }
        _ => None,
    }
}

/// An IPv4 address as it lies in memory, mapped into IPv6.
#[inline(always)]
fn mapped(address: u32) -> Address {
    let [a, b, c, d] = address.to_ne_bytes();
    [0, u64::from_ne_bytes([0, 0, 0xff, 0xff, a, b, c, d])]
}

#[cfg(test)]
mod tests {
    use super::super::address_words;
    use super::*;

    #[test]
    fn requests_name_their_target_and_replies_the_requester() {
        let mut arp = [0; 60];
        arp[12..14].copy_from_slice(&ETHERTYPE_ARP.to_be_bytes());
        arp[28..32].copy_from_slice(&[10, 0, 0, 1]);
        arp[38..42].copy_from_slice(&[10, 0, 0, 2]);
        let mapped = address_words([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2]);
        assert_eq!(neighbour_of(&arp[..]), Some(mapped));
        assert_eq!(neighbour_of(&arp[..41]), None);
        let mut nd = [0; 86];
        nd[12..14].copy_from_slice(&at::ETHERTYPE_V6.to_be_bytes());
        nd[14] = 0x60;
        nd[20] = ICMP_V6;
        nd[38..54].fill(0xaa);
        nd[62..78].fill(0xbb);
        for (kind, of) in [(SOLICITATION, Some(0xbb)), (ADVERTISEMENT, Some(0xaa)), (128, None)] {
            nd[54] = kind;
            assert_eq!(neighbour_of(&nd[..]), of.map(|byte| address_words([byte; 16])), "{kind}");
        }
        nd[54] = SOLICITATION;
        assert_eq!(neighbour_of(&nd[..77]), None);
        nd[22..38].fill(0xcc);
        assert_eq!(source_of(&nd[..]), Some(address_words([0xcc; 16])));
        nd[12..14].copy_from_slice(&at::ETHERTYPE_V4.to_be_bytes());
        nd[26..30].copy_from_slice(&[10, 0, 0, 2]);
        assert_eq!((source_of(&nd[..]), source_of(&arp[..])), (Some(mapped), None));
    }
}
