use std::vec::Vec;

use proptest::prelude::*;
use spray_wire::{Ack, Data, EvPort};

use super::*;
use crate::tests::at_step;

struct Rig {
    receiver: Receiver,
}

fn packet(psn: u64) -> Data {
    // One message of a thousand packets, so that nothing completes.
    Data {
        psn,
        timestamp: sent_at(psn),
        message: 1,
        offset: psn.wrapping_mul(1000),
        message_bytes: 1_000_000,
        payload_bytes: 1000,
        ..Data::default()
    }
}

/// Returns a packet of a message of ten thousand packets.
fn of_many(psn: u64) -> Data {
    Data { message_bytes: 10_000_000, ..packet(psn) }
}

fn sent_at(psn: u64) -> Time {
    at_step(psn.wrapping_add(100))
}

impl Rig {
    fn new(config: FlowConfig) -> Self {
        Self { receiver: Receiver::new(&config) }
    }

    fn take(&mut self, now_ps: u64, data: Data) -> DataOutcome {
        match self.receiver.on_data(at(now_ps), &arrival(data)) {
            DataOutcome::New { place: Some(_) } => NEW,
            accept => accept,
        }
    }

    fn acks(&mut self) -> Vec<Ack> {
        core::iter::from_fn(|| self.receiver.poll_ack()).collect()
    }
}

fn arrival(data: Data) -> Arrival {
    Arrival { data, port: EvPort::new((data.psn as u16).wrapping_add(1000)), hops: 3, ..Arrival::default() }
}

fn selected(ack: &Ack) -> Vec<u64> {
    (ack.sack_base..ack.sack_base + 256).filter(|&psn| ack.selected(psn)).collect()
}

/// Accepts a packet with payload, regardless of its position.
const NEW: DataOutcome = DataOutcome::New { place: None };

//= docs/specs/transport.md#TRN-54 when an ACK is due
#[test]
fn one_ack_per_configured_number_of_packets() {
    let mut rig = Rig::new(FlowConfig { ack_every: 3, ..config() });
    for psn in 0..7 {
        assert_eq!(rig.take(0, packet(psn)), NEW);
        let acks = rig.acks();
        if psn % 3 == 2 {
            assert_eq!((acks.len(), acks[0].cumulative, acks[0].packets), (1, psn + 1, 3));
            assert_eq!(
                (acks[0].port.number(), acks[0].hops, acks[0].timestamp_echo),
                (1000 + psn as u16, 3, sent_at(psn))
            );
        } else {
            assert_eq!(acks, []);
        }
    }
}

//= docs/specs/transport.md#TRN-54 when an ACK is due
#[test]
fn flags_completions_and_duplicates_are_answered_at_once() {
    let mut rig = Rig::new(FlowConfig { ack_every: 100, ..config() });
    rig.take(0, packet(0));
    assert_eq!(rig.acks(), []);
    rig.take(0, Data { ack_now: true, ..packet(1) });
    assert_eq!(rig.acks()[0].packets, 2);
    assert_eq!(rig.take(0, packet(1)), DataOutcome::Duplicate);
    assert_eq!(rig.acks()[0].cumulative, 2);
    let whole = Data { message: 2, offset: 0, message_bytes: 1000, ..packet(2) };
    assert_eq!(rig.take(0, whole), NEW);
    assert_eq!(rig.acks().len(), 1);
    assert_eq!(rig.receiver.message_completed(), Some((2, 1000)));
    assert_eq!(rig.receiver.message_completed(), None);
}

//= docs/specs/transport.md#TRN-54 when an ACK is due
#[test]
fn the_rest_is_acknowledged_after_the_delay() {
    let mut rig = Rig::new(FlowConfig { ack_every: 4, ack_delay_ps: 7 * US, ..config() });
    rig.take(US, packet(0));
    rig.take(2 * US, packet(1));
    assert_eq!(rig.receiver.poll_timeout(), Some(at(8 * US)));
    rig.receiver.on_timeout(at(8 * US - Time::STEP_PS));
    assert_eq!(rig.acks(), []);
    rig.receiver.on_timeout(at(8 * US));
    assert_eq!((rig.acks()[0].packets, rig.receiver.poll_timeout()), (2, None));
}

