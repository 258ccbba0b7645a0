//! REPS: when it freezes, what it sends while frozen, and how it thaws.

use super::*;

#[test]
fn a_frozen_connection_cycles_through_its_buffer() {
    //= docs/specs/reps.md#REPS-7 reusing the oldest valid EV
    //= docs/specs/reps.md#REPS-8 reuse while frozen
    let mut rig = Rig::paper().acks(&[1, 2, 3, 4, 5, 6, 7, 8]);
    rig.sends(6);
    rig.timeout(0);
    assert_eq!(rig.sends(10), [7, 8, 1, 2, 3, 4, 5, 6, 7, 8].map(Some));
    assert_eq!(rig.log, [(at(0), FROZEN_BY_TIMEOUT)]);
}

#[test]
fn an_ack_in_freezing_mode_replaces_the_next_value() {
    //= docs/specs/reps.md#REPS-8 reuse while frozen
    let mut rig = Rig::paper().acks(&[1, 2, 3, 4, 5, 6, 7, 8]);
    rig.sends(8);
    rig.timeout(0);
    assert_eq!(rig.sends(2), [Some(1), Some(2)]);
    rig.ack(0, 9, false);
    assert_eq!(rig.sends(9), [9, 4, 5, 6, 7, 8, 1, 2, 9].map(Some));
}

#[test]
fn the_frozen_walk_skips_slots_never_written() {
    //= docs/specs/reps.md#REPS-9 slots never written
    let mut rig = Rig::paper().acks(&[1, 2, 3]);
    rig.timeout(0);
    assert_eq!(rig.sends(7), [1, 2, 3, 1, 2, 3, 1].map(Some));
    rig.sends(2);
    rig.ack(0, 4, false);
    assert_eq!(rig.reps.cached_evs(), [1, 2, 3, 4].map(Ev::new));
    assert_eq!(rig.sends(5), [4, 1, 2, 3, 4].map(Some));
}

#[test]
fn freezing_with_nothing_cached_explores() {
    //= docs/specs/reps.md#REPS-5 exploration
    let mut rig = Rig::paper();
    rig.timeout(0);
    assert!(rig.reps.is_frozen());
    assert_eq!(rig.send(), None);
}

#[test]
fn thawing_needs_an_unmarked_ack_after_the_timeout_and_keeps_the_buffer() {
    //= docs/specs/reps.md#REPS-6 the explore counter
    //= docs/specs/reps.md#REPS-11 ignored failures
    //= docs/specs/reps.md#REPS-12 thawing
    let mut rig = Rig::paper().acks(&[1, 2]);
    rig.timeout(0);
    rig.timeout(5 * TICK_PS);
    rig.ack(10 * TICK_PS, 3, false);
    rig.ack(11 * TICK_PS, 4, true);
    assert!(rig.reps.is_frozen());
    rig.ack(11 * TICK_PS, 4, false);
    assert!(!rig.reps.is_frozen());
    assert_eq!(rig.reps.exploring(), 100);
    rig.timeout(12 * TICK_PS);
    assert!(!rig.reps.is_frozen(), "no freezing while exploring");
    assert_eq!(rig.sends(100), [None; 100]);
    assert_eq!(rig.sends(5), [Some(1), Some(2), Some(3), Some(4), None]);
    rig.timeout(12 * TICK_PS);
    let events = [(0, FROZEN_BY_TIMEOUT), (11 * TICK_PS, Event::FreezeExited), (12 * TICK_PS, FROZEN_BY_TIMEOUT)];
    assert_eq!(rig.log, events.map(|(ps, event)| (at(ps), event)));
}

/// Regardless of when it froze and of how long it has been idle.
#[test]
fn the_exit_time_is_exact_and_does_not_wrap() {
    //= docs/specs/reps.md#REPS-12 thawing
    const HOUR_PS: u64 = 3_600 * 1_000_000 * TICK_PS;
    let timeout_ps = 10 * TICK_PS + 750;
    let idle = |hours| core::iter::repeat_n(HOUR_PS, hours);
    for start in [Time::ZERO, at((1 << 52) - 3 * TICK_PS), at(u64::MAX / 2), at_step(1 << 62), at_step(1 << 63)] {
        let frozen = || {
            let config = reps_config(|reps| reps.freezing_timeout_us = Some(Micros::from_ps(timeout_ps)));
            let mut rig = Rig::new(&config).acks(&[1]);
            rig.reps.on_loss(rig.path.at(start), &loss(99, LossCause::Timeout), &mut rig.log);
            assert!(rig.reps.is_frozen());
            rig
        };
        let exit = start.after(timeout_ps);
        let thaws = |rig: &mut Rig, now: Time| {
            rig.reps.on_ack(rig.path.at(now), &ack(1, false), &mut rig.log);
            !rig.reps.is_frozen()
        };
        let mut rig = frozen();
        assert!(!thaws(&mut rig, exit) && thaws(&mut rig, exit.next()));
        for hours in [1, 2, 3, 24, 365 * 24, 30 * 365 * 24] {
            let late = idle(hours).fold(exit, Time::after);
            assert!(thaws(&mut frozen(), late), "{hours} hours after {start:?}");
        }
    }
}

