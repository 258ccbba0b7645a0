//! Suspects, probes, freezing and thawing.

use super::*;

//= docs/specs/reps-plus.md#RPP-10 a suspect
#[test]
fn a_loss_that_nothing_explains_makes_a_suspect() {
    let table = [
        (LossCause::Timeout, Some(Ev::new(7))),
        (LossCause::SackGap, Some(Ev::new(7))),
        (LossCause::Trimmed, None),
        (LossCause::Missing, None),
    ];
    for (cause, suspect) in table {
        let mut rig = Rig::new(|_| ());
        rig.plus.on_loss(rig.path.at_ps(5_000), &LossInfo { cause, ..lost(7) }, &mut rig.log);
        assert_eq!(rig.plus.suspect(), suspect, "{cause:?}");
        rig.lose(6_000, 8);
        assert_eq!(rig.plus.suspect(), suspect.or(Some(Ev::new(8))), "one at a time");
        assert_eq!(rig.log, []);
    }
}

//= docs/specs/reps-plus.md#RPP-11 probes
//= docs/specs/reps-plus.md#RPP-12 freezing
#[test]
fn three_unanswered_probes_freeze_once_later_packets_are_acknowledged() {
    let mut rig = Rig::new(|_| ());
    rig.ack(0, &[1, 7, 3], false, 0);
    rig.lose(RTT_PS, 7);
    let first = at(RTT_PS);
    let second = first.after(WAIT_PS / 2);
    let third = second.after(WAIT_PS / 2);
    assert_eq!(rig.probes(at(20 * RTT_PS)), [(first, 7), (second, 7), (third, 7)]);
    assert_eq!(rig.plus.poll_timeout(&rig.path), None, "what follows waits for an ACK");
    let verdict = third.after(WAIT_PS);
    let later = verdict.before(WAIT_PS / 2);
    rig.news(verdict.before(Time::STEP_PS), later);
    assert!(!rig.plus.is_frozen(), "the answer may be on its way");
    rig.news(verdict.after(8 * WAIT_PS), later.before(Time::STEP_PS));
    assert!(!rig.plus.is_frozen(), "no later packet has come back: all may be late");
    rig.news(verdict, later);
    assert_eq!(rig.log, [(verdict, Event::FreezeEntered { reason: FreezeReason::Probes })]);
    assert_eq!(rig.cached(), [1, 3], "the failed value is gone");
}

//= docs/specs/reps-plus.md#RPP-11 probes
#[test]
fn probes_wait_for_the_largest_round_trip_time_seen_lately() {
    let mut rig = Rig::new(|_| ());
    rig.plus.on_loss(rig.path.at_ps(0), &LossInfo { max_rtt_ps: 16 * RTT_PS, ..lost(7) }, &mut rig.log);
    // Nine eighths of 128 us are 137 whole ticks, and one more.
    let half_ps = 138 << (TICK_SHIFT - 1);
    let second = Time::ZERO.after(half_ps);
    assert_eq!(rig.probes(at(1 << 40)), [(Time::ZERO, 7), (second, 7), (second.after(half_ps), 7)]);
}

//= docs/specs/reps-plus.md#RPP-11 probes
#[test]
fn an_answer_clears_the_suspect() {
    for answered in 1..=3 {
        let mut rig = Rig::new(|_| ());
        rig.lose(0, 7);
        (0..answered).for_each(|_| {
            let at = rig.plus.poll_timeout(&rig.path).unwrap();
            assert!(rig.plus.poll_probe(rig.path.at(at)).is_some());
        });
        rig.answer(RTT_PS, 8);
        assert!(rig.plus.suspect().is_some(), "another's");
        rig.answer(RTT_PS, 7);
        assert_eq!(rig.plus.suspect(), None);
        rig.news(at(90 * RTT_PS), at(80 * RTT_PS));
        assert!(!rig.plus.is_frozen() && rig.log.is_empty());
        assert_eq!(rig.probes(Time::NEVER.before(Time::STEP_PS)), []);
    }
}

