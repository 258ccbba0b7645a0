//! REPS with settings other than the paper's.

use super::*;

#[test]
fn probes_of_the_lost_ev_end_freezing_instead_of_time() {
    //= docs/specs/reps.md#REPS-17 probing the lost EV
    //= docs/specs/reps.md#REPS-18 answers to probes
    let mut rig =
        Rig::new(&reps_config(|reps| (reps.probing, reps.probe_us) = (true, Some(Micros::from_ps(1000))))).acks(&[1]);
    assert_eq!(rig.reps.poll_timeout(&rig.path), None);
    rig.timeout(500);
    assert_eq!(rig.reps.poll_timeout(&rig.path), Some(at(1500)));
    assert_eq!(rig.reps.poll_probe(rig.path.at_ps(1499)), None);
    assert_eq!(rig.reps.poll_probe(rig.path.at_ps(1500)), Some(Ev::new(99)));
    assert_eq!(rig.reps.poll_probe(rig.path.at_ps(1500)), None);
    assert_eq!(rig.reps.poll_timeout(&rig.path), Some(at(2500)));
    rig.ack(1000 * TICK_PS, 1, false);
    rig.reps.on_probe_ack(rig.path.at_ps(1600), &answer(98, false), &mut rig.log);
    rig.reps.on_probe_ack(rig.path.at_ps(1600), &answer(99, true), &mut rig.log);
    assert!(rig.reps.is_frozen());
    rig.reps.on_probe_ack(rig.path.at_ps(1700), &answer(99, false), &mut rig.log);
    assert!(!rig.reps.is_frozen());
    assert_eq!(rig.reps.exploring(), 100);
    assert_eq!(rig.reps.poll_timeout(&rig.path), None);
    rig.reps.on_probe_ack(rig.path.at_ps(1800), &answer(99, false), &mut rig.log);
    assert_eq!(rig.log, [(at(500), FROZEN_BY_TIMEOUT), (at(1700), Event::FreezeExited)]);
}

#[test]
fn with_timed_exit_the_timeout_ends_freezing_too() {
    //= docs/specs/reps.md#REPS-18 answers to probes
    let change = |reps: &mut RepsConfig| {
        (reps.probing, reps.probe_us, reps.timed_exit) = (true, Some(Micros::from_ps(1000)), true);
    };
    let mut rig = Rig::new(&reps_config(change)).acks(&[1]);
    rig.timeout(0);
    rig.ack(11 * TICK_PS, 1, false);
    assert!(!rig.reps.is_frozen());
}

#[test]
fn without_freezing_only_the_core_logic_remains() {
    //= docs/specs/reps.md#REPS-24 without freezing
    for config in [reps_named(BalancerKind::RepsNoFreezing, |_| ()), reps_config(|reps| reps.freezing = false)] {
        let mut rig = Rig::new(&config).acks(&[1, 2]);
        rig.timeout(0);
        assert!(!rig.reps.is_frozen() && rig.log.is_empty());
        assert_eq!(rig.sends(3), [Some(1), Some(2), None]);
    }
}

#[test]
fn forced_freezing_begins_at_its_time_and_never_ends() {
    //= docs/specs/reps.md#REPS-25 forced freezing
    let mut rig = Rig::new(&reps_config(|reps| reps.force_freezing_us = Some(Micros::from_ps(5 * TICK_PS))));
    rig.ack(TICK_PS, 1, false);
    rig.ack(6 * TICK_PS - 1, 2, false);
    assert!(!rig.reps.is_frozen());
    rig.ack(6 * TICK_PS, 3, true);
    assert!(rig.reps.is_frozen());
    rig.timeout(7 * TICK_PS);
    rig.ack(1000 * TICK_PS, 3, false);
    assert_eq!(rig.sends(7), [1, 2, 3, 1, 2, 3, 1].map(Some));
    assert_eq!(rig.log, [(at(6 * TICK_PS), Event::FreezeEntered { reason: FreezeReason::Setting })]);
    let mut rig = Rig::new(&reps_config(|reps| reps.force_freezing_us = Some(Micros::default())));
    rig.ack(7_000, 1, true);
    assert!(rig.reps.is_frozen(), "from the first feedback on");
    assert_eq!(rig.send(), None, "without cached values it explores");
}

#[test]
fn reps_probing_probes_by_itself() {
    //= docs/specs/reps.md#REPS-26 with probing
    let mut rig = Rig::new(&reps_named(BalancerKind::RepsProbing, |_| ())).acks(&[1]);
    rig.timeout(0);
    assert_eq!(rig.reps.poll_timeout(&rig.path), Some(at(PROBE_RTTS * BASE_RTT_PS)));
    rig.ack(1000 * TICK_PS, 1, false);
    assert!(rig.reps.is_frozen(), "time does not end it");
    let mut rig = Rig::new(&reps_named(BalancerKind::RepsProbing, |reps| reps.probe_us = Some(Micros::from_ps(750))));
    rig.timeout(0);
    assert_eq!(rig.reps.poll_timeout(&rig.path), Some(at(750)));
}