#[test]
fn marks_are_counted_per_ack() {
    let mut rig = Rig::new(FlowConfig { ack_every: 4, ..config() });
    for (psn, marked) in [(0, true), (1, false), (2, true), (3, false)] {
        rig.receiver.on_data(Time::ZERO, &Arrival { marked, ..arrival(packet(psn)) });
    }
    let ack = rig.acks()[0];
    assert_eq!((ack.packets, ack.marked_packets, ack.marked), (4, 2, false));
    rig.receiver.on_data(Time::ZERO, &Arrival { marked: true, ..arrival(packet(3)) });
    let ack = rig.acks()[0];
    assert_eq!((ack.packets, ack.marked_packets, ack.marked), (1, 1, true));
    assert_eq!((rig.receiver.stats().marked, rig.receiver.stats().acks), (3, 2));
}

//= docs/specs/flowcut-switch.md#FCS-4 acknowledged packets
#[test]
fn an_ack_of_a_duplicate_reports_that_it_was_trimmed() {
    let mut rig = Rig::new(config());
    rig.take(0, packet(0));
    assert!(!rig.acks()[0].trimmed);
    assert_eq!(
        rig.receiver.on_data(Time::ZERO, &Arrival { trimmed: true, ..arrival(packet(0)) }),
        DataOutcome::Duplicate
    );
    assert!(rig.acks()[0].trimmed);
    rig.take(0, packet(0));
    assert!(!rig.acks()[0].trimmed);
}

//= docs/specs/transport.md#TRN-50 beyond the window
//= docs/specs/transport.md#TRN-51 duplicates
//= docs/specs/transport.md#TRN-58 reordering
#[test]
fn window_duplicates_and_order() {
    let mut rig = Rig::new(FlowConfig { window_packets: 8, ..config() });
    assert_eq!(rig.take(0, packet(8)), DataOutcome::OutOfWindow);
    assert_eq!(rig.acks().len(), 1, "a request for a grant is answered");
    assert_eq!(rig.take(0, packet(7)), NEW);
    assert_eq!(rig.take(0, packet(7)), DataOutcome::Duplicate);
    for psn in [3, 0, 1, 2] {
        assert_eq!(rig.take(0, packet(psn)), NEW);
    }
    assert_eq!((rig.receiver.cumulative(), rig.receiver.stats().order.reordered), (4, 4));
    assert_eq!(rig.take(0, packet(2)), DataOutcome::Duplicate);
    rig.acks();
    assert_eq!(rig.take(0, packet(6)), NEW);
    assert_eq!(rig.take(0, Data { retransmit: true, ..packet(5) }), NEW);
    assert_eq!(rig.receiver.stats().order.reordered, 5, "a retransmission does not count as reordered");
    assert_eq!(rig.take(0, packet(2)), DataOutcome::Duplicate);
    let ack = rig.acks()[0];
    assert_eq!((ack.cumulative, selected(&ack)), (4, [5, 6, 7].to_vec()));
    assert_eq!(rig.take(0, packet(11)), NEW);
    assert_eq!(rig.take(0, packet(12)), DataOutcome::OutOfWindow);
    assert_eq!(rig.take(0, packet(u64::MAX)), DataOutcome::OutOfWindow);
}

//= docs/specs/transport.md#TRN-55 content of an ACK
#[test]
fn a_marked_packet_is_acknowledged_at_once_if_configured() {
    //= docs/specs/transport.md#TRN-54 when an ACK is due
    for (ack_marked, acks) in [(false, 0), (true, 1)] {
        let mut rig = Rig::new(FlowConfig { ack_every: 8, ack_marked, ..config() });
        rig.take(0, packet(0));
        assert!(rig.acks().is_empty());
        rig.receiver.on_data(Time::ZERO, &Arrival { marked: true, ..arrival(packet(1)) });
        assert_eq!(rig.acks().len(), acks);
    }
}

#[test]
fn the_bitmap_reaches_the_latest_packet() {
    let mut rig = Rig::new(FlowConfig { window_packets: 1024, ..config() });
    rig.take(0, packet(200));
    assert_eq!((rig.acks()[0].sack_base, rig.receiver.cumulative()), (0, 0), "one bitmap covers both");
    rig.take(0, packet(900));
    let ack = rig.acks()[0];
    assert_eq!((ack.sack_base, selected(&ack)), (645, [900].to_vec()));
    rig.take(0, packet(3));
    assert_eq!(selected(&rig.acks()[0]), [3, 200]);
    // A duplicate is answered by a bitmap that covers it, or it would be retransmitted again and
    // again.
    rig.take(0, packet(900));
    assert_eq!(selected(&rig.acks()[0]), [900]);
}