#[test]
fn a_trimmed_packet_is_congestion_with_trimming_and_without() {
    //= docs/specs/reps.md#REPS-14 networks that trim
    for trimming in [true, false] {
        let mut rig = Rig::new(&Setup { trimming, ..reps_config(|_| ()) });
        rig.loss(0, loss(1, LossCause::Trimmed));
        assert!(!rig.reps.is_frozen());
    }
}

#[test]
fn with_trimming_any_other_loss_is_a_failure() {
    //= docs/specs/reps.md#REPS-14 networks that trim
    //= docs/specs/reps.md#REPS-16 declared losses
    for cause in [LossCause::Timeout, LossCause::SackGap] {
        let mut rig = Rig::paper();
        rig.loss(0, LossInfo { max_before_timeout_ps: 10 * BASE_RTT_PS, ..loss(1, cause) });
        assert!(rig.reps.is_frozen());
    }
}

#[test]
fn without_trimming_a_high_rtt_before_the_loss_is_congestion() {
    //= docs/specs/reps.md#REPS-15 networks that do not trim
    let threshold_ps = BASE_RTT_PS * 1650 / 1000;
    for (max_before_timeout_ps, frozen) in [(0, true), (threshold_ps - 1, true), (threshold_ps, false)] {
        let mut rig = Rig::new(&Setup { trimming: false, ..reps_config(|_| ()) });
        rig.loss(0, LossInfo { max_before_timeout_ps, ..loss(1, LossCause::Timeout) });
        assert_eq!(rig.reps.is_frozen(), frozen);
    }
    let config = reps_config(|reps| reps.congestion_rtt = Ratio::default());
    let mut rig = Rig::new(&Setup { trimming: false, ..config });
    rig.loss(0, LossInfo { max_before_timeout_ps: 10 * BASE_RTT_PS, ..loss(1, LossCause::Timeout) });
    assert!(rig.reps.is_frozen());
}

/// A balancer without trimming, where recovery detects losses before their timeouts.
struct Untrimmed {
    rig: Rig,
    wait_ps: u64,
}

impl Untrimmed {
    const EXPIRES_PS: u64 = 8 * BASE_RTT_PS;

    /// Creates one in which a packet with EV 99 is declared lost at 0.
    fn after_loss(cause: LossCause, change: impl FnOnce(&mut RepsConfig)) -> Self {
        let mut rig = Rig::new(&Setup { trimming: false, ..reps_config(change) }).acks(&[1, 2, 3]);
        rig.loss(0, LossInfo { is_early: true, expires_at: at(Self::EXPIRES_PS), ..loss(99, cause) });
        assert!(!rig.reps.is_frozen(), "the cause of a loss is not known yet");
        let wait_ps = (((BASE_RTT_PS * 5 / 4) >> TICK_SHIFT) + 1) << TICK_SHIFT;
        Self { rig, wait_ps }
    }

    /// Performs all steps up to `until_ps`. Of every ten probes, `answered` are answered at once.
    /// Returns the number of probes.
    fn probe(&mut self, until_ps: u64, answered: u32) -> u32 {
        let mut sent = 0;
        while let Some(now) = self.rig.reps.poll_timeout(&self.rig.path).filter(|now| *now <= at(until_ps)) {
            let Some(ev) = self.rig.reps.poll_probe(self.rig.path.at(now)) else { continue };
            assert_eq!(ev, Ev::new(99));
            if sent % 10 < answered {
                self.rig.reps.on_probe_ack(self.rig.path.at(now), &answer(99, true), &mut self.rig.log);
            }
            sent += 1;
        }
        sent
    }
}

#[test]
fn unanswered_probes_make_a_loss_a_failure_after_its_timeout() {
    //= docs/specs/reps.md#REPS-27 evidence by EV
    for cause in [LossCause::SackGap, LossCause::Timeout] {
        let mut case = Untrimmed::after_loss(cause, |_| ());
        let proven_ps = 3 * case.wait_ps;
        assert_eq!(case.probe(proven_ps, 0), 7);
        let ack = |case: &mut Untrimmed, now_ps, rtt_ps| {
            let marked_ack = AckInfo { rtt_ps, ..ack(5, true) };
            case.rig.reps.on_ack(case.rig.path.at_ps(now_ps), &marked_ack, &mut case.rig.log);
            case.rig.reps.is_frozen()
        };
        assert!(!ack(&mut case, Untrimmed::EXPIRES_PS - 1_000, BASE_RTT_PS), "its timeout has not passed");
        assert!(!ack(&mut case, Untrimmed::EXPIRES_PS, Untrimmed::EXPIRES_PS), "an ACK of an earlier packet");
        assert!(ack(&mut case, Untrimmed::EXPIRES_PS, BASE_RTT_PS));
        let frozen = Event::FreezeEntered { reason: FreezeReason::Probes };
        assert_eq!(case.rig.log, [(at(Untrimmed::EXPIRES_PS), frozen)]);
        assert_eq!(case.rig.reps.poll_timeout(&case.rig.path), None, "the timeout ends it, not probes");
    }
}