//= docs/specs/reps-plus.md#RPP-7 reuse beside a suspect
#[test]
fn beside_a_suspect_it_reuses_the_buffer_and_explores_once_frozen_if_losses_are_found_soon() {
    let mut rig = Rig::new(|_| ());
    rig.ack(0, &[1, 2, 3], false, 0);
    rig.lose(0, 9);
    let sent: Vec<u16> = (0..9).map(|_| rig.send()).collect();
    assert_eq!(sent, [1, 2, 3, 3, 2, 1, 3, 2, 1], "once each is used, what came back last goes first");
    rig.ack(0, &[7], false, 0);
    let sent: Vec<u16> = (0..4).map(|_| rig.send()).collect();
    assert_eq!(sent, [7, 7, 3, 2], "in the place of what was used last");
    rig.lose(0, 7);
    rig.ack(0, &[1, 2, 3], false, 0);
    rig.retransmit = true;
    assert_eq!([rig.send(), rig.send()], [3, 2], "what is sent again goes over what came back last");
    rig.retransmit = false;
    assert_eq!(rig.send(), 1);
    rig.ack(0, &[1, 2, 3], false, 0);
    rig.cached();
    rig.probes(at(9 * RTT_PS));
    rig.news(at(20 * RTT_PS), at(19 * RTT_PS));
    assert!(rig.plus.is_frozen() && rig.reuses() < 3);
    let bdp_bytes = u64::from(BDP) * u64::from(rig.path.packet_bytes);
    (rig.unsent_bytes, rig.in_flight_bytes) = (2 * bdp_bytes, bdp_bytes / 2);
    assert!(rig.reuses() < 3);
    rig.unsent_bytes -= 1;
    assert_eq!(rig.reuses(), 9, "less than two BDPs are left");
    (rig.unsent_bytes, rig.in_flight_bytes) = (2 * bdp_bytes, bdp_bytes / 2 - 1);
    assert_eq!(rig.reuses(), 9, "few packets are in flight");
}

//= docs/specs/reps-plus.md#RPP-20 many losses
#[test]
fn with_many_losses_it_reuses_the_buffer() {
    let mut rig = Rig::new(|_| ());
    rig.ack(0, &[1, 2, 3], false, 0);
    let lose = |rig: &mut Rig, count: u16| {
        for ev in 0..count {
            rig.lose(0, 100 + ev);
            rig.answer(0, 100 + ev);
        }
        rig.cached();
    };
    lose(&mut rig, 7);
    assert!(rig.plus.suspect().is_none() && rig.reuses() < 3, "seven losses of 16 packets each");
    lose(&mut rig, 1);
    assert_eq!(rig.reuses(), 9);
    let arrive = |rig: &mut Rig, packets: u16| {
        rig.plus.on_ack(rig.path.at_ps(0), &info(0, true, packets, packets), &mut rig.log);
    };
    arrive(&mut rig, 127);
    assert_eq!(rig.reuses(), 9);
    arrive(&mut rig, 1);
    assert!(rig.reuses() < 3, "128 packets have arrived since");
    lose(&mut rig, 8);
    assert_eq!(rig.reuses(), 9);
    rig.ack(0, &[1, 2, 3, 4], false, 0);
    rig.cached();
    rig.lose(0, 4);
    rig.answer(0, 4);
    assert!(rig.reuses() < 3, "the buffer loses as well");
}

//= docs/specs/reps-plus.md#RPP-13 thawing
#[test]
fn freezing_ends_with_an_answer() {
    let mut rig = Rig::new(|_| ());
    let frozen_ps = rig.freeze(0, 7);
    let probes = rig.probes(at(frozen_ps + 100 * RTT_PS));
    assert!(probes.iter().all(|(_, ev)| *ev == 7));
    let gaps: Vec<u64> = probes.windows(2).map(|pair| pair[1].0.since(pair[0].0)).collect();
    assert!(!gaps.is_empty() && gaps.iter().all(|gap_ps| *gap_ps == Time::ZERO.after(8 * WAIT_PS).ps()), "{gaps:?}");
    rig.ack(frozen_ps, &[4, 5], false, 0);
    rig.news(at(frozen_ps + 1_000_000 * RTT_PS), at(frozen_ps + 999_999 * RTT_PS));
    assert!(rig.plus.is_frozen(), "however long it takes");
    rig.answer(frozen_ps + RTT_PS, 7);
    assert_eq!(rig.log[1..], [(at(frozen_ps + RTT_PS), Event::FreezeExited)]);
    assert_eq!(rig.cached(), [4, 5]);
}

