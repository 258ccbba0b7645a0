//! Malformed and forged bytes: the parser neither panics nor accepts them (WIRE-9 to WIRE-12).

use std::vec::Vec;

use proptest::prelude::*;

use super::samples::*;
use crate::checksum::{udp, update_u16};
use crate::declare::Header as _;
use crate::frame::Covered;
use crate::offsets::{trimmed_len, udp_payload_offset};
use crate::switch_view;
use crate::*;

/// Calls every function that parses bytes from the wire.
fn touch(frame: &[u8]) {
    let _ = parse(frame, Ports::DEFAULT);
    let mut copy = frame.to_vec();
    let _ = switch_view::trim(&mut copy, Ports::DEFAULT);
    let _ = parse(&copy, Ports::DEFAULT);
}

/// Returns the fields that checksums and addresses protect.
fn vouched<'a>(frame: &Frame<'a>) -> (u32, u64, Body, &'a [u8], core::net::IpAddr, core::net::IpAddr, u16) {
    let Frame { envelope: e, common: c, body, payload, .. } = *frame;
    (c.connection, c.cookie, body, payload, e.src, e.dst, e.src_port.number())
}

#[test]
fn truncated_at_each_length() {
    for frame in frames() {
        for len in 0..frame.len() {
            touch(&frame[..len]);
            assert!(!matches!(parse(&frame[..len], Ports::DEFAULT), Ok(Some(_))), "{len} of {}", frame.len());
        }
    }
}

/// The lengths and the IP checksum are kept valid, so that only the spray header's own checks are
/// left.
#[test]
fn truncated_at_each_length_with_corrected_lengths() {
    for (body, payload) in bodies() {
        let frame = build(&envelope(false), &common(), &body, &payload);
        for len in udp_payload_offset(false)..frame.len() {
            let mut short = frame[..len].to_vec();
            set_v4_lengths(&mut short);
            touch(&short);
            assert!(parse(&short, Ports::DEFAULT).is_err(), "{:?}: {len} of {}", body.kind(), frame.len());
        }
    }
}

fn set_v4_lengths(frame: &mut [u8]) {
    let total = (frame.len() - 14) as u16;
    let old = u16::from_be_bytes([frame[16], frame[17]]);
    let checksum = update_u16(u16::from_be_bytes([frame[24], frame[25]]), old, total);
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame[38..40].copy_from_slice(&(total - 20).to_be_bytes());
}

