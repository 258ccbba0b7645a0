//! Tests of flowlet switching; clauses are those of `docs/specs/flowlet.md`.

use proptest::prelude::*;

use super::*;
use crate::rng::{self, Rng};
use crate::tests::{at_step, path_of};

/// Times are in steps of [`Time`].
const RTT: u64 = 1_000;
const RTT_PS: u64 = RTT * Time::STEP_PS;

struct Rig {
    path: Path,
    flowlet: Flowlet,
    rng: Rng,
}

fn flowlet(change: impl FnOnce(&mut FlowletConfig)) -> Rig {
    let mut own = FlowletConfig::default();
    change(&mut own);
    let mut rng = rng::stream(1, 0);
    let path = path_of(RTT_PS, 10);
    Rig { flowlet: Flowlet::make(&own, &path, &mut rng), path, rng }
}

impl Rig {
    fn ack(&mut self, now: u64) {
        self.flowlet.on_ack(self.path.at(at_step(now)), &AckInfo::default(), &mut ());
    }

    fn loss(&mut self, now: u64, cause: LossCause) {
        self.flowlet.on_loss(self.path.at(at_step(now)), &LossInfo { cause, ..LossInfo::default() }, &mut ());
    }

    /// Returns whether a packet sent now takes a new path.
    fn moves(&mut self, now: u64) -> bool {
        let (before, ev) = (self.rng.clone(), self.flowlet.state.ev);
        let next = self.flowlet.next_ev(self.path.at(at_step(now)), &SendInfo::default(), &mut self.rng);
        let moves = before != self.rng;
        assert!(moves || next == ev);
        moves
    }
}

#[test]
fn a_pause_in_feedback_longer_than_the_gap_ends_a_flowlet() {
    //= docs/specs/flowlet.md#FLOWLET-1 the first EV
    //= docs/specs/flowlet.md#FLOWLET-2 A gap
    //= docs/specs/flowlet.md#FLOWLET-4 the clock
    let mut rig = flowlet(|flowlet| flowlet.hold_us = Some(Micros::default()));
    assert!(!rig.moves(7_000), "the first packet starts the clock");
    assert!(!rig.moves(7_500), "half an RTT does not exceed the gap");
    assert!(rig.moves(7_501), "packets sent in between do not count");
    rig.ack(8_000);
    assert!(!rig.moves(8_500));
    assert!(rig.moves(8_501));
}

#[test]
fn a_path_is_held_after_a_change() {
    //= docs/specs/flowlet.md#FLOWLET-3 minimum hold time
    let mut rig = flowlet(|_| ());
    assert!(!rig.moves(0));
    assert!(rig.moves(501));
    assert!(!rig.moves(501 + 5 * RTT));
    assert!(rig.moves(502 + 5 * RTT));
}

#[test]
fn losses_reported_by_the_network_are_feedback() {
    //= docs/specs/flowlet.md#FLOWLET-5 losses
    for (cause, moves) in [(LossCause::Trimmed, false), (LossCause::SackGap, false), (LossCause::Timeout, true)] {
        let mut rig = flowlet(|_| ());
        rig.moves(0);
        rig.loss(400, cause);
        assert_eq!(rig.moves(600), moves, "{cause:?}");
    }
}

#[test]
fn with_the_packet_clock_a_pause_in_sending_ends_a_flowlet() {
    //= docs/specs/flowlet.md#FLOWLET-2 A gap
    //= docs/specs/flowlet.md#FLOWLET-4 the clock
    let mut rig = flowlet(|flowlet| {
        (flowlet.clock, flowlet.gap_us) = (FlowletClock::Packets, Some(Micros::from_ps(300 * Time::STEP_PS)));
    });
    let sent = [(10, false), (310, false), (600, false), (901, true), (1_201, false), (1_502, true), (1_803, true)];
    for (now, moves) in sent {
        rig.ack(now);
        assert_eq!(rig.moves(now), moves, "at {now}");
    }
}

/// A transcription of REPS's artifact, for a connection that begins at time zero; draws are
/// counted.
#[derive(Default)]
struct Artifact {
    last_pkt: u64,
    timeout_wait: u64,
    draws: u32,
}

impl Artifact {
    fn next_entropy(&mut self, now: u64) {
        let timeout = RTT / 2;
        if now > self.last_pkt + timeout && now > self.timeout_wait {
            self.draws += 1;
            self.timeout_wait = now + 5 * RTT;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    /// Clauses 2 to 5: the same as REPS's artifact, move by move.
    #[test]
    fn the_feedback_clock_agrees_with_the_artifact(ops in prop::collection::vec((0..4u8, 0..2 * RTT), 1..300)) {
        let (mut ours, mut theirs, mut now) = (flowlet(|_| ()), Artifact::default(), 0);
        prop_assert!(!ours.moves(0));
        for (op, steps) in ops {
            match op {
                0 => {
                    let drawn = theirs.draws;
                    theirs.next_entropy(now);
                    prop_assert_eq!(ours.moves(now), theirs.draws > drawn);
                }
                1 => {
                    ours.ack(now);
                    theirs.last_pkt = now;
                }
                2 => ours.loss(now, LossCause::Timeout),
                _ => now += steps,
            }
        }
    }
}

#[test]
fn state_takes_24_bytes() {
    assert_eq!(Flowlet::STATE_BYTES, 24);
}
