//! Changes that a switch makes to a frame (WIRE-14, WIRE-15).

use proptest::prelude::*;

use super::samples::*;
use crate::checksum::{add, fold, update_u16};
use crate::offsets::*;
use crate::switch_view::{
    self, PacketFields, Parsed, addressed_to, addressee, classify, packet_fields, trim, trimmed_udp_checksum_v6,
};
use crate::*;

fn sum(bytes: &[u8]) -> u16 {
    !fold(add(0, bytes))
}

/// Computes the checksum literally as in RFC 1071: one 16-bit word at a time.
fn sum_literal(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0))).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

proptest! {
    #[test]
    fn checksum_is_that_of_rfc_1071(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(sum(&bytes), sum_literal(&bytes));
    }

    /// The first word of a header is never 0, which distinguishes the two zeros (RFC 1624 §4).
    #[test]
    fn the_incremental_checksum_equals_the_full_one(
        mut bytes in prop::collection::vec(any::<u8>(), 40..80), at in 1..16usize, word: u16,
    ) {
        bytes[0] |= 0x40;
        let before = sum(&bytes);
        let old = u16::from_be_bytes([bytes[2 * at], bytes[2 * at + 1]]);
        bytes[2 * at..2 * at + 2].copy_from_slice(&word.to_be_bytes());
        prop_assert_eq!(update_u16(before, old, word), sum(&bytes));
    }

    /// Hosts parse the frame to the same values after any change; only control frames pause a
    /// sender.
    //= docs/specs/wire.md#WIRE-14 changes by a switch
    //= docs/specs/switch.md#SW-14 checksums
    #[test]
    fn what_a_switch_writes_keeps_the_frame_valid(
        e in any_envelope(), c in any_common(), (body, payload) in any_body(), ttl: u8, ecn in 0..4u8, pause: bool,
    ) {
        let mut frame = build(&e, &c, &body, &payload);
        let changes = switch_view::Changes { ttl, ecn, pause };
        switch_view::write(frame.as_mut_slice(), e.is_v6(), &changes).unwrap();
        let control = matches!(e.dscp, DSCP_CONTROL | DSCP_PAUSE);
        let dscp = if !control { e.dscp } else if pause { DSCP_PAUSE } else { DSCP_CONTROL };
        let e = Envelope { ttl, ecn: Ecn::from_tos(ecn), dscp, ..e };
        prop_assert_eq!(&frame, &build(&e, &c, &body, &payload));
        prop_assert_eq!(parse(&frame, Ports::DEFAULT).unwrap().unwrap().is_pause(), control && pause);
    }

    //= docs/specs/wire.md#WIRE-15 trimming
    //= docs/specs/switch.md#SW-14 checksums
    #[test]
    fn a_trimmed_frame_parses_to_its_header(e in any_envelope(), c in any_common()) {
        let (body, payload) = bodies().swap_remove(0);
        let mut frame = build(&e, &c, &body, &payload);
        let len = trim(&mut frame, Ports::DEFAULT).unwrap();
        prop_assert_eq!(len, trimmed_len(e.is_v6()));
        let envelope = Envelope { dscp: DSCP_TRIMMED, ..e };
        let expected = Frame { envelope, common: c, body, payload: &[], trimmed: true, sealed: false };
        prop_assert_eq!(parse(&frame[..len], Ports::DEFAULT), Ok(Some(expected)));
        // Remaining bytes count as padding, and a second switch trims nothing more.
        prop_assert_eq!(parse(&frame, Ports::DEFAULT), Ok(Some(expected)));
        frame.truncate(len);
        prop_assert_eq!(trim(&mut frame, Ports::DEFAULT), None);
    }

    #[test]
    fn the_trimmed_checksum_ignores_the_old_checksum(junk: u16) {
        let mut frame = data_frame(true);
        trim(&mut frame, Ports::DEFAULT).unwrap();
        let expected = trimmed_udp_checksum_v6(frame.first_chunk().unwrap(), TRIMMED_UDP_LENGTH, 0);
        let at = udp_checksum_offset(true);
        frame[at..at + 2].copy_from_slice(&junk.to_be_bytes());
        prop_assert_eq!(trimmed_udp_checksum_v6(frame.first_chunk().unwrap(), TRIMMED_UDP_LENGTH, 0), expected);
    }
}

