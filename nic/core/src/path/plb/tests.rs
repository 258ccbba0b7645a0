//! Tests of PLB; clauses are those of `docs/specs/plb.md`.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::rng::{self, Rng};
use crate::tests::{at_step, path_of};

/// Times are in steps of [`Time`].
const RTT: u64 = 1_000;
const RTT_PS: u64 = RTT * Time::STEP_PS;

fn plb(change: impl FnOnce(&mut PlbConfig)) -> Rig {
    let mut own = PlbConfig::default();
    change(&mut own);
    let mut rng = rng::stream(1, 0);
    let path = path_of(RTT_PS, 10);
    Rig { plb: Plb::make(&own, &path, &mut rng), path, rng }
}

struct Rig {
    path: Path,
    plb: Plb,
    rng: Rng,
}

impl Rig {
    fn acks(&mut self, now: u64, packets: u16, marked_packets: u16) {
        let ack = AckInfo { packets, marked_packets, ..AckInfo::default() };
        self.plb.on_ack(self.path.at(at_step(now)), &ack, &mut ());
    }

    fn loss(&mut self, now: u64, cause: LossCause) {
        self.plb.on_loss(self.path.at(at_step(now)), &LossInfo { cause, ..LossInfo::default() }, &mut ());
    }

    /// Returns whether a packet sent now takes a new path.
    fn moves(&mut self, now: u64, in_flight_bytes: u64) -> bool {
        let (before, ev) = (self.rng.clone(), self.plb.state.ev);
        let next = self.plb.next_ev(
            self.path.at(at_step(now)),
            &SendInfo { in_flight_bytes, ..SendInfo::default() },
            &mut self.rng,
        );
        let moves = before != self.rng;
        assert!(moves || next == ev);
        moves
    }

    /// Rounds of ten packets with these numbers of marks; returns for each whether a move follows.
    fn rounds(&mut self, from: u64, marked: &[u16], in_flight_bytes: u64) -> Vec<bool> {
        let rounds = marked.iter().zip(1..);
        rounds
            .map(|(&marked, round)| {
                let now = from + round * (RTT + 1);
                self.acks(now, 10, marked);
                self.moves(now, in_flight_bytes)
            })
            .collect()
    }
}

#[test]
fn a_connection_starts_on_a_seeded_path() {
    //= docs/specs/plb.md#PLB-1 the first EV
    let made = |seed| {
        let config = Path { seed: Some(seed), ..path_of(RTT_PS, 10) };
        Plb::make(&PlbConfig::default(), &config, &mut rng::stream(seed, 3)).state.ev
    };
    assert_eq!(made(1), draw_lasting(&Path { seed: Some(1), ..path_of(1, 1) }, 0, &mut rng::stream(0, 0)));
    assert_ne!(made(1), made(2));
}

#[test]
fn each_variant_has_its_share_and_count_of_rounds() {
    //= docs/specs/plb.md#PLB-4 congested rounds
    //= docs/specs/plb.md#PLB-5 A new EV
    //= docs/specs/plb.md#PLB-9 rules
    let table: &[(PlbRule, &[u16], usize)] = &[
        // The second consecutive round with a mark moves; a round without marks resets the count.
        (PlbRule::Reps, &[1, 0, 1, 1, 1, 1, 0], 2),
        (PlbRule::Reps, &[10, 0, 10, 0, 10, 0], 0),
        // More than four of ten, at once.
        (PlbRule::Ofan, &[4, 4, 4, 5, 4, 6, 6], 3),
        // Half suffices, in twelve consecutive rounds.
        (PlbRule::Linux, &[5; 11], 0),
        (PlbRule::Linux, &[5; 12], 1),
        (PlbRule::Linux, &[4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 4, 5], 0),
    ];
    for &(rule, marked, moves) in table {
        let mut rig = plb(|plb| plb.rule = rule);
        rig.acks(0, 0, 0);
        let moved = rig.rounds(0, marked, 1);
        assert_eq!(moved.iter().filter(|moved| **moved).count(), moves, "{rule:?} {marked:?}: {moved:?}");
    }
}

#[test]
fn parameters_override_the_variant() {
    //= docs/specs/plb.md#PLB-9 rules
    let mut rig = plb(|plb| (plb.marked_share, plb.rounds) = (Some(Ratio::permille(250)), Some(3)));
    assert_eq!(rig.rounds(0, &[3, 3, 2, 3, 3, 3, 3], 1), [false, false, false, false, false, true, false]);
    let mut rig = plb(|plb| plb.round_packets = Some(40));
    assert_eq!(rig.rounds(0, &[1, 0, 0, 0, 1, 0, 0, 0], 1), [false, false, false, false, false, false, false, true]);
    let mut rig = plb(|plb| (plb.round_us, plb.rounds) = (Some(Micros::from_ps(3 * RTT_PS)), Some(1)));
    assert_eq!(rig.rounds(0, &[0, 1, 0, 0], 1), [false, false, false, true]);
}

#[test]
fn a_round_by_time_ends_with_the_first_feedback_after_it() {
    //= docs/specs/plb.md#PLB-3 rounds
    let mut rig = plb(|plb| plb.rounds = Some(1));
    rig.acks(5, 1, 1);
    assert!(rig.moves(5, 1), "the very first feedback ends a round");
    rig.acks(5 + RTT, 1, 1);
    assert!(!rig.moves(5 + RTT, 1));
    rig.acks(6 + RTT, 1, 0);
    assert!(rig.moves(6 + RTT, 1));
}

