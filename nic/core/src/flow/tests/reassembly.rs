use std::collections::HashMap;
use std::vec::Vec;

use proptest::prelude::*;
use spray_wire::Data;

use super::super::messages::{Coded, HashKey, Placed, Reassembly};

fn part(psn: u64, message: u32, offset: u64, payload_bytes: u16, message_bytes: u64) -> Data {
    Data { psn, message, offset, payload_bytes, message_bytes, ..Data::default() }
}

fn reassembly() -> Reassembly {
    Reassembly::new(64, 1000, 10_000)
}

//= docs/specs/transport.md#TRN-53 refused packets
#[test]
fn what_cannot_be_is_rejected() {
    let mut reassembly = reassembly();
    for data in [
        part(0, 1, 0, 0, 5),
        part(0, 1, 5, 0, 5),
        part(0, 1, u64::MAX, 1, u64::MAX),
        part(0, 1, 1, 5, 5),
        part(0, 1, 0, 10, 10_001),
        part(0, 1, 1, 0, 0),
    ] {
        assert_eq!(reassembly.place(&data), Placed::Rejected, "{data:?}");
    }
    assert_eq!(reassembly.place(&part(0, 1, 0, 0, 0)), Placed::Complete);
    assert_eq!(reassembly.place(&part(5, 1, 0, 10, 30)), Placed::Part);
    for data in [
        part(6, 1, 10, 10, 31), // another length
        part(6, 1, 0, 10, 30),  // another packet's bytes
        part(6, 1, 5, 10, 30),  // overlap
        part(6, 1, 10, 9, 30),  // another size
        part(7, 1, 15, 15, 30), // a last one that is too long
        part(7, 1, 25, 5, 30),  // a last one that leaves a hole
        part(4, 1, 0, 30, 30),  // the whole of an open message
    ] {
        assert_eq!(reassembly.place(&data), Placed::Rejected, "{data:?}");
    }
    assert_eq!(reassembly.place(&part(7, 1, 20, 10, 30)), Placed::Part);
    assert_eq!(reassembly.place(&part(6, 1, 10, 10, 30)), Placed::Complete);
}

#[test]
fn the_last_part_may_come_first() {
    let mut reassembly = reassembly();
    assert_eq!(reassembly.place(&part(7, 1, 20, 5, 25)), Placed::Part);
    assert_eq!(reassembly.place(&part(8, 1, 20, 5, 25)), Placed::Rejected);
    assert_eq!(reassembly.place(&part(6, 1, 0, 10, 25)), Placed::Rejected, "the last one would be one packet off");
    assert_eq!(reassembly.place(&part(6, 1, 10, 10, 25)), Placed::Part);
    assert_eq!(reassembly.place(&part(5, 1, 0, 10, 25)), Placed::Complete);
    assert_eq!(reassembly.place(&part(7, 2, 10, 20, 30)), Placed::Part);
    assert_eq!(reassembly.place(&part(8, 2, 15, 5, 30)), Placed::Rejected, "inside the last one");
}

//= docs/specs/transport.md#TRN-53 refused packets
#[test]
fn open_messages_and_their_bytes_are_bounded() {
    let mut reassembly = Reassembly::new(8, 1000, 10_000);
    let taken = (0..100).filter(|&m| reassembly.place(&part(m, m as u32, 0, 1, 2)) == Placed::Part).count();
    assert_eq!(taken, 5);
    let mut reassembly = Reassembly::new(64, 10, 10_000);
    let taken = (0..100).filter(|&m| reassembly.place(&part(m, m as u32, 0, 1, 10_000)) == Placed::Part).count();
    assert_eq!(taken, 2);
}

