//! The layouts, byte by byte (WIRE-3 to WIRE-8).

use std::vec::Vec;

use super::samples::*;
use crate::*;

/// Returns the spray header and payload of a frame from hex digits. `HHHHHHHH` is replaced by the
/// header's checksum, computed here.
fn ours(v6: bool, hex: &str, payload: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = hex.replace("HHHHHHHH", "00000000").bytes().filter(u8::is_ascii_hexdigit).collect();
    let mut bytes: Vec<u8> =
        digits.chunks(2).map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap()).collect();
    let addresses = if v6 {
        "fd000000000000000000000000000001 fd000000000000000000000000000002"
    } else {
        "00000000000000000000ffff0a000001 00000000000000000000ffff0a000002"
    };
    let mut covered: Vec<u8> = addresses
        .split(' ')
        .flat_map(|a| u128::from_str_radix(a, 16).unwrap().to_be_bytes())
        .chain([0xc3, 0x50, 0xf0, 0x00])
        .collect();
    covered.extend(&bytes[..16]);
    covered.extend(&bytes[20..]);
    bytes[16..20].copy_from_slice(&xxh3(&covered).to_be_bytes());
    bytes.extend(payload);
    bytes
}

const COMMON: &str = "a1a2a3a4 b1b2b3b4b5b6b7b8 HHHHHHHH";

/// The body of each sample, after the common header. `PPPPPPPP` is replaced by the payload's
/// checksum.
const BODIES: [(&str, &str); 14] = [
    ("01 01 07 00", "31323334 1112131415161718 2122232425262728 4142434445464748 5152535455565758 014d 5234 PPPPPPPP"),
    (
        "01 02 03 00",
        "4142 05 04 1112131415161718 2122232425262728 3132333435363738
         0100000000000000 0000000000000080 0807060504030201 ffffffffffffffff
         5152535455565758 03 01 00 00",
    ),
    ("01 03 05 00", "4142 03 01 000000000000004d 2122232425262728 0bb8 0000"),
    (
        "01 04 00 00",
        "00000001 fffffffffffffffa 0000010000000000 00000200 00000bb8 00000004 0000 0000 6120636c69656e74277320746f6b656e",
    ),
    (
        "01 05 00 00",
        "00000009 0000000000003039 0000000000100000 00000100 00000578 00000001 0000 0000 00000000000000000000000000000000",
    ),
    ("01 06 01 00", "00000002 0004000000000000"),
    ("01 07 00 00", "00000007"),
    ("01 08 00 00", "0000 00 00 0000000000000063 00000000075bcd15"),
    ("01 09 00 00", "ea60 03 01 0000000000000063 00000000075bcd15"),
    ("01 0a 00 00", "00000000 1112131415161718"),
    ("01 0b 00 00", "00000000 0000010000000000 2122232425262728"),
    ("01 0c 00 00", "6120736572766572277320746f6b656e"),
    (
        "01 0d 01 00",
        "1112 0000 0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20
         2122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f40
         4142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f60",
    ),
    (
        "01 02 03 00",
        "4142 05 04 1112131415161718 2122232425262728 3132333435363738
         0100000000000000 0000000000000080 0807060504030201 ffffffffffffffff
         5152535455565758 03 01 03 00
         0005 6162 7172 8182",
    ),
];

/// Lengths at which the hash switches its algorithm, with the last 32 bits of the output of the
/// reference implementation (`xxhsum -H3` 0.8.1).
#[test]
fn checksums_agree_with_the_reference_implementation() {
    #[rustfmt::skip]
    let table = [
        (0, 0x38d3_94c2), (1, 0x074e_ecdb), (3, 0xb22f_286b), (4, 0x1638_550f), (8, 0xa6b3_f8ba), (9, 0xb2f8_f092),
        (16, 0xae14_3d6e), (17, 0x94ac_c1b2), (96, 0x056d_6fac), (128, 0x438d_2f12), (129, 0x3b88_675b), (240, 0x865d_da4d),
        (241, 0x6d46_b5b0), (1024, 0x9e97_a5ad), (1025, 0x4109_5f20), (3000, 0x4364_9a28), (4096, 0x882f_ce8a),
        (8999, 0xfc0f_a020),
    ];
    let bytes: Vec<u8> = (0..9_000u32).map(|i| ((i * i) >> 3) as u8).collect();
    for (len, checksum) in table {
        let mut aside = std::vec![0];
        aside.extend(&bytes[..len]);
        assert_eq!([xxh3(&bytes[..len]), xxh3(&aside[1..])], [checksum; 2], "{len} bytes");
    }
}