#[test]
fn offsets_point_at_the_fields() {
    for v6 in [false, true] {
        let e = Envelope { ttl: 33, ..envelope(v6) };
        let (body, payload) = bodies().swap_remove(0);
        let frame = build(&e, &common(), &body, &payload);
        let u16_at = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        assert_eq!(u16_at(udp_src_port_offset(v6)), e.src_port.number());
        assert_eq!(u16_at(udp_dst_port_offset(v6)), Ports::DEFAULT.first());
        assert_eq!(usize::from(u16_at(udp_length_offset(v6))), frame.len() - udp_offset(v6));
        assert_eq!(u16_at(udp_checksum_offset(v6)) != 0, v6);
        assert_eq!((frame[version_offset(v6)], frame[kind_offset(v6)]), (VERSION, Kind::Data as u8));
        assert_eq!(frame[flags_offset(v6)..][..2], [7, 0]);
        assert_eq!(classify(frame.as_slice(), Ports::DEFAULT), Some(v6));
        assert_eq!(frame[if v6 { v6::HOP_LIMIT } else { v4::TTL }], 33);
    }
    assert_eq!((trimmed_len(false), trimmed_len(true)), (106, 126));
    assert_eq!(TRIMMED_UDP_LENGTH, 72);
    assert_eq!((min_len(false), min_len(true)), (62, 82));
}

#[test]
fn the_last_port_has_its_own_trimmed_dscp() {
    for v6 in [false, true] {
        for (dscp, last) in [(DSCP_TRIMMED, false), (DSCP_TRIMMED_LAST, true)] {
            let mut frame = data_frame(v6);
            let Parsed::Ours(headers) = switch_view::parse(frame.as_slice(), Ports::DEFAULT) else {
                panic!("not ours")
            };
            let len = switch_view::cut(frame.as_mut_slice(), v6, dscp, headers.trimmed_len).unwrap() as usize;
            let frame = parse(&frame[..len], Ports::DEFAULT).unwrap().unwrap();
            assert_eq!((frame.trimmed, frame.is_trimmed_last(), frame.envelope.dscp), (true, last, dscp));
        }
        // A trimmed DSCP alone does not make a frame trimmed.
        let (body, payload) = bodies().swap_remove(0);
        let frame = build(&Envelope { dscp: DSCP_TRIMMED_LAST, ..envelope(v6) }, &common(), &body, &payload);
        let frame = parse(&frame, Ports::DEFAULT).unwrap().unwrap();
        assert!(!frame.trimmed && !frame.is_trimmed_last());
    }
}

#[test]
fn only_data_is_trimmed() {
    for v6 in [false, true] {
        for (body, payload) in bodies() {
            let frame = build(&envelope(v6), &common(), &body, &payload);
            let mut trimmed = frame.clone();
            let result = trim(&mut trimmed, Ports::DEFAULT);
            assert_eq!(result.is_some(), body.kind() == Kind::Data);
            assert_eq!(trimmed == frame, result.is_none());
        }
    }
}

