use std::collections::{HashMap, HashSet};
use std::vec::Vec;

use proptest::prelude::*;
use spray_wire::Data;

use super::super::messages::{
    Coded, CompletedNumbers, HashKey, Incoming, MOST_MISSING, Part, PayloadSlot, Placed, Reassembly, SLACK_BYTES, Table,
};

fn part(psn: u64, message: u32, offset: u64, payload_bytes: u16, message_bytes: u64) -> Data {
    Data { psn, message, offset, payload_bytes, message_bytes, ..Data::default() }
}

fn reassembly() -> Reassembly {
    Reassembly::new(64, 1000, 10_000)
}

fn incoming(message: u32, bytes: u64) -> Incoming {
    Incoming::beginning_with(&part(0, message, 0, 1, bytes), false)
}

const NOWHERE: PayloadSlot = PayloadSlot { buffer: 0, part: Part::Next };
const PART: Placed = Placed::Part(NOWHERE);
const COMPLETE: Placed = Placed::Complete(NOWHERE);

/// Returns the result for a packet, without the position of its payload.
fn place(reassembly: &mut Reassembly, data: &Data) -> Placed {
    match reassembly.place(data) {
        Placed::Part(_) => PART,
        Placed::Complete(_) => COMPLETE,
        other => other,
    }
}

//= docs/specs/transport.md#TRN-53 refused packets
#[test]
fn inconsistent_packets_are_rejected() {
    let mut reassembly = reassembly();
    for data in [
        part(0, 1, 0, 0, 5),
        part(0, 1, 5, 0, 5),
        part(0, 1, u64::MAX, 1, u64::MAX),
        part(0, 1, 1, 5, 5),
        part(0, 1, 0, 10, 10_001),
        part(0, 1, 1, 0, 0),
    ] {
        assert_eq!(place(&mut reassembly, &data), Placed::Rejected, "{data:?}");
    }
    assert_eq!(place(&mut reassembly, &part(0, 1, 0, 0, 0)), COMPLETE);
    assert_eq!(place(&mut reassembly, &part(5, 2, 0, 10, 30)), PART);
    for data in [
        part(6, 2, 10, 10, 31), // another length
        part(6, 2, 0, 10, 30),  // another packet's bytes
        part(6, 2, 5, 10, 30),  // overlap
        part(6, 2, 10, 9, 30),  // another packet size
        part(7, 2, 15, 15, 30), // a last packet that is too long
        part(7, 2, 25, 5, 30),  // a last packet that leaves a hole
        part(4, 2, 0, 30, 30),  // a whole message with the number of an open one
    ] {
        assert_eq!(place(&mut reassembly, &data), Placed::Rejected, "{data:?}");
    }
    assert_eq!(place(&mut reassembly, &part(7, 2, 20, 10, 30)), PART);
    assert_eq!(place(&mut reassembly, &part(6, 2, 10, 10, 30)), COMPLETE);
}

#[test]
fn the_last_part_may_come_first() {
    let mut reassembly = reassembly();
    assert_eq!(place(&mut reassembly, &part(7, 1, 20, 5, 25)), PART);
    assert_eq!(place(&mut reassembly, &part(8, 1, 20, 5, 25)), Placed::Rejected);
    assert_eq!(
        place(&mut reassembly, &part(6, 1, 0, 10, 25)),
        Placed::Rejected,
        "the last packet number would be off by one"
    );
    assert_eq!(place(&mut reassembly, &part(6, 1, 10, 10, 25)), PART);
    assert_eq!(place(&mut reassembly, &part(5, 1, 0, 10, 25)), COMPLETE);
    assert_eq!(place(&mut reassembly, &part(7, 2, 10, 20, 30)), PART);
    assert_eq!(place(&mut reassembly, &part(8, 2, 15, 5, 30)), Placed::Rejected, "overlaps the last packet");
}

//= docs/specs/transport.md#TRN-53 refused packets
#[test]
fn open_messages_and_their_bytes_are_bounded() {
    let mut reassembly = Reassembly::new(8, 1000, 10_000);
    let taken = (0..100).filter(|&m| place(&mut reassembly, &part(m, m as u32, 0, 1, 2)) == PART).count();
    assert_eq!(taken, 5);
    let mut reassembly = Reassembly::new(64, 10, 10_000);
    let taken = (0..100).filter(|&m| place(&mut reassembly, &part(m, m as u32, 0, 1, 10_000)) == PART).count();
    assert_eq!(taken, 2);
}