#[test]
fn an_answered_probe_shows_that_a_loss_is_not_a_failure() {
    //= docs/specs/reps.md#REPS-27 evidence by EV
    let mut case = Untrimmed::after_loss(LossCause::SackGap, |_| ());
    assert_eq!(case.probe(100 * BASE_RTT_PS, 10), 5);
    case.rig.ack(100 * BASE_RTT_PS, 5, false);
    assert!(!case.rig.reps.is_frozen());
    // The next loss is probed again, and packets explore meanwhile.
    case.rig.loss(0, LossInfo { is_early: true, ..loss(99, LossCause::SackGap) });
    assert!(case.rig.reps.poll_timeout(&case.rig.path).is_some());
    case.rig.sends(4);
    assert_eq!(case.rig.send(), None);
}

#[test]
fn without_trimming_probes_end_freezing_if_configured() {
    //= docs/specs/reps.md#REPS-18 answers to probes
    let mut case = Untrimmed::after_loss(LossCause::SackGap, |reps| reps.probing = true);
    case.probe(4 * case.wait_ps, 0);
    case.rig.ack(20 * BASE_RTT_PS, 5, true);
    assert!(case.rig.reps.is_frozen());
    let next = at(20 * BASE_RTT_PS).after(PROBE_RTTS * BASE_RTT_PS);
    assert_eq!(case.rig.reps.poll_timeout(&case.rig.path), Some(next));
    assert_eq!(case.probe(next.ps(), 0), 1);
    case.rig.reps.on_probe_ack(case.rig.path.at(next), &answer(99, true), &mut case.rig.log);
    assert!(case.rig.reps.is_frozen(), "marked");
    case.rig.reps.on_probe_ack(case.rig.path.at(next), &answer(99, false), &mut case.rig.log);
    assert!(!case.rig.reps.is_frozen());
}

#[test]
fn without_trimming_and_early_losses_timeouts_alone_are_failures() {
    //= docs/specs/reps.md#REPS-16 declared losses
    for (cause, frozen) in [(LossCause::SackGap, false), (LossCause::Timeout, true)] {
        let mut rig = Rig::new(&Setup { trimming: false, ..reps_config(|_| ()) });
        rig.loss(0, loss(1, cause));
        assert_eq!((rig.reps.is_frozen(), rig.reps.poll_timeout(&rig.path)), (frozen, None));
    }
}

#[test]
fn a_freeze_lasts_at_least_128_round_trips_and_32_detections() {
    //= docs/specs/reps.md#REPS-10 freezing on a failure
    let late_ps = 1_000 * TICK_PS;
    for (base_rtt_ps, detected_ps, least_ps) in [
        (BASE_RTT_PS, 0, 10_000 * TICK_PS),
        (1_000 * TICK_PS, 0, 128_000 * TICK_PS),
        (BASE_RTT_PS, late_ps, 32 * late_ps),
        (BASE_RTT_PS, late_ps / 4, 10_000 * TICK_PS),
    ] {
        let config = reps_config(|reps| reps.freezing_timeout_us = None);
        let mut rig = Rig::new(&Setup { base_rtt_ps, ..config });
        rig.loss(late_ps, LossInfo { sent_at: at(late_ps - detected_ps), ..loss(99, LossCause::Timeout) });
        rig.ack(late_ps + least_ps, 1, false);
        assert!(rig.reps.is_frozen(), "{detected_ps}");
        rig.ack(late_ps + least_ps + TICK_PS, 1, false);
        assert!(!rig.reps.is_frozen(), "{detected_ps}");
    }
}

/// A packet was lost at 0, and probes show much later that its path has failed.
#[test]
fn the_time_of_probes_counts_for_the_length_of_a_freeze() {
    //= docs/specs/reps.md#REPS-10 freezing on a failure
    let mut case = Untrimmed::after_loss(LossCause::SackGap, |reps| reps.freezing_timeout_us = None);
    let late_ps = 1_000 * TICK_PS;
    assert_eq!(case.probe(late_ps, 0), 7);
    for (now_ps, is_frozen) in [(late_ps, true), (33 * late_ps, true), (33 * late_ps + TICK_PS, false)] {
        case.rig.ack(now_ps, 1, false);
        assert_eq!(case.rig.reps.is_frozen(), is_frozen, "{now_ps}");
    }
}

#[test]
fn a_bdp_beyond_the_counter_saturates() {
    let mut rig = Rig::new(&Setup { bdp_packets: 1 << 20, ..reps_config(|_| ()) });
    rig.timeout(0);
    rig.ack(11 * TICK_PS, 1, false);
    assert_eq!(rig.reps.exploring(), 65_535);
}
