//! Tests of the pacer against an oracle with lists and exact fractions; tests of the sender's part
//! against tables derived from the clauses.

use std::collections::VecDeque;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::Time;
use crate::tests::at;

const PACKET: u32 = 4_150;
/// 400 Gb/s and 8.337 us: a bandwidth-delay product of 416,850 bytes, 101 packets.
const BDP_PACKETS: u64 = 101;

fn path() -> Path {
    Path::new(8_337_000, 400_000_000_000, PACKET)
}

fn sender() -> Eqds {
    Eqds::make(&EqdsConfig::default(), &path())
}

/// Sends full packets while it may, and returns their number.
fn drain(cc: &mut Eqds) -> u64 {
    let packets = (0..100_000).take_while(|_| {
        let goes = cc.has_credit();
        if goes {
            cc.on_send(path().at_ps(0), PACKET);
        }
        goes
    });
    packets.count() as u64
}

fn packets(count: u64) -> u64 {
    count * u64::from(PACKET)
}

fn demand(cc: &mut Eqds) -> Option<u64> {
    cc.poll_request(&path(), false).map(|request| request.demand_bytes)
}

//= docs/specs/eqds.md#EQDS-2 speculation
//= docs/specs/eqds.md#EQDS-6 demand
#[test]
fn the_first_window_goes_without_credit() {
    let mut cc = sender();
    assert_eq!(demand(&mut cc), None, "nothing to send");
    cc.on_queued(&path(), packets(200), true);
    assert_eq!(demand(&mut cc), Some(packets(200 - BDP_PACKETS)));
    assert_eq!(drain(&mut cc), BDP_PACKETS);
    assert_eq!(demand(&mut cc), None, "already requested");
    assert!(cc.on_pull(&path(), packets(10)) && !cc.on_pull(&path(), packets(9)) && !cc.on_pull(&path(), packets(10)));
    assert_eq!(drain(&mut cc), 10);
}

//= docs/specs/eqds.md#EQDS-1 credit spent
//= docs/specs/eqds.md#EQDS-4 credit in place of the window
#[test]
fn a_packet_may_overdraw_credit_and_the_next_waits() {
    let mut cc = sender();
    cc.on_queued(&path(), packets(200), true);
    let _ = demand(&mut cc);
    drain(&mut cc);
    cc.on_pull(&path(), 1);
    assert_eq!(drain(&mut cc), 1);
    cc.on_pull(&path(), packets(1));
    assert_eq!(drain(&mut cc), 0);
    cc.on_pull(&path(), packets(1) + 1);
    assert_eq!(drain(&mut cc), 1);
}

//= docs/specs/eqds.md#EQDS-3 end of speculation
//= docs/specs/eqds.md#EQDS-7 announcing the demand
#[test]
fn feedback_ends_speculation_and_the_rest_is_requested() {
    type Feedback = fn(&mut Eqds);
    let kinds: [(Feedback, u64); 4] = [
        (|cc| cc.on_ack(path().at_ps(0), &AckInfo::default()), 0),
        (|cc| cc.on_loss(path().at_ps(0), PACKET, LossCause::Trimmed), 0),
        (|cc| cc.on_loss(path().at_ps(0), PACKET, LossCause::Timeout), 1),
        (|cc| assert!(!cc.on_pull(&path(), 0)), 0),
    ];
    for (feedback, again) in kinds {
        let mut cc = sender();
        cc.on_queued(&path(), packets(150), true);
        assert_eq!(demand(&mut cc), Some(packets(150 - BDP_PACKETS)));
        (0..20).for_each(|_| cc.on_send(path().at_ps(0), PACKET));
        feedback(&mut cc);
        assert!(!cc.has_credit());
        // The first request no longer suffices: another one is sent.
        assert_eq!(demand(&mut cc), Some(packets(130 + again)));
    }
}

//= docs/specs/eqds.md#EQDS-6 demand
#[test]
fn trims_add_no_demand_but_other_losses_do() {
    let mut cc = sender();
    cc.on_queued(&path(), packets(50), true);
    assert_eq!((demand(&mut cc), drain(&mut cc)), (Some(packets(1)), BDP_PACKETS));
    (0..7).for_each(|_| cc.on_loss(path().at_ps(0), PACKET, LossCause::Trimmed));
    // 101 packets were sent, 50 of them while queued: the sender would have stopped there.
    cc.state.speculated = packets(50);
    assert_eq!(demand(&mut cc), None);
    cc.on_loss(path().at_ps(0), PACKET, LossCause::SackGap);
    cc.on_loss(path().at_ps(0), PACKET, LossCause::Timeout);
    assert_eq!(demand(&mut cc), Some(packets(2)));
}