/// Increments the hops and sets the mark on words and their checksum, as the XDP program does.
#[test]
fn hop_and_mark_keep_the_frame_valid() {
    let mut frame = data_frame(false);
    let word = |frame: &[u8], at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let (tos, ttl) = (word(&frame, v4::VERSION_IHL), word(&frame, v4::TTL));
    let checksum = update_u16(word(&frame, v4::CHECKSUM), tos, tos | 3);
    let checksum = update_u16(checksum, ttl, ttl - 0x100);
    let edits: [(usize, u16); 3] = [(v4::VERSION_IHL, tos | 3), (v4::TTL, ttl - 0x100), (v4::CHECKSUM, checksum)];
    for (at, value) in edits {
        frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
    let parsed = parse(&frame, Ports::DEFAULT).unwrap().unwrap();
    assert_eq!((parsed.envelope.hops(), parsed.envelope.marked()), (1, true));
}

#[test]
fn switches_read_the_packet_number_of_a_frame() {
    for v6 in [false, true] {
        for (body, payload) in bodies() {
            let mut frame = build(&envelope(v6), &common(), &body, &payload);
            let fields = packet_fields(frame.as_slice(), v6);
            let expected = match &body {
                Body::Data(Data { psn, .. }) => {
                    PacketFields { number: *psn, stamp_ps: STAMP.wrapping_mul(125), ..PacketFields::default() }
                }
                Body::Ack(Ack { cumulative, hops, trimmed, .. }) => PacketFields {
                    number: *cumulative,
                    stamp_ps: STAMP.wrapping_mul(125),
                    hops: *hops,
                    is_ack: !trimmed,
                },
                _ => PacketFields::default(),
            };
            assert_eq!(fields, expected, "{body:?}");
            // From a truncated frame, nothing is read or only the fields that are present.
            (0..frame.len()).for_each(|len| assert!(packet_fields(&frame[..len], v6).hops <= fields.hops));
            frame.truncate(min_len(v6));
            assert_eq!(packet_fields(frame.as_slice(), v6), PacketFields::default());
        }
    }
}

#[test]
fn a_frame_is_for_the_interface_that_its_headers_name() {
    for v6 in [false, true] {
        let to = envelope(v6);
        let mapped = match to.dst {
            core::net::IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            core::net::IpAddr::V6(address) => address.octets(),
        };
        for (body, payload) in bodies() {
            let mut frame = build(&to, &common(), &body, &payload);
            assert_eq!(addressed_to(frame.as_slice()), Some(addressee(to.dst_mac, mapped, Ports::DEFAULT)));
            assert_ne!(addressed_to(frame.as_slice()), Some(addressee(to.src_mac, mapped, Ports::DEFAULT)));
            frame[ETHERTYPE] ^= 1;
            assert_eq!(addressed_to(frame.as_slice()), None);
        }
    }
    for v6 in [false, true] {
        let start = udp_payload_offset(v6);
        let ours = data_frame(v6);
        let with = |at: usize, bytes: &[u8]| {
            let mut frame = ours.clone();
            frame[start + at..][..bytes.len()].copy_from_slice(bytes);
            addressed_to(frame.as_slice()).is_some()
        };
        assert!(with(0, &[1]) && with(0, &[2]) && with(3, &[63]));
        assert!(
            !with(0, &[3]) && !with(1, &[0]) && !with(1, &[14]) && !with(3, &[64]),
            "invalid version, kind or shard"
        );
        assert!(!with(0, &[0x12, 0x34, 0x81, 0x80]), "a DNS response");
        let port = [ours[start - 8], ours[start - 7]];
        assert!(with(0, &[0, 0, !port[0], !port[1]]) && !with(0, &[0, 0, port[0], port[1]]), "bare frames");
        assert!(addressed_to(&ours[..start + 64]).is_some() && addressed_to(&ours[..start + 63]).is_none());
        assert!(addressed_to(&ours[..start + 3]).is_none());
    }
    assert_ne!(addressee([0; 6], [0; 16], Ports::DEFAULT), [0; 3]);
    // A datagram of another program whose addressee would equal that of an empty map slot.
    let mut zeroed = data_frame(true);
    [0..6, 38..54, 56..58].into_iter().for_each(|zeros| zeroed[zeros].fill(0));
    assert_eq!(addressed_to(zeroed.as_slice()), None);
}
