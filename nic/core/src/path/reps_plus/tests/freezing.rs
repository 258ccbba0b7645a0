//! Suspects, probes, freezing and thawing.

use super::*;

//= docs/specs/reps-plus.md#RPP-10 a suspect
#[test]
fn an_unexplained_loss_makes_a_suspect() {
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
fn five_unanswered_probes_and_a_later_ack_freeze() {
    let mut rig = Rig::new(|_| ());
    rig.ack(0, &[1, 7, 3], false, 0);
    rig.lose(RTT_PS, 7);
    // Two at first. From the step at which the first counts as lost, one per step.
    let sent = [0, 1, 3, 4, 5, 6, 7].map(|step| (steps(at(RTT_PS), step), 7));
    let mut probes = rig.probes(at(20 * RTT_PS));
    probes.retain(|(_, ev)| *ev == 7);
    assert_eq!(probes, sent);
    assert_eq!(rig.plus.poll_timeout(&rig.path), None, "the next step waits for an ACK");
    let proven = steps(at(RTT_PS), 8);
    let later = proven.before(2 * STEP_PS);
    rig.marked_ack(proven.after(8 * WAIT_PS), later.before(Time::STEP_PS));
    assert!(!rig.plus.is_frozen(), "no later packet was acknowledged: all may be late");
    rig.marked_ack(proven, later);
    assert_eq!(rig.log, [(proven, Event::FreezeEntered { reason: FreezeReason::Probes })]);
    assert_eq!(rig.cached(), [1, 3], "the failed value was removed");
}

//= docs/specs/reps-plus.md#RPP-11 probes
#[test]
fn probes_wait_for_the_largest_recent_round_trip_time() {
    let mut rig = Rig::new(|_| ());
    rig.plus.on_loss(rig.path.at_ps(0), &LossInfo { max_rtt_ps: 16 * RTT_PS, ..lost(7) }, &mut rig.log);
    // Nine eighths of 128 us are 137 whole ticks, plus one.
    let second = Time::ZERO.after((138 << TICK_SHIFT) / 3);
    assert_eq!(rig.probes(second.after(RTT_PS)), [(Time::ZERO, 7), (second, 7)]);
}

//= docs/specs/reps-plus.md#RPP-11 probes
#[test]
fn answers_clear_the_suspect() {
    let mut rig = Rig::new(|_| ());
    rig.lose(0, 7);
    rig.probes(at(RTT_PS));
    (0..3).for_each(|_| rig.answer(RTT_PS, 8));
    assert!(rig.plus.suspect().is_some(), "an answer on another path");
    rig.answer(RTT_PS, 7);
    assert_eq!((rig.plus.suspect(), rig.plus.next_choice()), (Some(Ev::new(7)), Choice::Explored), "one answer");
    for step in 1..5 {
        assert_eq!(rig.plus.suspect(), Some(Ev::new(7)), "{step} answers");
        let now_ps = RTT_PS + step * STEP_PS;
        rig.probes(at(now_ps));
        rig.answer(now_ps, 7);
    }
    assert_eq!(rig.plus.suspect(), None);
    rig.marked_ack(at(90 * RTT_PS), at(80 * RTT_PS));
    assert!(!rig.plus.is_frozen() && rig.log.is_empty());
    assert_eq!(rig.probes(Time::NEVER.before(Time::STEP_PS)), []);
}

/// The host paused: the answers had arrived in time.
//= docs/specs/reps-plus.md#RPP-12 freezing
#[test]
fn late_answers_count() {
    let mut rig = Rig::new(|_| ());
    rig.lose(0, 7);
    rig.probes(at(20 * RTT_PS));
    // Five were lost, and two were in flight.
    (0..2).for_each(|_| rig.answer(20 * RTT_PS, 7));
    rig.marked_ack(at(20 * RTT_PS), at(19 * RTT_PS));
    assert!(!rig.plus.is_frozen(), "two of seven were answered");
    (0..5).for_each(|_| rig.answer(20 * RTT_PS, 7));
    assert_eq!(rig.plus.suspect(), None);
}

//= docs/specs/reps-plus.md#RPP-7 reuse with a suspect
#[test]
fn with_a_suspect_the_buffer_is_reused() {
    let mut rig = Rig::new(|_| ());
    rig.ack(0, &[1, 2, 3], false, 0);
    rig.lose(0, 9);
    let sent: Vec<u16> = (0..9).map(|_| rig.send()).collect();
    assert_eq!(sent, [1, 2, 3, 3, 2, 1, 3, 2, 1], "once all are used, the latest is reused first");
    rig.ack(0, &[7], false, 0);
    let sent: Vec<u16> = (0..4).map(|_| rig.send()).collect();
    assert_eq!(sent, [7, 7, 3, 2], "it replaces the value used last");
    rig.lose(0, 7);
    rig.ack(0, &[1, 2, 3], false, 0);
    rig.retransmit = true;
    assert_eq!([rig.send(), rig.send()], [3, 2], "retransmissions use the latest value");
    rig.retransmit = false;
    assert_eq!(rig.send(), 1);
    rig.ack(0, &[1, 2, 3], false, 0);
    rig.cached();
    rig.probes(at(9 * RTT_PS));
    rig.marked_ack(at(20 * RTT_PS), at(19 * RTT_PS));
    assert!(rig.plus.is_frozen());
    assert_eq!(rig.reuses(), 9, "the buffer avoids the path until it works again");
}

//= docs/specs/reps-plus.md#RPP-20 many losses
#[test]
fn with_many_losses_the_buffer_is_reused() {
    let mut rig = Rig::new(|_| ());
    rig.ack(0, &[1, 2, 3], false, 0);
    let lose = |rig: &mut Rig, count: u16| {
        for ev in 0..count {
            rig.lose(0, 100 + ev);
            (0..2).for_each(|_| rig.answer(0, 100 + ev));
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
    assert!(rig.reuses() < 3, "128 packets were acknowledged since");
    lose(&mut rig, 8);
    assert_eq!(rig.reuses(), 9);
    rig.ack(0, &[1, 2, 3, 4], false, 0);
    rig.cached();
    rig.lose(0, 4);
    (0..2).for_each(|_| rig.answer(0, 4));
    assert!(rig.reuses() < 3, "the buffer loses as well");
}

//= docs/specs/reps-plus.md#RPP-13 thawing
#[test]
fn freezing_ends_with_eight_answers_in_a_row() {
    let mut rig = Rig::new(|_| ());
    let frozen_ps = rig.freeze(0, 7);
    let first = at(frozen_ps).after(8 * WAIT_PS);
    // Two probes, and at the third step the first is lost.
    let second = steps(first, 3).after(8 * WAIT_PS);
    let sent = [first, steps(first, 1), second, steps(second, 1)].map(|at| (at, 7));
    assert_eq!(rig.probes(steps(second, 3)), sent);
    rig.ack(frozen_ps, &[4, 5], false, 0);
    rig.marked_ack(at(frozen_ps + 1_000_000 * RTT_PS), at(frozen_ps + 999_999 * RTT_PS));
    assert!(rig.plus.is_frozen(), "however long it takes");
    rig.answer(frozen_ps, 7);
    // The answer was late, and does not count.
    assert_eq!(rig.thaw(7), 8);
    assert_eq!(rig.log.last().unwrap().1, Event::FreezeExited);
    assert_eq!(rig.cached(), [4, 5]);
}

//= docs/specs/reps-plus.md#RPP-19 exploration by probes
#[test]
fn with_a_suspect_probes_explore() {
    let mut rig = Rig::new(|_| ());
    rig.ack(0, &[1, 2], false, 0);
    rig.lose(0, 9);
    rig.send();
    let late = steps(Time::ZERO, 1);
    assert_eq!(rig.probes(late.before(Time::STEP_PS)).len(), 1, "the suspect is probed first, and may answer");
    let probe = |rig: &mut Rig| rig.plus.poll_probe(rig.path.at(late)).map(Ev::index);
    assert_eq!(probe(&mut rig), Some(9), "it did not answer");
    assert!(probe(&mut rig).is_some_and(|ev| ev != 9) && probe(&mut rig).is_none(), "one for the loss");
    rig.send();
    assert_eq!(probe(&mut rig), None, "the cached values were used, and nothing was retransmitted");
    (0..3).for_each(|_| assert!([1, 2].contains(&rig.send())));
    let scouts: Vec<u16> = core::iter::from_fn(|| probe(&mut rig)).collect();
    assert!(scouts.len() == 3 && scouts.iter().all(|ev| ![1, 2, 9].contains(ev)), "one for each packet");
    let scout = scouts[0];
    for (marked, rtt_ps, cached) in [(true, RTT_PS, 0), (false, 4 * RTT_PS, 0), (false, 4 * RTT_PS - 1, 1)] {
        let answer = ProbeInfo { ev: Ev::new(scout), marked, rtt_ps };
        rig.plus.on_probe_ack(rig.path.at(late), &answer, &mut rig.log);
        assert_eq!(rig.plus.valid_evs(), cached, "{marked} {rtt_ps}");
    }
    assert_eq!((rig.send(), rig.plus.suspect()), (scout, Some(Ev::new(9))));
    while rig.plus.suspect().is_some() {
        rig.answer(late.ps(), 9);
    }
    rig.send();
    assert_eq!(probe(&mut rig), None, "without a suspect packets explore");
}

//= docs/specs/reps-plus.md#RPP-19 exploration by probes
#[test]
fn after_a_timeout_four_probes_explore() {
    let mut rig = Rig::new(|_| ());
    rig.ack(0, &[1, 2, 3], false, 0);
    rig.plus.on_loss(rig.path.at_ps(0), &LossInfo { cause: LossCause::Timeout, ..lost(9) }, &mut rig.log);
    assert_eq!(rig.plus.valid_evs(), 3);
    let late = steps(Time::ZERO, 1);
    assert!(rig.probes(late.before(Time::STEP_PS)).iter().all(|(_, ev)| *ev == 9));
    let late = rig.path.at(late);
    let probes: Vec<_> = core::iter::from_fn(|| rig.plus.poll_probe(late).map(Ev::index)).collect();
    assert!(probes.len() == 5 && probes[0] == 9 && !probes[1..].contains(&9), "{probes:?}");
}

//= docs/specs/reps-plus.md#RPP-14 lost values
#[test]
fn a_lost_value_is_removed() {
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