//= docs/specs/eqds.md#EQDS-19 one packet in advance
#[test]
fn a_sender_requests_one_packet_in_advance() {
    let requested = |bytes: u64| {
        let mut cc = sender();
        cc.on_queued(&path(), bytes, true);
        demand(&mut cc)
    };
    let sizes = [1, 2, 50, BDP_PACKETS + 1].map(packets);
    assert_eq!(sizes.map(requested), [Some(0), Some(packets(1)), Some(packets(1)), Some(packets(1))]);
    assert_eq!(requested(packets(1) + 100), Some(100), "the rest after the first packet");
    let mut cc = sender();
    cc.on_queued(&path(), packets(50), true);
    assert_eq!((demand(&mut cc), demand(&mut cc)), (Some(packets(1)), None));
    // One packet was sent before the first acknowledgement arrived.
    cc.on_send(path().at_ps(0), PACKET);
    cc.on_ack(path().at_ps(0), &AckInfo::default());
    assert_eq!(demand(&mut cc), Some(packets(49)));
    // A second message of an idle sender without credit.
    cc.on_pull(&path(), packets(49));
    assert_eq!(drain(&mut cc), 49);
    cc.on_queued(&path(), packets(50), true);
    assert_eq!((demand(&mut cc), demand(&mut cc)), (Some(packets(50)), None));
}

//= docs/specs/eqds.md#EQDS-8 size of a request
#[test]
fn a_long_message_is_requested_in_parts() {
    let mut cc = sender();
    cc.on_queued(&path(), packets(100_000), true);
    let window = 3 * 416_850;
    assert_eq!(demand(&mut cc), Some(window));
    drain(&mut cc);
    let (mut requests, mut requested, mut pulled) = (0u64, window, 0);
    while pulled + u64::from(PACKET) <= packets(50_000) {
        pulled += u64::from(PACKET);
        assert!(pulled <= requested, "the receiver never runs out of demand");
        cc.on_pull(&path(), pulled);
        assert_eq!(drain(&mut cc), 1);
        if let Some(now) = demand(&mut cc) {
            assert_eq!(now, pulled + window);
            (requests, requested) = (requests + 1, now);
        }
    }
    assert!(requests.abs_diff(packets(50_000) / (window / 2)) <= 2, "{requests}");
}

//= docs/specs/eqds.md#EQDS-2 speculation
#[test]
fn unused_credit_reduces_the_next_speculation() {
    let mut cc = sender();
    cc.on_queued(&path(), packets(150), true);
    let _ = demand(&mut cc);
    assert_eq!(drain(&mut cc), BDP_PACKETS);
    cc.on_loss(path().at_ps(0), PACKET, LossCause::Timeout);
    let _ = demand(&mut cc);
    cc.on_pull(&path(), packets(50));
    // The packet declared lost had arrived: 49 are sent, and credit for one is left.
    (0..49).for_each(|_| cc.on_send(path().at_ps(0), PACKET));
    cc.on_queued(&path(), packets(300), true);
    assert_eq!(drain(&mut cc), BDP_PACKETS);
    assert_eq!(demand(&mut cc), Some(packets(50 + 300 - BDP_PACKETS)));
}

//= docs/specs/eqds.md#EQDS-5 totals
//= docs/specs/eqds.md#EQDS-9 excess credit
#[test]
fn credit_beyond_the_possible_is_ignored() {
    let mut cc = sender();
    cc.on_queued(&path(), packets(200), true);
    assert_eq!(demand(&mut cc), Some(packets(99)));
    drain(&mut cc);
    cc.on_pull(&path(), u64::MAX);
    // The requested credit, and as much again as if every packet so far had been trimmed.
    assert_eq!(cc.state.pulled, packets(200));
    assert_eq!(drain(&mut cc), 200);
    let mut cc = sender();
    cc.on_queued(&path(), packets(10_000), true);
    let _ = demand(&mut cc);
    drain(&mut cc);
    (0..2_000).for_each(|_| cc.on_send(path().at_ps(0), PACKET));
    cc.on_pull(&path(), packets(2_101));
    assert_eq!(drain(&mut cc), (2 * 3 * 416_850u64).div_ceil(u64::from(PACKET)));
}

/// The maximum rounding error of a time: a pacer that catches up after a pause counts 16 gaps back
/// from the present, each rounded to whole steps.
const ROUNDING_PS: u128 = 18 * Time::STEP_PS as u128;

/// The literal pacer: a list of waiting entries, and time as an exact fraction.
struct Literal {
    bps: u128,
    waiting: VecDeque<usize>,
    entries: Vec<LiteralEntry>,
    /// In picoseconds times `bps`.
    next: u128,
}