/// The number of message numbers that may be skipped.
//= docs/specs/transport.md#TRN-53 has the number of one that is complete
#[test]
fn few_message_numbers_may_be_skipped() {
    let mut reassembly = Reassembly::new(64, 1000, 10_000);
    let whole = |psn: u64, message: u32| part(psn, message, 0, 5, 5);
    assert_eq!(place(&mut reassembly, &whole(0, MOST_MISSING + 1)), Placed::Rejected);
    // Every other number, which makes the maximum number of gaps.
    for number in 0..MOST_MISSING {
        assert_eq!(place(&mut reassembly, &whole(number.into(), 2 * number + 1)), COMPLETE, "{number}");
        assert_eq!(place(&mut reassembly, &whole(number.into(), 2 * number + 1)), Placed::Rejected, "{number}");
    }
    let next = 2 * MOST_MISSING;
    assert_eq!(place(&mut reassembly, &whole(0, next + 1)), Placed::Rejected);
    for number in (0..MOST_MISSING).rev() {
        assert_eq!(place(&mut reassembly, &whole(0, next + 1)), Placed::Rejected);
        assert_eq!(place(&mut reassembly, &whole(0, 2 * number)), COMPLETE);
        assert_eq!(place(&mut reassembly, &whole(0, 2 * number)), Placed::Rejected);
        assert_eq!(place(&mut reassembly, &whole(0, next - 2 * (MOST_MISSING - number) + 1)), Placed::Rejected);
        if number + 1 == MOST_MISSING {
            assert_eq!(place(&mut reassembly, &whole(0, next + 1)), COMPLETE);
        }
    }
}

/// Tracks the memory that open messages may use, from the slots assigned at their first packets and
/// the packets refused.
struct Memory {
    reassembly: Reassembly,
    rooms: HashMap<u32, (u64, u64)>,
}

impl Memory {
    fn place(&mut self, data: &Data) -> Placed {
        let placed = self.reassembly.place(data);
        let (Placed::Part(_) | Placed::Complete(_)) = placed else { return placed };
        let (room, received) = match self.reassembly.table.find(data.message) {
            Some((_, incoming)) => (incoming.parts.bytes, incoming.received),
            None => (data.message_bytes, data.message_bytes),
        };
        assert!(received <= room && room <= data.message_bytes);
        self.rooms.insert(data.message, (room, received));
        placed
    }

    /// Returns the memory of all messages that were begun, including complete ones, beyond twice
    /// the bytes received for each.
    fn excess(&self) -> u64 {
        self.rooms.values().map(|(room, received)| room.saturating_sub(2 * received)).sum()
    }
}

//= docs/specs/transport.md#TRN-67 twice what has arrived
#[test]
fn a_peer_uses_at_most_twice_the_memory_it_sends() {
    for (payload, message_bytes) in
        [(1, 2), (1, 4_096), (1, 60_000), (1_000, 65_535), (9_000, 1 << 20), (1_400, 1 << 30)]
    {
        for last_first in [false, true] {
            let reassembly = Reassembly::new(1 << 14, 9_000, 1 << 40);
            let mut memory = Memory { reassembly, rooms: HashMap::new() };
            let offset = if last_first { message_bytes - u64::from(payload) } else { 0 };
            let begun = (0..9_000u32).filter(|&message| {
                let data = part(1 << 20 | u64::from(message), message, offset, payload, message_bytes);
                matches!(memory.place(&data), Placed::Part(_))
            });
            let begun = begun.count();
            assert!(memory.excess() <= SLACK_BYTES, "{payload} of {message_bytes}: {begun} messages");
            assert!(begun > 0, "{payload} of {message_bytes}");
        }
    }
}

//= docs/specs/erasure.md#ERA-2 packets counted for a message
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

/// Returns numbers that all map to the first slot of a table that hashes only by multiplication
/// with 2^32 over the golden ratio.
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
        let mut table = Table::new();
        table.key = HashKey(key);
        let mut steps = Vec::new();
        for message in colliding(most) {
            assert!(table.find(message).is_none());
            table.insert(incoming(message, 2));
            steps.push(table.steps(message));
        }
        let (sum, longest) = (steps.iter().sum::<usize>(), steps.iter().max().copied().unwrap_or(0));
        assert!(sum < 2 * most as usize && longest < 64, "{sum} steps for {most} messages, {longest} at most");
        for message in colliding(most) {
            assert!(table.find(message).is_some_and(|(_, incoming)| incoming.message == message));
            table.remove(message);
        }
        assert_eq!(table.len(), 0);
    }
}

