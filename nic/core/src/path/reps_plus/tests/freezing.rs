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
        rig.plus.on_loss(rig.path.at(5), &LossInfo { cause, ..lost(7) }, &mut rig.log);
        assert_eq!(rig.plus.suspect(), suspect, "{cause:?}");
        rig.lose(6, 8);
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
    // Five quarters of 8 ticks are 10, and one more.
    let wait_ps = 11 << TICK_SHIFT;
    let third_ps = RTT_PS + wait_ps;
    assert_eq!(rig.probes(20 * RTT_PS), [(RTT_PS, 7), (RTT_PS + wait_ps / 2, 7), (third_ps, 7)]);
    assert_eq!(rig.plus.poll_timeout(&rig.path), None, "what follows waits for an ACK");
    rig.news(third_ps + wait_ps - 1, third_ps + wait_ps / 2);
    assert!(!rig.plus.is_frozen(), "the answer may be on its way");
    rig.news(third_ps + 9 * wait_ps, third_ps + wait_ps / 2 - 1);
    assert!(!rig.plus.is_frozen(), "no later packet has come back: all may be late");
    rig.news(third_ps + wait_ps, third_ps + wait_ps / 2);
    assert_eq!(rig.log, [(third_ps + wait_ps, Event::FreezeEntered { reason: FreezeReason::Probes })]);
    assert_eq!(rig.cached(), [1, 3], "the failed value is gone");
}

//= docs/specs/reps-plus.md#RPP-11 probes
#[test]
fn probes_wait_for_the_largest_round_trip_time_seen_lately() {
    let mut rig = Rig::new(|_| ());
    rig.plus.on_loss(rig.path.at(0), &LossInfo { max_rtt_ps: 16 * RTT_PS, ..lost(7) }, &mut rig.log);
    let half_ps = (16 * 9 + 1) << (TICK_SHIFT - 1);
    assert_eq!(rig.probes(1 << 40), [(0, 7), (half_ps, 7), (2 * half_ps, 7)]);
}

//= docs/specs/reps-plus.md#RPP-11 probes
#[test]
fn an_answer_clears_the_suspect() {
    for answered in 1..=3 {
        let mut rig = Rig::new(|_| ());
        rig.lose(0, 7);
        (0..answered).for_each(|_| {
            let at_ps = rig.plus.poll_timeout(&rig.path).unwrap();
            assert!(rig.plus.poll_probe(rig.path.at(at_ps)).is_some());
        });
        rig.answer(RTT_PS, 8);
        assert!(rig.plus.suspect().is_some(), "another's");
        rig.answer(RTT_PS, 7);
        assert_eq!(rig.plus.suspect(), None);
        rig.news(90 * RTT_PS, 80 * RTT_PS);
        assert!(!rig.plus.is_frozen() && rig.log.is_empty());
        assert_eq!(rig.probes(u64::MAX - 1), []);
    }
}

//= docs/specs/reps-plus.md#RPP-7 reuse beside a suspect
#[test]
fn beside_a_suspect_and_while_frozen_it_reuses_the_buffer() {
    let mut rig = Rig::new(|_| ());
    rig.ack(0, &[1, 2, 3], false, 0);
    rig.lose(0, 9);
    for _ in 0..2 {
        let mut sent: Vec<u16> = (0..9).map(|_| rig.send()).collect();
        sent.sort_unstable();
        assert_eq!(sent, [1, 1, 1, 2, 2, 2, 3, 3, 3]);
        rig.ack(0, &[1, 2, 3], false, 0);
        assert_eq!(rig.cached(), [1, 2, 3], "what is valid first");
        if !rig.plus.is_frozen() {
            rig.probes(9 * RTT_PS);
            rig.news(20 * RTT_PS, 19 * RTT_PS);
            assert!(rig.plus.is_frozen());
        }
    }
    rig.answer(21 * RTT_PS, 9);
    let mut sent: Vec<u16> = (0..9).map(|_| rig.send()).collect();
    sent.retain(|ev| (1..=3).contains(ev));
    assert!(sent.len() < 3, "it explores again");
}

//= docs/specs/reps-plus.md#RPP-13 thawing
#[test]
fn freezing_ends_with_an_answer_or_its_time() {
    let tick_ps = 1 << TICK_SHIFT;
    let mut rig = Rig::new(|_| ());
    let frozen_ps = rig.freeze(0, 7);
    let probes = rig.probes(frozen_ps + 100 * RTT_PS);
    assert!(probes.iter().all(|(_, ev)| *ev == 7));
    let gaps: Vec<u64> = probes.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(!gaps.is_empty() && gaps.iter().all(|gap_ps| *gap_ps == 8 * (11 << TICK_SHIFT)), "{gaps:?}");
    rig.ack(frozen_ps, &[4, 5], false, 0);
    rig.answer(frozen_ps + RTT_PS, 7);
    assert_eq!(rig.log[1..], [(frozen_ps + RTT_PS, Event::FreezeExited)]);
    (0..BDP).for_each(|_| assert!(![4, 5].contains(&rig.send()), "the path is back: it explores first"));
    assert_eq!(rig.cached(), [4, 5]);

    let mut rig = Rig::new(|_| ());
    let end_ps = rig.freeze(0, 7) + TIMEOUT_PS;
    rig.ack(end_ps, &[4], false, 0);
    assert!(rig.plus.is_frozen(), "not yet over");
    rig.ack(end_ps + tick_ps, &[5], false, 0);
    assert_eq!(rig.log[1..], [(end_ps + tick_ps, Event::FreezeExited)]);
    assert_eq!(rig.cached(), [4, 5], "nothing says that the path is back: no exploring first");
}

//= docs/specs/reps-plus.md#RPP-14 losses while frozen
#[test]
fn a_value_lost_while_frozen_is_forgotten() {
    let mut rig = Rig::new(|_| ());
    rig.ack(0, &[1, 2, 3, 2, 4], false, 0);
    rig.lose(0, 9);
    rig.lose(0, 2);
    assert_eq!(rig.plus.valid_evs(), 5, "not before");
    rig.freeze(0, 9);
    rig.lose(20 * RTT_PS, 2);
    assert_eq!(rig.cached(), [1, 3, 4]);
    let mut sent: Vec<u16> = (0..6).map(|_| rig.send()).collect();
    sent.sort_unstable();
    assert_eq!(sent, [1, 1, 3, 3, 4, 4]);
    rig.lose(21 * RTT_PS, 1);
    rig.lose(21 * RTT_PS, 3);
    rig.lose(21 * RTT_PS, 4);
    assert!((0..20).map(|_| rig.send()).any(|ev| ev > 4), "with nothing left it explores");
}
