//! ICMP time-exceeded replies, from which `traceroute` and `spray paths` learn the hops.

use etherparse::icmpv4::TimeExceededCode as V4;
use etherparse::icmpv6::TimeExceededCode as V6;
use etherparse::{Icmpv4Type, Icmpv6Type, NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use spray_fabric::switch_addresses;
use spray_wire::offsets::ETHERNET_BYTES;

/// Maximum bytes quoted, so that a reply fits the minimum MTU (RFC 1812 §4.3.2.3, RFC 4443 §3.3).
const QUOTED_V4: usize = 576 - 20 - 8;
const QUOTED_V6: usize = 1_280 - 40 - 8;

const TTL: u8 = 64;

/// The reply to an expired frame; `None` to ICMP errors, later fragments and malformed packets.
//= docs/specs/switch.md#SW-30 TTL expiry
pub(super) fn reply(switch: usize, frame: &[u8]) -> Option<Vec<u8>> {
    let packet = SlicedPacket::from_ethernet(frame).ok()?;
    let (own_v4, own_v6) = switch_addresses(switch);
    let is_error = match &packet.transport {
        Some(TransportSlice::Icmpv4(icmp)) => matches!(icmp.type_u8(), 3..=5 | 11 | 12),
        Some(TransportSlice::Icmpv6(icmp)) => icmp.type_u8() < 128,
        _ => false,
    };
    let (to, from) = (frame.first_chunk()?, frame[6..].first_chunk()?);
    let builder = PacketBuilder::ethernet2(*to, *from);
    let quoted = &frame[ETHERNET_BYTES..];
    let mut answer = Vec::new();
    let written = match packet.net.as_ref()? {
        _ if is_error => return None,
        NetSlice::Ipv4(ip) if ip.header().fragments_offset().value() == 0 => {
            let quoted = &quoted[..quoted.len().min(ip.header().total_len().into()).min(QUOTED_V4)];
            let builder = builder.ipv4(own_v4.octets(), ip.header().source(), TTL);
            let builder = builder.icmpv4(Icmpv4Type::TimeExceeded(V4::TtlExceededInTransit));
            builder.write(&mut answer, quoted)
        }
        NetSlice::Ipv6(ip) => {
            let whole = ip.header().header_len() + usize::from(ip.header().payload_length());
            let quoted = &quoted[..quoted.len().min(whole).min(QUOTED_V6)];
            let builder = builder.ipv6(own_v6.octets(), ip.header().source(), TTL);
            let builder = builder.icmpv6(Icmpv6Type::TimeExceeded(V6::HopLimitExceeded));
            builder.write(&mut answer, quoted)
        }
        _ => return None,
    };
    written.ok().map(|()| answer)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const SWITCH: [u8; 6] = [2, 0, 0, 0, 0, 9];

    fn udp(is_v6: bool, bytes: usize) -> Vec<u8> {
        let builder = PacketBuilder::ethernet2(HOST, SWITCH);
        let builder = match is_v6 {
            true => builder.ipv6([1; 16], [2; 16], 1),
            false => builder.ipv4([10, 0, 0, 1], [10, 0, 0, 3], 1),
        };
        let mut frame = Vec::new();
        builder.udp(49_152, 33_434).write(&mut frame, &vec![7; bytes]).unwrap();
        frame
    }

    //= docs/specs/switch.md#SW-30 TTL expiry
    #[test]
    fn the_error_names_the_switch_and_quotes_the_packet() {
        for (is_v6, header, most) in [(false, 14 + 20 + 8, 548), (true, 14 + 40 + 8, 1_232)] {
            for bytes in [0, 20, 2_000] {
                let mut expired = udp(is_v6, bytes);
                let packet = expired[14..].to_vec();
                expired.extend([0xff; 5]);
                let told = reply(258, &expired).unwrap();
                assert_eq!((&told[..6], &told[6..12]), (&HOST[..], &SWITCH[..]));
                assert_eq!(told[header..], packet[..packet.len().min(most)], "without the frame's padding");
                let sliced = SlicedPacket::from_ethernet(&told).unwrap();
                match (sliced.net.unwrap(), sliced.transport.unwrap()) {
                    (NetSlice::Ipv4(ip), TransportSlice::Icmpv4(icmp)) => {
                        assert_eq!(ip.header().source_addr(), Ipv4Addr::new(10, 255, 1, 3));
                        assert_eq!(ip.header().destination(), [10, 0, 0, 1]);
                        assert_eq!((icmp.type_u8(), icmp.code_u8()), (11, 0));
                    }
                    (NetSlice::Ipv6(ip), TransportSlice::Icmpv6(icmp)) => {
                        assert_eq!(ip.header().source_addr(), "fd53:5052:4159::1:0:103".parse::<Ipv6Addr>().unwrap());
                        assert_eq!(ip.header().destination(), [1; 16]);
                        assert_eq!((icmp.type_u8(), icmp.code_u8()), (3, 0));
                        assert!(icmp.is_checksum_valid(ip.header().source(), [1; 16]));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn errors_later_fragments_and_invalid_frames_are_not_answered() {
        assert_eq!(reply(0, &reply(0, &udp(false, 9)).unwrap()), None);
        assert_eq!(reply(0, &reply(0, &udp(true, 9)).unwrap()), None);
        let mut fragment = udp(false, 9);
        fragment[21] = 1;
        assert_eq!(reply(0, &fragment), None);
        for frame in [udp(false, 9), udp(true, 9)] {
            (0..frame.len()).for_each(|len| assert_eq!(reply(0, &frame[..len]), None, "{len}"));
        }
    }
}