//= docs/specs/wire.md#WIRE-6 common header
//= docs/specs/wire.md#WIRE-7 data
//= docs/specs/wire.md#WIRE-8 other kinds
//= docs/specs/wire.md#WIRE-10 header checksum
//= docs/specs/wire.md#WIRE-11 payload checksum
#[test]
fn every_kind_has_the_specified_bytes() {
    for v6 in [false, true] {
        for ((body, payload), (start, rest)) in bodies().into_iter().zip(BODIES) {
            let checksum = std::format!("{:08x}", xxh3(&payload));
            let hex = std::format!("{start} {COMMON} {}", rest.replace("PPPPPPPP", &checksum));
            let frame = build(&envelope(v6), &common(), &body, &payload);
            let expected = ours(v6, &hex, &payload);
            assert_eq!(frame[if v6 { 62 } else { 42 }..], expected, "{:?} v6={v6}", body.kind());
        }
    }
}

#[test]
fn header_lengths_are_the_specified_ones() {
    let ours = Kind::ALL.map(Kind::bytes);
    assert_eq!(ours, [64, 92, 44, 72, 72, 32, 24, 40, 40, 32, 40, 36, 120]);
    assert_eq!(Kind::ALL.map(|kind| header_bytes(false, kind)), ours.map(|bytes| 42 + bytes));
    assert_eq!(Kind::ALL.map(|kind| header_bytes(true, kind)), ours.map(|bytes| 62 + bytes));
    assert!(Kind::ALL.iter().all(|kind| Kind::from_u8(*kind as u8) == Some(*kind)));
}

/// A whole frame with its checksums, so that any change of the layout fails a test.
//= docs/specs/wire.md#WIRE-3 ip headers and lengths
//= docs/specs/wire.md#WIRE-1 layers
#[test]
fn a_reset_over_ipv4_is_these_bytes() {
    let body = Body::Reset(Reset { reason: 7 });
    let control = Envelope { dscp: DSCP_CONTROL, ecn: Ecn::NotEct, ..envelope(false) };
    let frame = build(&control, &common(), &body, &[]);
    #[rustfmt::skip]
    let mut expected = std::vec![
        2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, // Ethernet
        0x45, 46 << 2, 0, 52, 0, 0, 0x40, 0, 64, 17, 0x25, 0xff, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
        0xc3, 0x50, 0xf0, 0x00, 0, 32, 0, 0, // UDP, no checksum
    ];
    expected.extend(ours(false, &std::format!("01 07 00 00 {COMMON} 00000007"), &[]));
    assert_eq!(frame, expected);
}

#[test]
fn a_reset_over_ipv6_has_these_headers() {
    let frame = build(&envelope(true), &common(), &Body::Reset(Reset { reason: 7 }), &[]);
    let mut headers = std::vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x62, 0xa0, 0xc3, 0x50, 0, 32, 17, 64];
    headers
        .extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    headers.extend([0xc3, 0x50, 0xf0, 0x00, 0, 32]);
    assert_eq!(frame[..60], headers);
    assert_ne!(frame[60..62], [0, 0]);
}

#[test]
fn bitmap_bit_i_stands_for_base_plus_i() {
    let ack = Ack { sack_base: 1000, bitmap: [1, 0, 0, 1 << 63], ..Ack::default() };
    let selected: Vec<u64> = (0..3000).filter(|psn| ack.selected(*psn)).collect();
    assert_eq!(selected, [1000, 1255]);
    assert!(!Ack { sack_base: u64::MAX, bitmap: [2, 0, 0, 0], ..ack }.selected(0));
}

#[test]
fn a_section_is_a_power_of_two_and_a_count() {
    //= docs/specs/wire.md#WIRE-7 data
    assert_eq!(Section::NONE.get(), None);
    let table =
        [(0, 0, 0x1000, 1, 0), (4, 7, 0x5007, 16, 7), (6, 4095, 0x7fff, 64, 4095), (6, u16::MAX, 0x7fff, 64, 4095)];
    for (log2, behind, bits, subflows, count) in table {
        let section = Section::new(log2, behind);
        assert_eq!((section.to_bits(), section.get()), (bits, Some((subflows, count))));
    }
    // Codes that no sender uses are decoded as no information.
    assert!(
        (0u16..=u16::MAX)
            .filter(|bits| bits >> 12 == 0 || bits >> 12 > 7)
            .all(|bits| Section::from_bits(bits).get().is_none())
    );
}