#[derive(Clone, Copy, Debug)]
struct LiteralEntry {
    pull: u64,
    granted: u64,
    target: u64,
    repeat: bool,
    room: u64,
    bound: CreditBound,
    beyond_ps: u64,
}

impl Literal {
    fn want(&mut self, now_ps: u64, index: usize) {
        let LiteralEntry { granted, target, repeat, room, .. } = self.entries[index];
        if ((target > granted && room > 0) || repeat) && !self.waiting.contains(&index) {
            if self.waiting.is_empty() {
                self.next = self.next.max(u128::from(now_ps) * self.bps);
            }
            self.waiting.push_back(index);
        }
    }

    fn poll(&mut self, now_ps: u64) -> Option<(u32, u64)> {
        let now = u128::from(now_ps) * self.bps;
        if self.next > now || self.waiting.is_empty() {
            return None;
        }
        let index = self.waiting.pop_front()?;
        let entry = &mut self.entries[index];
        let bytes = entry.pull.min(entry.target - entry.granted).min(entry.room);
        entry.granted += bytes;
        entry.room -= bytes;
        entry.repeat = false;
        let (requested, more) = (entry.granted, entry.target > entry.granted && entry.room > 0);
        let gap = u128::from(bytes.max(64)) * 8_000_000_000_000;
        self.next = self.next.max(now.saturating_sub(16 * gap)) + gap;
        if more {
            self.waiting.push_back(index);
        }
        Some((index as u32, requested))
    }
}

