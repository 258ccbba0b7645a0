//! Exhaustive tests: each byte of a frame, both length fields, every code of a section.

use super::samples::*;
use crate::checksum::{add, fold};
use crate::switch_view::{self, Parsed};
use crate::*;

/// Returns the fields that a receiver acts on.
fn meaning<'a>(frame: &Frame<'a>) -> (u32, u64, Body, &'a [u8], core::net::IpAddr, core::net::IpAddr) {
    let Frame { envelope, common, body, payload, .. } = *frame;
    (common.connection, common.cookie, body, payload, envelope.src, envelope.dst)
}

#[test]
fn no_byte_of_any_value_changes_what_a_frame_means() {
    for original in frames() {
        let expected = parse(&original, Ports::DEFAULT).unwrap().unwrap();
        let mut frame = original.clone();
        for place in 0..frame.len() {
            for value in 0..=u8::MAX {
                frame[place] = value;
                if let Ok(Some(parsed)) = parse(&frame, Ports::DEFAULT) {
                    assert_eq!(meaning(&parsed), meaning(&expected), "byte {place} is {value}");
                    assert!(
                        matches!(switch_view::parse(frame.as_slice(), Ports::DEFAULT), Parsed::Ours(_)),
                        "byte {place} is {value}"
                    );
                }
            }
            frame[place] = original[place];
        }
    }
}

/// The IP checksum is kept valid, so that only the lengths are wrong.
#[test]
fn only_consistent_lengths_are_accepted() {
    const TOTAL: usize = 16;
    const UDP: usize = 38;
    for original in [data_frame(false), frames()[1].clone()] {
        let lengths = [TOTAL, UDP].map(|at| u16::from_be_bytes([original[at], original[at + 1]]));
        for (at, right) in [TOTAL, UDP].into_iter().zip(lengths) {
            for length in 0..=u16::MAX {
                let mut frame = original.clone();
                frame[at..at + 2].copy_from_slice(&length.to_be_bytes());
                frame[24..26].fill(0);
                let sum = !fold(add(0, &frame[14..34]));
                frame[24..26].copy_from_slice(&sum.to_be_bytes());
                let is_ours = matches!(parse(&frame, Ports::DEFAULT), Ok(Some(_)));
                assert_eq!(is_ours, length == right, "{length} instead of {right}");
                let is_seen = matches!(switch_view::parse(frame.as_slice(), Ports::DEFAULT), Parsed::Ours(_));
                assert_eq!(is_seen, length == right, "a switch: {length} instead of {right}");
            }
        }
    }
}

#[test]
fn every_section_code_is_rejected_or_round_trips() {
    for bits in 0..=u16::MAX {
        let section = Section::from_bits(bits);
        assert_eq!(section.to_bits(), bits);
        if let Some((subflows, behind)) = section.get() {
            assert!(subflows.is_power_of_two() && subflows <= Section::MAX_SUBFLOWS);
            assert_eq!(Section::new(subflows.ilog2() as u8, behind), section);
        }
    }
}