#[test]
fn an_idle_connection_moves_sooner_in_some_variants() {
    //= docs/specs/plb.md#PLB-6 moving while idle
    let mut busy = plb(|plb| plb.rule = PlbRule::Linux);
    assert_eq!(busy.rounds(0, &[5, 5, 5, 5], 1), [false; 4]);
    assert!(busy.moves(5 * RTT, 0));
    let mut idle = plb(|plb| plb.rule = PlbRule::Linux);
    assert_eq!(idle.rounds(0, &[5, 5, 5, 5], 0), [false, false, true, false]);
    let mut artifact = plb(|_| ());
    artifact.rounds(0, &[0, 1], 0);
    assert!(!artifact.moves(5 * RTT, 0));
}

#[test]
fn timeouts_move_at_once_but_not_in_bursts() {
    //= docs/specs/plb.md#PLB-7 timeouts
    let mut rig = plb(|_| ());
    rig.loss(10, LossCause::Timeout);
    assert!(rig.moves(10, 0) && !rig.moves(10, 0));
    rig.loss(10 + 5 * RTT, LossCause::Timeout);
    assert!(!rig.moves(10 + 5 * RTT, 0), "within five RTTs");
    rig.loss(11 + 5 * RTT, LossCause::Timeout);
    assert!(rig.moves(11 + 5 * RTT, 0));
}

#[test]
fn a_timeout_suspends_moves_for_congestion_as_in_linux() {
    //= docs/specs/plb.md#PLB-8 suspended after a timeout
    let mut rig = plb(|plb| (plb.rule, plb.suspend_us) = (PlbRule::Linux, Some(Micros::from_ps(100 * RTT_PS))));
    rig.loss(1, LossCause::Timeout);
    assert!(rig.moves(1, 1));
    assert_eq!(rig.rounds(1, &[10; 20], 1), [false; 20]);
    rig.loss(30 * RTT, LossCause::Timeout);
    assert!(rig.moves(30 * RTT, 1), "not for timeouts");
    assert_eq!(rig.rounds(30 * RTT, &[10; 20], 1), [false; 20]);
    assert!(rig.moves(131 * RTT, 1));
}

#[test]
fn trimmed_and_overtaken_packets_count_as_congested() {
    //= docs/specs/plb.md#PLB-2 counted packets
    let mut rig = plb(|plb| plb.rounds = Some(1));
    rig.acks(0, 1, 0);
    rig.acks(1, 9, 0);
    for cause in [LossCause::Trimmed, LossCause::SackGap] {
        rig.plb.state.round_end = Time::ZERO;
        rig.loss(2, cause);
        assert!(rig.moves(2, 1), "{cause:?}");
    }
}

/// A transcription of REPS's artifact; draws are counted.
#[derive(Default)]
struct Artifact {
    congested_rounds: u32,
    congested: u64,
    delivered: u64,
    last_rtt: u64,
    timeout_wait: u64,
    draws: u32,
}

impl Artifact {
    fn next_entropy(&mut self) {
        let n = 1;
        if self.congested_rounds > n {
            self.congested_rounds = 0;
            self.draws += 1;
        }
    }

    fn process_ev(&mut self, now: u64, good: bool) {
        self.delivered += 4096;
        if !good {
            self.congested += 4096;
        }
        // Written as 0.25, stored in an integer.
        let k = 0;
        if now > self.last_rtt {
            if self.congested > k * self.delivered {
                self.congested_rounds += 1;
            } else {
                self.congested_rounds = 0;
            }
            (self.delivered, self.congested) = (0, 0);
            self.last_rtt = now + RTT;
        }
    }

    fn rtx_timer_expired(&mut self, now: u64) {
        if now > self.timeout_wait {
            self.timeout_wait = now + 5 * RTT;
            self.congested_rounds = 0;
            self.draws += 1;
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Send,
    Ack { marked: bool },
    Trimmed,
    Timeout,
    Wait { steps: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => Just(Op::Send),
        4 => prop::bool::weighted(0.3).prop_map(|marked| Op::Ack { marked }),
        1 => Just(Op::Trimmed),
        1 => Just(Op::Timeout),
        3 => prop_oneof![Just(RTT), 0..7 * RTT].prop_map(|steps| Op::Wait { steps }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    /// Clauses 2 to 7 and 9: the same as REPS's artifact, move by move; it draws at a timeout, the
    /// implementation at the next send.
    #[test]
    fn the_reps_variant_agrees_with_its_artifact(ops in prop::collection::vec(op(), 1..300)) {
        let (mut ours, mut theirs, mut now, mut drawn) = (plb(|_| ()), Artifact::default(), 1, 0);
        for op in ops {
            match op {
                Op::Send => {
                    theirs.next_entropy();
                    prop_assert_eq!(ours.moves(now, 0), theirs.draws > drawn);
                    drawn = theirs.draws;
                }
                Op::Ack { marked } => {
                    ours.acks(now, 1, marked.into());
                    theirs.process_ev(now, !marked);
                }
                Op::Trimmed => {
                    ours.loss(now, LossCause::Trimmed);
                    theirs.process_ev(now, false);
                }
                Op::Timeout => {
                    ours.loss(now, LossCause::Timeout);
                    theirs.rtx_timer_expired(now);
                }
                Op::Wait { steps } => now += steps,
            }
        }
    }
}

/// The size stated in the documentation.
#[test]
fn state_takes_forty_bytes() {
    assert_eq!(Plb::STATE_BYTES, 40);
}