//= docs/specs/reps-plus.md#RPP-19 exploring by probes
#[test]
fn beside_a_suspect_probes_explore() {
    let mut rig = Rig::new(|_| ());
    rig.ack(0, &[1, 2], false, 0);
    rig.lose(0, 9);
    rig.send();
    assert_eq!(rig.probes(at(1)).len(), 1, "the suspect's goes first, and may be answered");
    let probe = |rig: &mut Rig| rig.plus.poll_probe(rig.path.at_ps(RTT_PS)).map(Ev::index);
    assert_eq!(probe(&mut rig), Some(9), "it was not");
    assert!(probe(&mut rig).is_some_and(|ev| ev != 9) && probe(&mut rig).is_none(), "one for the loss");
    rig.send();
    assert_eq!(probe(&mut rig), None, "what was valid went, and nothing went again");
    (0..3).for_each(|_| assert!([1, 2].contains(&rig.send())));
    let scout = probe(&mut rig).unwrap();
    assert!(![1, 2, 9].contains(&scout) && probe(&mut rig).is_none(), "one probe for all that went before it");
    for (marked, rtt_ps, cached) in [(true, RTT_PS, 0), (false, 4 * RTT_PS, 0), (false, 4 * RTT_PS - 1, 1)] {
        let answer = ProbeInfo { ev: Ev::new(scout), marked, rtt_ps };
        rig.plus.on_probe_ack(rig.path.at_ps(RTT_PS), &answer, &mut rig.log);
        assert_eq!(rig.plus.valid_evs(), cached, "{marked} {rtt_ps}");
    }
    assert_eq!((rig.send(), rig.plus.suspect()), (scout, Some(Ev::new(9))));
    rig.answer(2 * RTT_PS, 9);
    rig.send();
    assert_eq!(probe(&mut rig), None, "without a suspect packets explore");
}

//= docs/specs/reps-plus.md#RPP-19 exploring by probes
#[test]
fn after_a_timeout_four_probes_explore() {
    let mut rig = Rig::new(|_| ());
    rig.ack(0, &[1, 2, 3], false, 0);
    rig.plus.on_loss(rig.path.at_ps(0), &LossInfo { cause: LossCause::Timeout, ..lost(9) }, &mut rig.log);
    assert_eq!(rig.plus.valid_evs(), 3);
    let first: Vec<u16> = rig.probes(at(1)).iter().map(|(_, ev)| *ev).collect();
    assert_eq!(first, [9]);
    let probes: Vec<_> = core::iter::from_fn(|| rig.plus.poll_probe(rig.path.at_ps(RTT_PS)).map(Ev::index)).collect();
    assert!(probes.len() == 5 && probes[0] == 9 && !probes[1..].contains(&9), "{probes:?}");
}

//= docs/specs/reps-plus.md#RPP-14 lost values
#[test]
fn a_value_that_is_lost_is_forgotten() {
    let mut rig = Rig::new(|_| ());
    rig.ack(0, &[1, 2, 3, 2, 4], false, 0);
    rig.lose(0, 9);
    rig.lose(0, 2);
    assert_eq!(rig.cached(), [1, 3, 4]);
    let mut sent: Vec<u16> = (0..6).map(|_| rig.send()).collect();
    sent.sort_unstable();
    assert_eq!(sent, [1, 1, 3, 3, 4, 4]);
    rig.lose(21 * RTT_PS, 1);
    rig.lose(21 * RTT_PS, 3);
    rig.lose(21 * RTT_PS, 4);
    assert!((0..20).map(|_| rig.send()).any(|ev| ev > 4), "with nothing left it explores");
}
