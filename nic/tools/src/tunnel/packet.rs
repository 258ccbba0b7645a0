//! Messages of a tunnel: packets with their lane, number and `virtio_net_hdr`. Input is untrusted.

use std::hash::BuildHasher;
use std::net::IpAddr;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use spray_nic::net::Tun;

/// Bytes before each packet: lane, number, and length including `virtio_net_hdr`.
const HEADER: usize = 10;
/// Without jumbograms.
pub const PACKET: usize = Tun::HEADER + 65_575;
pub const MESSAGE: usize = MAGIC.len() + HEADER + PACKET;
//= docs/specs/endpoint.md#END-40 at most 32 packets
pub const PACKETS: u32 = 32;
/// Bounds the data that one loss delays.
const PACKED: usize = 16 << 10;
/// Flows in one lane may delay each other.
pub const LANES: u16 = 1024;

/// Type and version.
const MAGIC: [u8; 2] = [b'T', 2];
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum is still to be computed.
const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_*`.
const SEGMENTS_NONE: u8 = 0;
const SEGMENTS_TCP4: u8 = 1;
const SEGMENTS_TCP6: u8 = 4;
const SEGMENTS_UDP: u8 = 5;
const SEGMENTS_ECN: u8 = 0x80;

/// As in Linux (`tcp_min_snd_mss`): with shorter segments, headers would dominate.
const MIN_TCP_SEGMENT: usize = 48;
/// As in Linux, for its own sockets.
const MAX_UDP_SEGMENTS: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    pub source: IpAddr,
    pub destination: IpAddr,
    protocol: u8,
    ports: Option<[u8; 4]>,
}

impl Flow {
    /// The hash is secret, so that a sender cannot choose to share another's lane.
    //= docs/specs/endpoint.md#END-40 by a hash with a secret
    pub fn lane(&self, hash: &impl BuildHasher) -> u16 {
        (hash.hash_one(self) % u64::from(LANES)) as u16
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub lane: u16,
    pub number: u32,
}

#[derive(Debug, Default)]
pub struct Packer {
    bytes: BytesMut,
    packets: u32,
}

impl Packer {
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// `bytes` includes `virtio_net_hdr`.
    pub fn fits(&self, bytes: usize) -> bool {
        self.packets == 0 || self.packets < PACKETS && self.len() + HEADER + bytes <= PACKED
    }

    /// Clears flags of `virtio_net_hdr` that are valid on this machine only.
    //= docs/specs/endpoint.md#END-40 a message of a tunnel
    pub fn add(&mut self, place: Place, packet: &[u8]) {
        if self.packets == 0 {
            self.bytes.put_slice(&MAGIC);
        }
        self.packets += 1;
        self.bytes.reserve(HEADER + packet.len());
        self.bytes.put_u16_le(place.lane);
        self.bytes.put_u32_le(place.number);
        self.bytes.put_u32_le(packet.len() as u32);
        let flags = self.bytes.len();
        self.bytes.put_slice(packet);
        if let Some(flags) = self.bytes.get_mut(flags) {
            *flags &= NEEDS_CHECKSUM;
        }
    }

    pub fn take(&mut self) -> Option<Bytes> {
        (std::mem::take(&mut self.packets) > 0).then(|| self.bytes.split().freeze())
    }
}

/// Ends with `None` at the first packet that is malformed or unsafe for the kernel.
//= docs/specs/endpoint.md#END-42 both fit the packet
pub fn packets(mut message: Bytes) -> impl Iterator<Item = Option<(Place, Bytes, Flow)>> {
    let is_ours = message.len() <= MESSAGE && message.starts_with(&MAGIC);
    message.advance(message.len().min(MAGIC.len()));
    let (mut is_over, mut left) = (false, PACKETS);
    std::iter::from_fn(move || {
        if is_over || is_ours && left < PACKETS && message.is_empty() {
            return None;
        }
        let next = if is_ours && left > 0 { next(&mut message) } else { None };
        left = left.saturating_sub(1);
        is_over = next.is_none();
        Some(next)
    })
}

fn next(message: &mut Bytes) -> Option<(Place, Bytes, Flow)> {
    let place = Place { lane: message.try_get_u16_le().ok()?, number: message.try_get_u32_le().ok()? };
    let bytes = message.try_get_u32_le().ok()? as usize;
    let packet = (place.lane < LANES && bytes <= message.len()).then(|| message.split_to(bytes))?;
    let (offload, ip) = packet.split_first_chunk::<{ Tun::HEADER }>()?;
    let flow = flow(ip).filter(|_| fits(offload, ip))?;
    Some((place, packet, flow))
}

/// Whether the kernel makes no unusual segments of it.
//= docs/specs/endpoint.md#END-42 a segment of TCP has at least 48 bytes
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
    Some(Flow { source, destination, protocol, ports: ports.copied() })
}

fn address<const N: usize>(header: &[u8], at: usize) -> Option<IpAddr>
where
    IpAddr: From<[u8; N]>,
{
    header.get(at..)?.first_chunk::<N>().map(|bytes| (*bytes).into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::RandomState;

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

    const PLACE: Place = Place { lane: 7, number: 0x0102_0304 };
    /// The offset of the only packet of a message, with its `virtio_net_hdr`.
    const AT: usize = MAGIC.len() + HEADER;

    fn message(offload: [u8; 10], packet: &[u8]) -> Vec<u8> {
        let mut packer = Packer::default();
        packer.add(PLACE, &[&offload, packet].concat());
        packer.take().unwrap().into()
    }

    /// Returns the place and the flow of the only packet of a message.
    fn check(message: &[u8]) -> Option<(Place, Flow)> {
        let all: Option<Vec<_>> = packets(Bytes::copy_from_slice(message)).collect();
        all.map(|all| (all[0].0, all[0].2))
    }

    //= docs/specs/endpoint.md#END-40 a fragment has no ports
    #[test]
    fn a_flow_is_its_addresses_and_ports_and_fragments_have_none() {
        let hash = RandomState::new();
        let lane = |source, ports, fragment| flow(&v4(source, ports, fragment)).unwrap().lane(&hash);
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
    fn inconsistent_offload_headers_are_rejected() {
        let packet = v4(1, [1; 4], false);
        // NEEDS_CSUM, TCPV4, a header of 40 bytes, segments of 1,448, the checksum at 20 + 16.
        let segments = [1, 1, 40, 0, 0xa8, 5, 20, 0, 16, 0];
        let (place, found) = check(&message(segments, &packet)).unwrap();
        assert_eq!((place, found), (PLACE, flow(&packet).unwrap()));
        let mut checked_here = message([2, 0, 0, 0, 0, 0, 0, 0, 0, 0], &packet);
        assert!(check(&checked_here).is_some(), "the flag for verified checksums is removed");
        checked_here[AT] = 2;
        assert_eq!(check(&checked_here), None);
        for (at, value, what) in [
            (1, 4, "IPv6 segments of IPv4"),
            (1, 3, "unknown segments"),
            (1, 0x80, "ECN without segments"),
            (2, 101, "a header longer than the packet"),
            (4, 47, "segments of 47 bytes, below the minimum of 48"),
            (6, 99, "a checksum beyond the packet"),
            (0, 0, "segments without a checksum"),
            (0, 3, "flags valid on one machine only"),
        ] {
            let mut message = message(segments, &packet);
            message[AT + at] = value;
            if at == 4 {
                message[AT + 5] = 0;
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
        assert_eq!(check(&far), None, "an invalid lane");
        let mut other = message([0; 10], &packet);
        other[1] = 1;
        assert_eq!(check(&other), None, "another version");
    }

    //= docs/specs/endpoint.md#END-40 by a hash with a secret
    #[test]
    fn lane_collisions_differ_between_tunnels() {
        let flows = || (0..u16::MAX).map(|port| flow(&v4(1, [0, 9, (port >> 8) as u8, port as u8], false)).unwrap());
        let [one, other] = [(); 2].map(|()| RandomState::new());
        let chosen: Vec<_> = flows().filter(|flow| flow.lane(&one) == 7).collect();
        let lanes: BTreeSet<u16> = chosen.iter().map(|flow| flow.lane(&other)).collect();
        assert!(chosen.len() > 30 && lanes.len() > chosen.len() / 2, "{} of {}", lanes.len(), chosen.len());
    }

    //= docs/specs/endpoint.md#END-40 at most 32 packets
    #[test]
    fn short_packets_share_a_message_and_round_trip() {
        let packets_of = |message: &Bytes| packets(message.clone()).collect::<Option<Vec<_>>>();
        let mut packer = Packer::default();
        assert_eq!(packer.take(), None);
        let packet =
            |number: u32, bytes: usize| [&[0; 10][..], &v4(number as u8, [1; 4], false), &vec![9; bytes]].concat();
        let place = |number| Place { lane: 3, number };
        (0..PACKETS).for_each(|number| {
            assert!(packer.fits(packet(number, 1).len()));
            packer.add(place(number), &packet(number, 1));
        });
        assert!(!packer.fits(1), "one packet more");
        let message = packer.take().unwrap();
        let found = packets_of(&message).unwrap();
        assert_eq!(found.len(), PACKETS as usize);
        for (number, (at, bytes, _)) in (0..).zip(found) {
            assert_eq!((at, &bytes[..]), (place(number), &packet(number, 1)[..]));
        }
        let one_more = [&message[..], &message[MAGIC.len()..][..message.len() / 32]].concat();
        assert_eq!(packets_of(&one_more.into()), None);
        assert_eq!(packets_of(&message.slice(..message.len() - 1)), None, "cut");
        assert_eq!(packets_of(&message.slice(..MAGIC.len())), None, "empty");
        // A long packet has a message to itself, and two of medium length are separate.
        assert!(packer.fits(PACKET));
        packer.add(place(0), &packet(0, 9000));
        assert!(!packer.fits(packet(0, 9000).len()) && packer.fits(packet(0, 2000).len()));
        assert!(packer.take().is_some());
        assert_eq!((packer.len(), packer.take()), (0, None));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = check(&bytes);
            let _ = check(&[&MAGIC[..], &bytes].concat());
            let _ = check(&message([1, 1, 40, 0, 1, 0, 20, 0, 16, 0], &bytes));
        }
    }
}