#[test]
fn every_setting_of_reps_has_a_name() {
    let text = "
        rule = 'ultra-ethernet'
        buffer = 3
        freezing = false
        freezing_timeout_us = 2.5
        force_freezing_us = 0
        congestion_rtt = 2
        failure_signal = 'any-loss'
        probing = true
        probe_us = 4
        timed_exit = true
        explore_packets = 17
        empty_on_thaw = false
        thaw_check = 'unmarked-ack'
        frozen_walk = 'valid-first'
    ";
    let expected = RepsConfig {
        rule: RepsRule::UltraEthernet,
        buffer: 3,
        freezing: false,
        freezing_timeout_us: Some(Micros::from_ps(2_500_000)),
        force_freezing_us: Some(Micros::default()),
        congestion_rtt: Ratio::permille(2_000),
        failure_signal: Some(FailureSignal::AnyLoss),
        probing: true,
        probe_us: Some(Micros::new(4)),
        timed_exit: true,
        explore_packets: Some(17),
        empty_on_thaw: Some(false),
        thaw_check: Some(ThawCheck::UnmarkedAck),
        frozen_walk: Some(FrozenWalk::ValidFirst),
    };
    assert_eq!(toml::from_str::<RepsConfig>(text).unwrap(), expected);
    assert_eq!(toml::from_str::<RepsConfig>(&toml::to_string(&expected).unwrap()).unwrap(), expected);
}

#[test]
fn the_artifact_freezes_on_timeouts_only() {
    // The table of departures
    //= docs/specs/reps.md#REPS-8 reuse while frozen
    //= docs/specs/reps.md#REPS-12 thawing
    //= docs/specs/reps.md#REPS-16 declared losses
    //= docs/specs/reps.md#REPS-19 the walk over all slots
    let mut rig = Rig::new(&reps_config(|reps| reps.rule = RepsRule::Artifact));
    (1..=5).for_each(|ev| rig.ack(0, ev, false));
    rig.loss(0, loss(1, LossCause::SackGap));
    assert!(!rig.reps.is_frozen());
    assert_eq!(rig.sends(2), [Some(1), Some(2)]);
    rig.timeout(0);
    assert_eq!(rig.sends(6), [1, 2, 3, 4, 5, 1].map(Some));
    assert_eq!(rig.reps.valid_evs(), 3);
    rig.ack(11 * TICK_PS, 7, true);
    assert!(!rig.reps.is_frozen());
    assert!(rig.reps.cached_evs().is_empty());
    assert_eq!(rig.reps.exploring(), 100);
}

#[test]
fn the_artifacts_cycle_restarts_with_every_freeze() {
    //= docs/specs/reps.md#REPS-8 reuse while frozen
    let mut config = reps_config(|reps| reps.frozen_walk = Some(FrozenWalk::AllSlots));
    config.bdp_packets = 0;
    let mut rig = Rig::new(&config).acks(&[1, 2, 3]);
    rig.timeout(0);
    assert_eq!(rig.sends(2), [Some(1), Some(2)]);
    rig.ack(11 * TICK_PS, 4, false);
    rig.timeout(11 * TICK_PS);
    assert_eq!(rig.sends(5), [1, 2, 3, 4, 1].map(Some));
}

#[test]
fn emptying_on_thaw_keeps_the_ev_that_thaws() {
    let mut rig = Rig::new(&reps_config(|reps| reps.empty_on_thaw = Some(true))).acks(&[1, 2]);
    rig.timeout(0);
    rig.ack(11 * TICK_PS, 3, false);
    assert_eq!(rig.reps.cached_evs(), [3].map(Ev::new));
}

#[test]
fn a_nack_thaws_if_configured_and_caches_nothing() {
    // The table of departures
    //= docs/specs/reps.md#REPS-3 caching an EV
    //= docs/specs/reps.md#REPS-12 thawing
    let mut rig = Rig::new(&reps_config(|reps| reps.rule = RepsRule::UltraEthernet));
    rig.timeout(0);
    rig.loss(11 * TICK_PS, loss(4, LossCause::Trimmed));
    assert_eq!((rig.reps.is_frozen(), rig.reps.exploring()), (false, 16));
    assert_eq!(rig.sends(17), [None; 17]);
    assert!(rig.reps.cached_evs().is_empty());
    let mut paper = Rig::paper();
    paper.loss(0, loss(4, LossCause::Trimmed));
    assert!(paper.reps.cached_evs().is_empty());
}
