//! What a message of a tunnel is: its place in its flow, the packet's `virtio_net_hdr`, and the packet. From peers all of it is hostile.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use spray_nic::net::Tun;

/// Bytes before the `virtio_net_hdr`: what the message is, its lane, and its number there.
pub const HEADER: usize = 8;
/// The longest packet: IPv4 and IPv6 without jumbograms.
const MOST: usize = 65_575;
/// The longest message.
pub const MESSAGE: usize = HEADER + Tun::HEADER + MOST;
/// Lanes that packets of a tunnel keep their order in. Flows that share one wait for each other, which is no harm but for time.
pub const LANES: u16 = 1024;

/// A packet in a tunnel, and the version of this layout.
const MAGIC: [u8; 2] = [b'T', 1];
/// The packet's checksum is still to be made: `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
const NEEDS_CHECKSUM: u8 = 1;
/// Of `VIRTIO_NET_HDR_GSO_...`: what the segments will be, and that of TCP with ECN.
const SEGMENTS_NONE: u8 = 0;
const SEGMENTS_TCP4: u8 = 1;
const SEGMENTS_TCP6: u8 = 4;
const SEGMENTS_UDP: u8 = 5;
const SEGMENTS_ECN: u8 = 0x80;

/// Fewest bytes of a TCP segment: Linux's own sends no fewer (`tcp_min_snd_mss`), and with fewer the headers would be most of what the
/// kernel makes of a packet.
const MIN_TCP_SEGMENT: usize = 48;
/// Most segments of a UDP packet, as Linux takes from its own sockets.
const MAX_UDP_SEGMENTS: usize = 128;

/// Where a packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub lane: u16,
}

/// A message's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub lane: u16,
    pub number: u32,
}

/// Writes the header of a message, and takes off the packet's header what is of this machine alone: that its checksum was checked here.
//= docs/specs/endpoint.md#END-40 a message of a tunnel
pub fn begin(message: &mut [u8], place: Place) {
    message[..2].copy_from_slice(&MAGIC);
    message[2..4].copy_from_slice(&place.lane.to_le_bytes());
    message[4..8].copy_from_slice(&place.number.to_le_bytes());
    message[HEADER] &= NEEDS_CHECKSUM;
}

/// The place of a message and the flow of its packet; `None` where it is none that a kernel should get.
//= docs/specs/endpoint.md#END-42 both fit the packet
pub fn check(message: &[u8]) -> Option<(Place, Flow)> {
    let header = message.first_chunk::<HEADER>().filter(|header| header[..2] == MAGIC)?;
    let place = Place {
        lane: u16::from_le_bytes([header[2], header[3]]),
        number: u32::from_le_bytes([header[4], header[5], header[6], header[7]]),
    };
    if place.lane >= LANES || message.len() > MESSAGE {
        return None;
    }
    let (offload, packet) = message[HEADER..].split_first_chunk::<{ Tun::HEADER }>()?;
    let flow = flow(packet)?;
    fits(offload, packet).then_some((place, flow))
}

/// Whether the header promises no more than the packet has, and the kernel makes no more of it than is usual.
//= docs/specs/endpoint.md#END-42 a segment of TCP has 48 bytes at least
fn fits(offload: &[u8; Tun::HEADER], packet: &[u8]) -> bool {
    let word = |at: usize| usize::from(u16::from_le_bytes([offload[at], offload[at + 1]]));
    let [flags, segments, ..] = *offload;
    let (header_bytes, segment_bytes, from, offset) = (word(2), word(4), word(6), word(8));
    let is_v4 = packet.first().is_some_and(|first| first >> 4 == 4);
    let segments_fit = match segments & !SEGMENTS_ECN {
        SEGMENTS_NONE => segments == SEGMENTS_NONE,
        SEGMENTS_TCP4 => is_v4 && segment_bytes >= MIN_TCP_SEGMENT,
        SEGMENTS_TCP6 => !is_v4 && segment_bytes >= MIN_TCP_SEGMENT,
        SEGMENTS_UDP => {
            let data = packet.len().saturating_sub(header_bytes);
            segments == SEGMENTS_UDP && segment_bytes > 0 && data.div_ceil(segment_bytes) <= MAX_UDP_SEGMENTS
        }
        _ => false,
    };
    let checksum_fits = match flags {
        0 => segments == SEGMENTS_NONE,
        NEEDS_CHECKSUM => from + offset + 2 <= packet.len(),
        _ => false,
    };
    segments_fit && checksum_fits && header_bytes <= packet.len()
}

/// The flow of an IP packet: its addresses, and a lane by them and, where it has any, its ports. Fragments have none.
//= docs/specs/endpoint.md#END-40 a fragment has no ports
pub fn flow(packet: &[u8]) -> Option<Flow> {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    let (source, destination, protocol, rest) = match packet.first()? >> 4 {
        4 => {
            let header = packet.first_chunk::<20>()?;
            let header_bytes = usize::from(header[0] & 0xf) * 4;
            let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
            let rest = if is_fragment || header_bytes < 20 { None } else { packet.get(header_bytes..) };
            (address::<4>(header, 12)?, address::<4>(header, 16)?, header[9], rest)
        }
        6 => {
            let header = packet.first_chunk::<40>()?;
            (address::<16>(header, 8)?, address::<16>(header, 24)?, header[6], packet.get(40..))
        }
        _ => return None,
    };
    let ports = rest.and_then(|rest| rest.first_chunk::<4>()).filter(|_| matches!(protocol, TCP | UDP));
    let mut hasher = DefaultHasher::new();
    (source, destination, protocol, ports).hash(&mut hasher);
    Some(Flow { source, destination, lane: (hasher.finish() % u64::from(LANES)) as u16 })
}