//= docs/specs/transport.md#TRN-55 one bitmap does not cover
#[test]
fn packets_beyond_one_bitmap_are_acknowledged_by_two() {
    let mut rig = Rig::new(FlowConfig { window_packets: 8192, ack_every: 200, ..config() });
    let mut take = |psn| {
        assert!(matches!(rig.take(0, of_many(psn)), NEW | DataOutcome::Duplicate));
        rig.acks()
    };
    assert_eq!([1, 256].map(&mut take), [[], []].map(Vec::<Ack>::from), "one bitmap covers all");
    let acks = take(900);
    assert_eq!(acks.iter().flat_map(selected).collect::<Vec<_>>(), [1, 256, 900]);
    assert_eq!(acks.iter().map(|ack| ack.packets).collect::<Vec<_>>(), [3, 0], "counted once");
    assert_eq!(take(7000), []);
    let acks = take(300);
    assert_eq!(acks.iter().flat_map(selected).collect::<Vec<_>>(), [300, 7000]);
    // Old packets arrive again, alternately from both ends: each is acknowledged, by no more than
    // two ACKs.
    for round in 0..100 {
        let acks = take(if round % 2 == 0 { 1 } else { 7000 });
        assert!((1..=2).contains(&acks.len()), "{}", acks.len());
    }
}

proptest! {
    /// For any arrivals in any order: an arrival causes at most two ACKs, and everything received
    /// is acknowledged when an ACK is due.
    //= docs/specs/transport.md#TRN-55 one bitmap does not cover
    #[test]
    fn an_arrival_triggers_at_most_two_acks(
        psns in prop::collection::vec(prop_oneof![0u64..6, 200u64..300, 3_000u64..3_010, 5_000u64..8_000], 1..80),
        ack_every in prop_oneof![Just(1), Just(4), Just(200)],
    ) {
        let mut rig = Rig::new(FlowConfig { window_packets: 8192, ack_every, ..config() });
        let mut acknowledged = alloc::collections::BTreeSet::new();
        for (at, &psn) in psns.iter().enumerate() {
            rig.take(0, of_many(psn));
            let acks = rig.acks();
            prop_assert!(acks.len() <= 2, "{} for {psn}", acks.len());
            for ack in &acks {
                acknowledged.extend((0..ack.cumulative.min(8)).chain(selected(ack)));
            }
            let due = acks.last().is_some();
            prop_assert!(!due || psns[..=at].iter().all(|psn| acknowledged.contains(psn)), "{acknowledged:?}");
        }
    }
}

//= docs/specs/transport.md#TRN-56 NACKs
#[test]
fn a_trimmed_packet_is_answered_by_a_nack_or_if_known_an_ack() {
    let mut rig = Rig::new(config());
    let trimmed = |psn| Arrival { trimmed: true, marked: true, ..arrival(packet(psn)) };
    assert_eq!(rig.receiver.on_data(Time::ZERO, &trimmed(5)), DataOutcome::Trimmed);
    assert_eq!(rig.acks(), []);
    let nack = rig.receiver.poll_nack().unwrap();
    assert_eq!((nack.psn, nack.timestamp_echo, nack.port.number(), nack.hops), (5, sent_at(5), 1005, 3));
    assert_eq!((nack.marked, nack.payload_bytes), (true, 1000));
    assert_eq!(rig.receiver.poll_nack(), None);
    assert_eq!(rig.take(0, packet(5)), NEW);
    rig.acks();
    assert_eq!(rig.receiver.on_data(Time::ZERO, &trimmed(5)), DataOutcome::Duplicate);
    assert_eq!((rig.acks().len(), rig.receiver.poll_nack()), (1, None));
    for _ in 0..1000 {
        rig.receiver.on_data(Time::ZERO, &trimmed(6));
    }
    assert_eq!(core::iter::from_fn(|| rig.receiver.poll_nack()).count(), 64);
    assert_eq!(rig.receiver.stats().nacks_dropped, 1000 - 64);
}

//= docs/specs/transport.md#TRN-57 granting
#[test]
fn the_grant_is_enforced_and_grows_with_consumption() {
    let mut rig = Rig::new(FlowConfig { max_data_bytes: 10_000, ack_every: 100, ..config() });
    for psn in 0..6 {
        assert_eq!(rig.take(0, packet(psn)), NEW);
    }
    rig.receiver.consumed(4_999);
    assert_eq!(rig.acks(), [], "less than half consumed");
    rig.receiver.consumed(1);
    let ack = rig.acks()[0];
    assert_eq!((ack.max_data, ack.packets), (15_000, 6));
    rig.receiver.consumed(5_000_000);
    assert_eq!(rig.receiver.max_data(), 16_000, "at most what was received");
    for psn in 6..16 {
        assert_eq!(rig.take(0, packet(psn)), NEW);
    }
    assert_eq!(rig.take(0, packet(16)), DataOutcome::Invalid);
    rig.acks();
    rig.receiver.consumed(1_000);
    assert_eq!(rig.acks()[0].max_data, 17_000, "sent at once to a sender that must be blocked");
    assert_eq!(rig.take(0, packet(16)), NEW);
    rig.acks();
    rig.receiver.consumed(0);
    assert_eq!(rig.acks(), [], "the grant has not changed");
}