//= docs/specs/erasure.md#ERA-2 what counts for a message
#[test]
fn coded_messages_that_are_complete_leave_room_for_others() {
    let mut reassembly = Reassembly::new(8, 10, 10_000);
    for message in 0..20 {
        let psn = 2 * u64::from(message);
        let half = |psn, offset| part(psn, message, offset, 5_000, 10_000);
        assert_eq!(reassembly.place_coded(&half(psn, 0), false, psn, psn), Coded::Part);
        let placed = reassembly.place_coded(&half(psn + 1, 5_000), false, psn, psn + 1);
        assert!(matches!(placed, Coded::Complete(span) if (span.first, span.end) == (psn, psn + 2)), "{placed:?}");
    }
}

/// Numbers that all have the first slot for their place in a table hashed by their product with 2^32 over the golden ratio alone.
fn colliding(count: u32) -> impl Iterator<Item = u32> {
    // The factor's inverse modulo 2^32.
    (0..count).map(|product| product.wrapping_mul(0x0e8b_2f51))
}

//= docs/specs/transport.md#TRN-62 numbers that collide
#[test]
fn numbers_chosen_to_collide_cost_no_more_than_others() {
    assert_eq!(colliding(3).map(|number| number.wrapping_mul(0x9e37_79b1)).collect::<Vec<_>>(), [0, 1, 2]);
    let most = 1 << 14;
    for key in [[0, 0], [1, 2], [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]] {
        let mut reassembly = Reassembly::new(2 * most, 1000, 10);
        reassembly.set_key(HashKey(key));
        let mut steps = Vec::new();
        for (psn, message) in colliding(most).enumerate() {
            assert_eq!(reassembly.place(&part(3 * psn as u64, message, 0, 1, 2)), Placed::Part);
            steps.push(reassembly.steps(message));
        }
        let (sum, longest) = (steps.iter().sum::<usize>(), steps.iter().max().copied().unwrap_or(0));
        assert!(sum < 2 * most as usize && longest < 64, "{sum} steps for {most} messages, {longest} at most");
        for (psn, message) in colliding(most).enumerate() {
            assert_eq!(reassembly.place(&part(3 * psn as u64 + 1, message, 1, 1, 2)), Placed::Complete);
        }
    }
}

proptest! {
    /// Messages of two parts each, opened and closed in any order, against a map.
    #[test]
    fn the_table_agrees_with_a_map(steps in prop::collection::vec((0u32..60, any::<u32>()), 1..600)) {
        let mut reassembly = reassembly();
        let mut open: HashMap<u32, u64> = HashMap::new();
        for (psn, (message, salt)) in steps.into_iter().enumerate() {
            // Multiples collide in a table indexed by high bits of a product as well as any.
            let message = message.wrapping_mul(0x0100_0000) ^ (salt & 1);
            let psn = 10 * psn as u64;
            if let Some(first) = open.remove(&message) {
                prop_assert_eq!(reassembly.place(&part(first + 1, message, 1, 1, 2)), Placed::Complete);
            } else if open.len() < 33 {
                prop_assert_eq!(reassembly.place(&part(psn, message, 0, 1, 2)), Placed::Part);
                open.insert(message, psn);
            }
        }
    }

    /// Whatever arrives, with distinct numbers: a message that completes has had every byte exactly once.
    //= docs/specs/transport.md#TRN-52 placing payload
    #[test]
    fn completion_means_every_byte_once(
        parts in prop::collection::vec((0u64..12, 0u64..8, 1u16..4, 1u64..8), 1..60),
    ) {
        let mut reassembly = reassembly();
        let mut seen = Vec::new();
        let mut bytes: Vec<u64> = Vec::new();
        for (psn, offset, payload, length) in parts {
            if seen.contains(&psn) {
                continue;
            }
            let placed = reassembly.place(&part(psn, 1, offset, payload, length));
            if placed != Placed::Rejected {
                seen.push(psn);
                bytes.extend(offset..offset + u64::from(payload));
            }
            if placed == Placed::Complete {
                bytes.sort_unstable();
                prop_assert_eq!(&bytes, &(0..length).collect::<Vec<_>>());
                bytes.clear();
            }
        }
    }
}