#[test]
fn no_flipped_bit_changes_what_the_checksum_covers() {
    for mut frame in frames() {
        let original = frame.clone();
        let expected = parse(&original, Ports::DEFAULT).unwrap().unwrap();
        for bit in 0..frame.len() * 8 {
            frame[bit / 8] ^= 1 << (bit % 8);
            if let Ok(Some(parsed)) = parse(&frame, Ports::DEFAULT) {
                assert_eq!(vouched(&parsed), vouched(&expected), "bit {bit}");
                assert!(!parsed.trimmed);
            }
            frame[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// Over IPv4 without a UDP checksum, the spray checksums detect every single-bit error.
//= docs/specs/wire.md#WIRE-10 header checksum
//= docs/specs/wire.md#WIRE-11 payload checksum
#[test]
fn checksums_detect_each_flipped_bit_after_the_udp_header() {
    for (body, payload) in bodies() {
        let mut frame = build(&envelope(false), &common(), &body, &payload);
        for bit in 42 * 8..frame.len() * 8 {
            frame[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&frame, Ports::DEFAULT).is_err(), "{:?} bit {bit}", body.kind());
            frame[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn a_frame_sent_to_another_address_or_port_is_refused() {
    for (at, v6) in [(28, false), (32, false), (24, true), (50, true), (34, false), (54, true)] {
        let mut frame = data_frame(v6);
        let old = u16::from_be_bytes([frame[at], frame[at + 1]]);
        let new = old ^ 0x0107;
        frame[at..at + 2].copy_from_slice(&new.to_be_bytes());
        // The attacker recomputes the UDP checksum.
        let checksum = if v6 { 60 } else { 24 };
        if at != 34 {
            let value = update_u16(u16::from_be_bytes([frame[checksum], frame[checksum + 1]]), old, new);
            let value = if v6 { udp(value) } else { value };
            frame[checksum..checksum + 2].copy_from_slice(&value.to_be_bytes());
        }
        assert_eq!(parse(&frame, Ports::DEFAULT), Err(Error::HeaderChecksum), "offset {at}, v6 {v6}");
    }
}

//= docs/specs/wire.md#WIRE-9 order of checks
#[test]
fn each_error_has_its_name() {
    let broken = |v6: bool, at: usize, value: u8| {
        let mut frame = data_frame(v6);
        assert_ne!(frame[at], value);
        frame[at] = value;
        parse(&frame, Ports::DEFAULT).map(|frame| frame.is_some())
    };
    assert_eq!(broken(false, 22, 63), Err(Error::IpChecksum));
    assert_eq!(broken(false, 42, 2), Err(Error::Sealed));
    assert_eq!(broken(false, 42, 3), Err(Error::Version));
    assert_eq!(broken(false, 43, 0), Err(Error::Kind));
    assert_eq!(broken(false, 43, 14), Err(Error::Kind));
    assert_eq!(broken(false, 44, 0), Err(Error::HeaderChecksum));
    assert_eq!(broken(false, 200, 0xaa), Err(Error::PayloadChecksum));
    assert_eq!(broken(false, 39, 0), Err(Error::Length));
    assert_eq!(broken(true, 19, 0), Err(Error::Length));
    assert_eq!(broken(true, 200, 0xaa), Err(Error::UdpChecksum));
    assert_eq!(broken(true, 18, 9), Err(Error::Truncated));
    // A UDP checksum that the network added must be valid.
    assert_eq!(broken(false, 40, 1), Err(Error::UdpChecksum));
}

//= docs/specs/wire.md#WIRE-4 pseudo header alone
#[test]
fn a_partial_checksum_of_the_kernel_is_accepted() {
    for is_v6 in [false, true] {
        let mut frame = data_frame(is_v6);
        let (addresses, udp) = if is_v6 { (22..54, 54) } else { (26..34, 34) };
        let pseudo = (frame.len() - udp) as u64 + 17;
        let sum = crate::checksum::fold(crate::checksum::add(pseudo, &frame[addresses]));
        for (checksum, taken) in [(sum, true), (!sum, false), (sum ^ 1, false)] {
            frame[udp + 6..udp + 8].copy_from_slice(&checksum.to_be_bytes());
            assert_eq!(parse(&frame, Ports::DEFAULT).is_ok(), taken, "v6 {is_v6}: {checksum}");
        }
    }
}

//= docs/specs/wire.md#WIRE-4 udp checksum
#[test]
fn ipv6_without_udp_checksum_is_refused() {
    let mut frame = data_frame(true);
    frame[60..62].fill(0);
    assert_eq!(parse(&frame, Ports::DEFAULT), Err(Error::UdpChecksum));
}

#[test]
fn a_close_for_an_unknown_reason_is_refused() {
    let close = Body::Close(Close::default());
    let frame = build(&envelope(false), &common(), &close, &[]);
    let mut forged = frame;
    forged[65] = 8;
    let mut covered = <Covered>::new();
    let checksum = xxh3(covered.of(&envelope(false), &forged[42..]).unwrap());
    forged[58..62].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(parse(&forged, Ports::DEFAULT), Err(Error::Value));
}

//= docs/specs/wire.md#WIRE-2 classification
#[test]
fn frames_of_other_protocols_are_not_ours() {
    let with = |v6: bool, at: usize, value: u8| {
        let mut frame = data_frame(v6);
        frame[at] = value;
        frame
    };
    let not_ours: [(&str, Vec<u8>); 9] = [
        ("arp", with(false, 13, 6)),
        ("vlan", with(false, 12, 0x81)),
        ("options", with(false, 14, 0x46)),
        ("fragment", with(false, 20, 0x20)),
        ("tcp", with(false, 23, 6)),
        ("other port", with(false, 36, 1)),
        ("hop-by-hop", with(true, 20, 0)),
        ("version 4 in ipv6", with(true, 14, 0x40)),
        ("empty", Vec::new()),
    ];
    for (name, frame) in not_ours {
        assert_eq!(parse(&frame, Ports::DEFAULT), Ok(None), "{name}");
        let mut copy = frame.clone();
        assert_eq!((switch_view::trim(&mut copy, Ports::DEFAULT), &copy), (None, &frame), "{name}");
    }
}

//= docs/specs/wire.md#WIRE-12 trimmed frames
#[test]
fn a_short_payload_without_the_trimmed_dscp_is_not_trimmed() {
    let mut frame = data_frame(false);
    frame.truncate(trimmed_len(false));
    set_v4_lengths(&mut frame);
    assert_eq!(parse(&frame, Ports::DEFAULT), Err(Error::Length));
}

proptest! {
    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        touch(&bytes);
        prop_assert!(!matches!(parse(&bytes, Ports::DEFAULT), Ok(Some(_))));
    }

    #[test]
    fn random_bytes_behind_plausible_headers(
        bytes in prop::collection::vec(any::<u8>(), 0..200), which in 0..18usize, keep in 14..62usize,
    ) {
        let mut frame = frames().swap_remove(which);
        frame.truncate(keep);
        frame.extend(bytes);
        touch(&frame);
        prop_assert!(!matches!(parse(&frame, Ports::DEFAULT), Ok(Some(_))));
    }

    #[test]
    fn mutated_frames(
        which in 0..18usize, edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(), cut_it: bool,
    ) {
        let original = frames().swap_remove(which);
        let mut frame = original.clone();
        for (at, value) in edits {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        if cut_it {
            frame.truncate(cut.index(frame.len()));
        }
        touch(&frame);
        if let Ok(Some(parsed)) = parse(&frame, Ports::DEFAULT) {
            prop_assert_eq!(vouched(&parsed), vouched(&parse(&original, Ports::DEFAULT).unwrap().unwrap()));
        }
    }
}

/// Echo counts beyond the maximum or beyond the frame.
#[test]
fn an_ack_with_an_impossible_echo_count_is_refused() {
    let (body, _) = bodies().pop().unwrap();
    assert!(matches!(body, Body::Ack(ack) if ack.echoes.len() == 3));
    let frame = build(&envelope(false), &common(), &body, &[]);
    for count in 0..=u8::MAX {
        let mut frame = frame.clone();
        frame[42 + 90] = count;
        let expected = match count {
            0..3 => Err(Error::HeaderChecksum),
            3 => Ok(true),
            4..=15 => Err(Error::Truncated),
            _ => Err(Error::Value),
        };
        assert_eq!(parse(&frame, Ports::DEFAULT).map(|frame| frame.is_some()), expected, "{count}");
    }
}

/// Bits beyond the last packet, which another implementation may set, are ignored.
#[test]
fn spare_marks_are_ignored() {
    let Some((Body::Ack(ack), _)) = bodies().pop() else { panic!("the last sample is an Ack") };
    // These flags belong to the common header.
    let ack = Ack { trimmed: false, misrouted: false, ..ack };
    let mut header = [0; 100];
    ack.emit(&mut header).unwrap();
    header[92] = 0xff;
    assert_eq!(Ack::parse(&header), Ok(ack));
}