#[derive(Clone, Debug)]
enum Op {
    Target(usize, u64),
    Request(usize, u64),
    Arrival(usize, u64),
    Poll(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (0usize..5, 0u64..100_000).prop_map(|(index, bytes)| Op::Target(index, bytes)),
        1 => (0usize..5, 0u64..20_000).prop_map(|(index, bytes)| Op::Request(index, bytes)),
        1 => (0usize..5, 0u64..20_000).prop_map(|(index, bytes)| Op::Arrival(index, bytes)),
        6 => (0u64..3_200).prop_map(|steps| Op::Poll(steps * Time::STEP_PS)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    //= docs/specs/eqds.md#EQDS-10 the target
    //= docs/specs/eqds.md#EQDS-11 one queue
    //= docs/specs/eqds.md#EQDS-12 spacing of pulls
    //= docs/specs/eqds.md#EQDS-13 repeated totals
    //= docs/specs/eqds.md#EQDS-16 limit of unused credit
    //= docs/specs/eqds.md#EQDS-17 requests without room
    #[test]
    fn the_pacer_agrees_with_a_literal_one(
        ops in prop::collection::vec(op(), 1..300),
        pulls in prop::collection::vec((1u64..9_000, 0u64..60_000, 0u64..3_000_000), 5..6),
        (gbps, share) in (1u64..800, 500u64..=1_000),
    ) {
        // One byte takes a whole number of 2^-16 ps or nearly so, and gaps are whole steps of time.
        let mut pacer = PullPacer::new(gbps * 1_000_000_000, Ratio::permille(share));
        let bps = u128::from(gbps) * u128::from(share) * 1_000_000;
        let entry = |&(pull, bytes, retry_ps): &(u64, u64, u64)| {
            let bound = CreditBound { bytes: bytes.max(pull), retry_ps };
            LiteralEntry { pull, granted: 0, target: 0, repeat: false, room: bound.bytes, bound, beyond_ps: 0 }
        };
        let entries = pulls.iter().map(entry).collect();
        let mut literal = Literal { bps, waiting: VecDeque::new(), entries, next: 0 };
        for (owner, (pull, bytes, retry_ps)) in pulls.iter().enumerate() {
            let bound = CreditBound { bytes: *bytes, retry_ps: *retry_ps };
            prop_assert_eq!(pacer.open(owner as u32, *pull, bound), owner as u32);
        }
        let mut now_ps = 0;
        for op in ops {
            match op {
                Op::Target(index, bytes) => {
                    pacer.on_target(at(now_ps), index as u32, bytes);
                    literal.entries[index].target = literal.entries[index].target.max(bytes);
                    literal.want(now_ps, index);
                }
                Op::Request(index, pulled) => {
                    pacer.on_request(at(now_ps), index as u32, pulled);
                    let entry = &mut literal.entries[index];
                    if pulled < entry.granted {
                        entry.repeat = true;
                    } else if entry.room == 0 && entry.beyond_ps <= now_ps {
                        (entry.room, entry.beyond_ps) = (entry.pull, now_ps + entry.bound.retry_ps);
                    }
                    literal.want(now_ps, index);
                }
                Op::Arrival(index, bytes) => {
                    pacer.on_arrival(at(now_ps), index as u32, bytes);
                    let entry = &mut literal.entries[index];
                    entry.room = (entry.room + bytes).min(entry.bound.bytes);
                    literal.want(now_ps, index);
                }
                Op::Poll(by_ps) => {
                    now_ps += by_ps;
                    // Rounding must not decide: poll where both agree whether a pull is due.
                    let close = literal.next.abs_diff(u128::from(now_ps) * bps) < ROUNDING_PS * bps;
                    now_ps += if close { 2 * ROUNDING_PS as u64 } else { 0 };
                    loop {
                        let found = pacer.poll_pull(at(now_ps)).map(|(owner, pull)| (owner, pull.credit_bytes));
                        prop_assert_eq!(found, literal.poll(now_ps));
                        if found.is_none() || literal.next.abs_diff(u128::from(now_ps) * bps) < ROUNDING_PS * bps {
                            break;
                        }
                    }
                }
            }
            match pacer.poll_timeout() {
                None => prop_assert!(literal.waiting.is_empty()),
                Some(at) => prop_assert!(u128::from(at.ps()).abs_diff(literal.next / bps) < ROUNDING_PS),
            }
        }
    }
}

//= docs/specs/eqds.md#EQDS-11 one queue
#[test]
fn pulls_take_turns_and_end_with_the_demand() {
    let mut pacer = PullPacer::new(400_000_000_000, Ratio::permille(1_000));
    let entries: Vec<u32> = (0..3).map(|owner| pacer.open(10 + owner, 4_000, CreditBound::NONE)).collect();
    for (entry, target) in entries.iter().zip([12_000, 4_100, 20_000]) {
        pacer.on_target(at(500), *entry, target);
    }
    let mut order = Vec::new();
    while let Some(due) = pacer.poll_timeout() {
        assert!(due == at(500) || pacer.poll_pull(due.before(Time::STEP_PS)).is_none());
        let (owner, pull) = pacer.poll_pull(due).unwrap();
        order.push((due.ps(), owner, pull.credit_bytes));
    }
    let turn = 80_000;
    let expected = [
        (500, 10, 4_000),
        (500 + turn, 11, 4_000),
        (500 + 2 * turn, 12, 4_000),
        (500 + 3 * turn, 10, 8_000),
        (500 + 4 * turn, 11, 4_100),
        (500 + 4 * turn + 2_000, 12, 8_000),
        (500 + 5 * turn + 2_000, 10, 12_000),
        (500 + 6 * turn + 2_000, 12, 12_000),
        (500 + 7 * turn + 2_000, 12, 16_000),
        (500 + 8 * turn + 2_000, 12, 20_000),
    ];
    assert_eq!(order, expected);
    // The link is occupied until 9 turns have passed, for every requester.
    pacer.on_target(at(625), entries[0], 13_000);
    assert_eq!(pacer.poll_timeout(), Some(at(500 + 9 * turn + 2_000)));
}

#[test]
fn entries_are_reused_and_closed_ones_get_no_pulls() {
    let mut pacer = PullPacer::new(100_000_000_000, Ratio::permille(990));
    let first = pacer.open(1, 100, CreditBound::NONE);
    let second = pacer.open(2, 100, CreditBound::NONE);
    pacer.on_target(Time::ZERO, first, 1_000);
    pacer.on_target(Time::ZERO, second, 1_000);
    pacer.close(first);
    pacer.close(first);
    let third = pacer.open(3, 100, CreditBound::NONE);
    assert!(third != first, "still in the chain");
    let (owner, _) = pacer.poll_pull(Time::ZERO).unwrap();
    assert_eq!(owner, 2);
    assert_eq!(pacer.open(4, 100, CreditBound::NONE), first);
    pacer.on_target(Time::ZERO, 99, 5);
    pacer.on_request(Time::ZERO, 99, 5);
    pacer.close(99);
}

#[test]
fn no_pacer_input_causes_a_panic() {
    let mut pacer = PullPacer::new(0, Ratio::default());
    let entry = pacer.open(0, 0, CreditBound::NONE);
    pacer.on_target(Time::NEVER, entry, u64::MAX);
    pacer.on_request(Time::ZERO, entry, u64::MAX);
    assert!(pacer.poll_pull(Time::NEVER).is_some());
    let mut cc = sender();
    cc.on_queued(&path(), u64::MAX, true);
    cc.on_send(path().at_ps(0), u32::MAX);
    cc.on_loss(path().at_ps(0), u32::MAX, LossCause::Trimmed);
    let _ = cc.poll_request(&path(), true);
    cc.on_pull(&path(), u64::MAX);
    cc.on_queued(&path(), u64::MAX, true);
    let _ = cc.poll_request(&path(), true);
}

#[test]
fn sizes_of_states_are_as_documented() {
    assert_eq!(<Eqds as Scheme>::STATE_BYTES, 64);
}