#[test]
fn untaken_completions_withhold_the_grant() {
    let mut rig = Rig::new(FlowConfig { window_packets: 1024, ..config() });
    let whole = |psn: u64| Data { message: psn as u32, offset: 0, message_bytes: 1000, ..packet(psn) };
    for psn in 0..64 {
        assert_eq!(rig.take(0, whole(psn)), NEW);
    }
    assert_eq!(rig.take(0, whole(64)), DataOutcome::OutOfWindow);
    assert_eq!(rig.receiver.message_completed(), Some((0, 1000)));
    assert_eq!(rig.take(0, whole(64)), NEW);
}

//= docs/specs/transport.md#TRN-59 further echoes
#[test]
fn an_ack_echoes_the_packets_before_its_trigger() {
    for (ack_evs, echoed) in [(1, 0..0), (2, 2..3), (3, 1..3), (4, 0..3), (16, 0..3)] {
        let mut rig = Rig::new(FlowConfig { ack_every: 4, ack_evs, ..config() });
        for round in 0..3u64 {
            (4 * round..4 * round + 4).for_each(|psn| _ = rig.take(0, packet(psn)));
            let acks = rig.acks();
            let expected = echoed.clone().map(|ahead| (EvPort::new(1000 + 4 * round as u16 + ahead), false));
            assert!(acks[0].echoes.iter().eq(expected), "{ack_evs}: {:?}", acks[0]);
            assert_eq!((acks.len(), acks[0].port.number()), (1, 1003 + 4 * round as u16));
        }
    }
}

//= docs/specs/transport.md#TRN-64 among the further echoes
#[test]
fn misrouted_packets_are_reported_and_not_as_marked() {
    let mut rig = Rig::new(FlowConfig { ack_every: 4, ack_evs: 4, ..config() });
    for (psn, misrouted) in [false, true, true, true].into_iter().enumerate() {
        rig.receiver.on_data(Time::ZERO, &Arrival { misrouted, ..arrival(packet(psn as u64)) });
    }
    let acks = rig.acks();
    assert!(acks[0].echoes.iter().map(|(_, marked)| marked).eq([false, true, true]));
    assert_eq!(
        (acks[0].misrouted, acks[0].marked, acks[0].marked_packets, rig.receiver.stats().marked),
        (true, false, 0, 0)
    );
}

//= docs/specs/transport.md#TRN-53 a window of packets with the receiver's own
#[test]
fn open_messages_are_bounded_by_packets_of_our_size() {
    let config = FlowConfig { max_message_bytes: 10_000, ..config() };
    let mut receiver = Receiver::new(&config);
    let begun = (0..60u32).filter(|number| {
        let first = Data { psn: (*number).into(), message: *number, offset: 0, message_bytes: 10_000, ..packet(0) };
        matches!(receiver.on_data(Time::ZERO, &arrival(first)), DataOutcome::New { .. })
    });
    // Two messages, and 64 packets of 1,000 bytes.
    assert_eq!(begun.count(), 8);
}

//= docs/specs/eqds.md#EQDS-16 limit of unused credit
#[test]
fn credit_is_returned_for_packets_that_may_have_used_it() {
    let receiver = Receiver::new(&config());
    let back = |accept, trimmed, payload_bytes| {
        let data = Data { payload_bytes, ..packet(0) };
        receiver.credit_back(&Arrival { trimmed, ..arrival(data) }, accept)
    };
    let (one, whole) = (u64::from(HEADER + 10), u64::from(HEADER + PAYLOAD));
    for accept in [NEW, DataOutcome::Duplicate, DataOutcome::OutOfWindow, DataOutcome::Trimmed] {
        assert_eq!([10, 1000, 60_000].map(|bytes| back(accept, false, bytes)), [8 * one, 8 * whole, 8 * whole]);
        assert_eq!([10, 1000, 60_000].map(|bytes| back(accept, true, bytes)), [one, whole, whole]);
    }
    for accept in [DataOutcome::Invalid, DataOutcome::Trailer] {
        assert_eq!([true, false].map(|trimmed| back(accept, trimmed, 1000)), [0, 0]);
    }
}