proptest! {
    /// Messages are inserted and removed in any order, and compared with a map: each has an entry,
    /// and no two share one.
    #[test]
    fn the_table_agrees_with_a_map(steps in prop::collection::vec((0u32..60, any::<u32>()), 1..600)) {
        let mut table = Table::new();
        let mut open: HashMap<u32, (u32, u64)> = HashMap::new();
        for (bytes, (message, salt)) in steps.into_iter().enumerate() {
            // Multiples also collide in a table indexed by the high bits of a product.
            let (message, bytes) = (message.wrapping_mul(0x0100_0000) ^ (salt & 1), bytes as u64);
            prop_assert_eq!(table.find(message).map(|(number, it)| (number, it.bytes)), open.get(&message).copied());
            if open.remove(&message).is_some() {
                table.remove(message);
            } else {
                let number = table.insert(incoming(message, bytes));
                prop_assert!(open.values().all(|(other, _)| *other != number));
                open.insert(message, (number, bytes));
            }
            prop_assert_eq!(table.len(), open.len());
            for (message, entry) in &open {
                prop_assert_eq!(table.find(*message).map(|(number, it)| (number, it.bytes)), Some(*entry));
            }
        }
    }

    /// Numbers are used roughly in order, and compared with a set; some are skipped for long.
    //= docs/specs/transport.md#TRN-53 has the number of one that is complete
    #[test]
    fn every_number_is_used_once(
        first in prop_oneof![Just(0), (0..200u32).prop_map(|before| u32::MAX - before), any::<u32>()],
        steps in prop::collection::vec((0u32..40, 0u32..20), 1..400),
    ) {
        let mut numbers = CompletedNumbers::starting_at(first);
        let (mut used, mut next) = (HashSet::new(), 0u32);
        for (back, ahead) in steps {
            let number = if ahead < 5 { next + ahead } else { next.saturating_sub(back) };
            let message = first.wrapping_add(number);
            prop_assert_eq!(numbers.may_begin(message), !used.contains(&number), "{}", number);
            if used.insert(number) {
                numbers.complete(message);
                next = next.max(number + 1);
            }
            prop_assert!(!numbers.may_begin(first.wrapping_sub(1)));
            prop_assert!((0..next + 3).all(|it| numbers.may_begin(first.wrapping_add(it)) != used.contains(&it)));
        }
    }

    /// For any arrivals with distinct numbers, a message that completes has received every byte
    /// exactly once.
    //= docs/specs/transport.md#TRN-52 placing payload
    #[test]
    fn completion_means_every_byte_once(
        parts in prop::collection::vec((0u64..12, 0u64..8, 1u16..4, 1u64..8), 1..60),
    ) {
        let mut reassembly = reassembly();
        let (mut seen, mut message) = (Vec::new(), 0);
        let mut bytes: Vec<u64> = Vec::new();
        for (psn, offset, payload, length) in parts {
            if seen.contains(&psn) {
                continue;
            }
            let placed = place(&mut reassembly, &part(psn, message, offset, payload, length));
            if placed != Placed::Rejected {
                seen.push(psn);
                bytes.extend(offset..offset + u64::from(payload));
            }
            if placed == COMPLETE {
                message += 1;
                bytes.sort_unstable();
                prop_assert_eq!(&bytes, &(0..length).collect::<Vec<_>>());
                bytes.clear();
            }
        }
    }

    /// Messages use no more memory than allowed, and each completes once all of its packets have
    /// arrived.
    //= docs/specs/transport.md#TRN-67 twice what has arrived
    #[test]
    fn memory_is_bounded_and_retransmissions_fit(
        lengths in prop::collection::vec((1u16..9_000, 1u64..3_000_000), 1..60), seed: u64,
    ) {
        let mut memory = Memory { reassembly: Reassembly::new(1 << 16, 9_000, 1 << 40), rooms: HashMap::new() };
        let (mut waiting, mut psn) = (Vec::new(), 0);
        for (message, (unit, bytes)) in lengths.into_iter().enumerate() {
            let unit = unit.max((bytes / 400) as u16);
            for offset in (0..bytes).step_by(unit.into()) {
                let payload = (bytes - offset).min(unit.into()) as u16;
                waiting.push(part(psn, message as u32, offset, payload, bytes));
                psn += 1;
            }
        }
        // In any order, repeatedly, as a sender retransmits unacknowledged packets.
        let mut random = seed;
        waiting.sort_by_cached_key(|_| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            random >> 32
        });
        for _ in 0..10 {
            let mut refused = Vec::new();
            for data in waiting {
                match memory.place(&data) {
                    Placed::NoRoom => refused.push(data),
                    placed => prop_assert!(placed != Placed::Rejected, "{:?}", data),
                }
                prop_assert!(memory.excess() <= SLACK_BYTES);
            }
            // The packet that has been missing longest comes first.
            refused.sort_by_key(|data| data.psn);
            waiting = refused;
        }
        prop_assert!(waiting.is_empty(), "{} packets", waiting.len());
    }
}