fn address<const N: usize>(header: &[u8], at: usize) -> Option<IpAddr>
where
    IpAddr: From<[u8; N]>,
{
    header.get(at..)?.first_chunk::<N>().map(|bytes| (*bytes).into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn v4(source: u8, ports: [u8; 4], fragment: bool) -> Vec<u8> {
        let mut packet = vec![0; 100];
        (packet[0], packet[9]) = (0x45, 6);
        packet[6] = if fragment { 0x20 } else { 0x40 };
        packet[12..16].copy_from_slice(&[10, 0, 0, source]);
        packet[16..20].copy_from_slice(&[10, 0, 0, 2]);
        packet[20..24].copy_from_slice(&ports);
        packet
    }

    fn message(offload: [u8; 10], packet: &[u8]) -> Vec<u8> {
        let mut message = [&[0; HEADER][..], &offload, packet].concat();
        begin(&mut message, Place { lane: 7, number: 0x0102_0304 });
        message
    }

    //= docs/specs/endpoint.md#END-40 a fragment has no ports
    #[test]
    fn a_flow_is_its_addresses_and_ports_and_fragments_have_none() {
        let lane = |source, ports, fragment| flow(&v4(source, ports, fragment)).unwrap().lane;
        assert_eq!(lane(1, [1; 4], false), lane(1, [1; 4], false));
        let others: Vec<_> = (0..64).map(|port| lane(1, [port, 1, 1, 1], false)).collect();
        assert!(others.iter().collect::<std::collections::HashSet<_>>().len() > 50, "ports spread over lanes");
        assert_eq!(lane(1, [1; 4], true), lane(1, [2; 4], true));
        let found = flow(&v4(9, [1; 4], false)).unwrap();
        assert_eq!((found.source, found.destination), ([10, 0, 0, 9].into(), [10, 0, 0, 2].into()));
        let mut v6 = vec![0x60; 60];
        v6[8..24].copy_from_slice(&[1; 16]);
        assert_eq!(flow(&v6).unwrap().source, IpAddr::from([1; 16]));
        assert_eq!(flow(&v6[..39]), None);
    }

    //= docs/specs/endpoint.md#END-40 packets as messages
    #[test]
    fn what_the_kernel_gave_passes_and_what_promises_more_than_there_is_does_not() {
        let packet = v4(1, [1; 4], false);
        // NEEDS_CSUM, TCPV4, a header of 40 bytes, segments of 1,448, the checksum at 20 + 16.
        let segments = [1, 1, 40, 0, 0xa8, 5, 20, 0, 16, 0];
        let (place, found) = check(&message(segments, &packet)).unwrap();
        assert_eq!((place, found), (Place { lane: 7, number: 0x0102_0304 }, flow(&packet).unwrap()));
        let mut checked_here = message([2, 0, 0, 0, 0, 0, 0, 0, 0, 0], &packet);
        assert!(check(&checked_here).is_some(), "that it was checked is taken off");
        checked_here[HEADER] = 2;
        assert_eq!(check(&checked_here), None);
        for (at, value, what) in [
            (1, 4, "IPv6 segments of IPv4"),
            (1, 3, "unknown segments"),
            (1, 0x80, "ECN of no segments"),
            (2, 101, "a header longer than the packet"),
            (4, 47, "segments of 168 bytes are fine, but of 47 not"),
            (6, 99, "a checksum behind the packet"),
            (0, 0, "segments without a checksum"),
            (0, 3, "flags of one machine"),
        ] {
            let mut message = message(segments, &packet);
            message[HEADER + at] = value;
            if at == 4 {
                message[HEADER + 5] = 0;
            }
            assert_eq!(check(&message), None, "{what}");
        }
        let datagrams = |bytes: u8, payload: usize| {
            let packet = [v4(17, [1; 4], false), vec![0; payload]].concat();
            let header = packet.len() - payload;
            check(&message([1, 5, header as u8, 0, bytes, 0, 20, 0, 6, 0], &packet)).is_some()
        };
        assert_eq!(
            [(1, 128), (1, 129), (2, 256), (0, 9)].map(|(each, all)| datagrams(each, all)),
            [true, false, true, false]
        );
        assert_eq!(check(&message([0; 10], &packet[..19])), None);
        let mut far = message([0; 10], &packet);
        far[2..4].copy_from_slice(&LANES.to_le_bytes());
        assert_eq!(check(&far), None, "a lane that is none");
        let mut other = message([0; 10], &packet);
        other[1] = 2;
        assert_eq!(check(&other), None, "another version");
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = check(&bytes);
            let _ = check(&message([1, 1, 40, 0, 1, 0, 20, 0, 16, 0], &bytes));
        }
    }
}
