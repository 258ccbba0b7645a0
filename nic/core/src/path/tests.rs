//! Tests of path choice; clauses are those of `docs/specs/reps.md`.

mod closed_loop;
mod twin;

use std::string::ToString;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::event::{Event, FreezeReason};
use crate::rng::{self, Rng};
use crate::units::{Micros, Ratio};
use twin::PaperReps;

/// The unit of the exit time: histories in whole units see no rounding.
const TICK_PS: u64 = 1 << 20;
const BASE_RTT_PS: u64 = 8_337_000;
const FREEZING_TIMEOUT: Micros = Micros::from_ps(10 * TICK_PS);
const FROZEN_BY_TIMEOUT: Event = Event::FreezeEntered { reason: FreezeReason::Loss(LossCause::Timeout) };

fn config(balancer: BalancerKind) -> PathConfig {
    PathConfig { trimming: true, ..PathConfig::new(balancer, BASE_RTT_PS, 100) }
}

fn reps_config(change: impl FnOnce(&mut RepsConfig)) -> PathConfig {
    let mut reps = RepsConfig { freezing_timeout_us: FREEZING_TIMEOUT, ..RepsConfig::default() };
    change(&mut reps);
    PathConfig { balancer: BalancerConfig::Reps(reps), ..config(BalancerKind::Reps) }
}

/// The settings of REPS under another of its names.
fn reps_named(kind: BalancerKind, change: impl FnOnce(&mut RepsConfig)) -> PathConfig {
    let config = reps_config(change);
    let schemes = Schemes { reps: *own(&config), ..Schemes::default() };
    PathConfig { balancer: kind.config(&schemes), ..config }
}

fn own(config: &PathConfig) -> &RepsConfig {
    let BalancerConfig::Reps(reps) = &config.balancer else { panic!("{:?} is not REPS", config.balancer) };
    reps
}

fn ack(ev: u16, marked: bool) -> AckInfo {
    let marked_packets = u16::from(marked);
    AckInfo {
        ev: Ev::new(ev),
        marked,
        packets: 1,
        marked_packets,
        bytes: 4150,
        rtt_ps: BASE_RTT_PS,
        hops: 3,
        ..AckInfo::default()
    }
}

fn loss(ev: u16, cause: LossCause) -> LossInfo {
    LossInfo { ev: Ev::new(ev), bytes: 4150, cause, max_rtt_ps: BASE_RTT_PS, ..LossInfo::default() }
}

const PACKET: SendInfo =
    SendInfo { psn: 0, bytes: 4150, retransmit: false, in_flight_bytes: 0, open_packets: 0, unsent_bytes: 1 << 20 };

/// A balancer with a generator and a log, driven by short calls.
struct Rig {
    reps: Reps,
    rng: Rng,
    log: Vec<(u64, Event)>,
}

impl Rig {
    fn new(config: &PathConfig) -> Self {
        let mut rng = rng::stream(1, 2);
        Self { reps: Reps::make(own(config), config, &mut rng), rng, log: Vec::new() }
    }

    fn paper() -> Self {
        Self::new(&reps_config(|_| ()))
    }

    fn acks(mut self, evs: &[u16]) -> Self {
        evs.iter().for_each(|&ev| self.ack(0, ev, false));
        self
    }

    fn ack(&mut self, now_ps: u64, ev: u16, marked: bool) {
        self.reps.on_ack(now_ps, &ack(ev, marked), &mut self.log);
    }

    fn loss(&mut self, now_ps: u64, loss: LossInfo) {
        self.reps.on_loss(now_ps, &loss, &mut self.log);
    }

    fn timeout(&mut self, now_ps: u64) {
        self.loss(now_ps, loss(99, LossCause::Timeout));
    }

    /// The next EVs, and whether each was drawn at random.
    fn sends(&mut self, count: usize) -> Vec<Option<u16>> {
        (0..count).map(|_| self.send()).collect()
    }

    fn send(&mut self) -> Option<u16> {
        let before = self.rng.clone();
        let ev = self.reps.next_ev(0, &PACKET, &mut self.rng);
        (before == self.rng).then_some(ev.index())
    }
}

#[test]
fn state_fits_the_papers_table() {
    //= docs/specs/reps.md#REPS-1a bytes of state
    assert_eq!(Reps::STATE_BYTES, 24);
}

#[test]
fn names_are_shown_and_known() {
    for kind in BalancerKind::ALL {
        assert_eq!(BalancerKind::named(&kind.to_string()), Some(kind));
    }
    assert_eq!(BalancerKind::named("arcane"), Some(BalancerKind::Reps));
    assert_eq!(BalancerKind::named("x"), None);
}

#[test]
fn ecmp_keeps_the_ev_it_drew() {
    //= docs/specs/reps.md#REPS-21 ECMP
    let mut rng = rng::stream(3, 0);
    let mut ecmp = AnyBalancer::new(&config(BalancerKind::Ecmp), &mut rng);
    let first = ecmp.next_ev(0, &PACKET, &mut rng);
    ecmp.on_loss(1, &loss(first.index(), LossCause::Timeout), &mut ());
    ecmp.on_ack(2, &ack(first.index(), true), &mut ());
    assert!((0..100).all(|_| ecmp.next_ev(3, &PACKET, &mut rng) == first));
    let others =
        (0..8).map(|stream| Ecmp::make(&NoSettings {}, &config(BalancerKind::Ecmp), &mut rng::stream(3, stream)));
    assert!(others.map(|mut other| other.next_ev(0, &PACKET, &mut rng)).any(|ev| ev != first));
    let seeded = |seed, stream| {
        let config = PathConfig { seed: Some(seed), ..config(BalancerKind::Ecmp) };
        Ecmp::make(&NoSettings {}, &config, &mut rng::stream(3, stream)).next_ev(0, &PACKET, &mut rng::stream(0, 0))
    };
    assert_eq!(seeded(9, 0), seeded(9, 1), "a connection's own seed decides alone");
    assert!((10..18).any(|seed| seeded(seed, 0) != seeded(9, 0)));
}

#[test]
fn ops_draws_evenly() {
    //= docs/specs/reps.md#REPS-22 OPS
    let mut rng = rng::stream(4, 0);
    let mut ops = Ops::make(&NoSettings {}, &PathConfig { evs: 16, ..config(BalancerKind::Ops) }, &mut rng);
    let mut counts = [0u32; 16];
    (0..16_000).for_each(|_| counts[usize::from(ops.next_ev(0, &PACKET, &mut rng).index())] += 1);
    assert!(counts.iter().all(|&count| (850..1150).contains(&count)), "{counts:?}");
}

#[test]
fn a_new_connection_explores_until_an_unmarked_ack() {
    //= docs/specs/reps.md#REPS-1 the variables
    //= docs/specs/reps.md#REPS-2 marked ACKs
    //= docs/specs/reps.md#REPS-5 when a packet explores
    let mut rig = Rig::paper();
    assert_eq!(rig.sends(200), [None; 200]);
    rig.ack(0, 5, true);
    assert_eq!(rig.send(), None);
    rig.ack(0, 5, false);
    assert_eq!(rig.sends(2), [Some(5), None]);
}

#[test]
fn valid_evs_are_used_once_oldest_first() {
    //= docs/specs/reps.md#REPS-3 caching an EV
    //= docs/specs/reps.md#REPS-7 reusing the oldest valid EV
    let mut rig = Rig::paper().acks(&[1, 2, 3]);
    assert_eq!(rig.sends(2), [Some(1), Some(2)]);
    rig.ack(0, 4, false);
    assert_eq!(rig.sends(3), [Some(3), Some(4), None]);
}

#[test]
fn a_full_buffer_loses_its_oldest_ev() {
    //= docs/specs/reps.md#REPS-3 caching an EV
    let mut rig = Rig::paper().acks(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(rig.reps.valid_evs(), 8);
    assert_eq!(rig.sends(9), [3, 4, 5, 6, 7, 8, 9, 10].map(Some).into_iter().chain([None]).collect::<Vec<_>>());
}

#[test]
fn an_ev_outside_the_set_is_not_cached() {
    //= docs/specs/reps.md#REPS-4 coalesced ACKs
    let mut rig = Rig::new(&PathConfig { evs: 32, ..reps_config(|_| ()) }).acks(&[32, 65_535, 31]);
    assert_eq!(rig.reps.cached_evs(), [31].map(Ev::new));
    assert_eq!(rig.sends(2), [Some(31), None]);
}

#[test]
fn a_frozen_connection_walks_what_it_knows() {
    //= docs/specs/reps.md#REPS-7 reusing the oldest valid EV
    //= docs/specs/reps.md#REPS-8 reuse while frozen
    let mut rig = Rig::paper().acks(&[1, 2, 3, 4, 5, 6, 7, 8]);
    rig.sends(6);
    rig.timeout(0);
    assert_eq!(rig.sends(10), [7, 8, 1, 2, 3, 4, 5, 6, 7, 8].map(Some));
    assert_eq!(rig.log, [(0, FROZEN_BY_TIMEOUT)]);
}

#[test]
fn an_ack_in_freezing_mode_replaces_the_next_in_turn() {
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
    //= docs/specs/reps.md#REPS-5 when a packet explores
    let mut rig = Rig::paper();
    rig.timeout(0);
    assert!(rig.reps.is_frozen());
    assert_eq!(rig.send(), None);
}

#[test]
fn thawing_needs_an_unmarked_ack_after_the_timeout_and_keeps_the_buffer() {
    //= docs/specs/reps.md#REPS-6 the explore counter
    //= docs/specs/reps.md#REPS-11 failures that change nothing
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
    assert_eq!(rig.log, events);
}

#[test]
fn the_exit_time_is_never_early_and_less_than_a_unit_late_across_its_wrap() {
    //= docs/specs/reps.md#REPS-13 the timer's width
    for start_ps in [0, 123_456_789, (1 << 52) - 3 * TICK_PS - 5, (1 << 52) - 1, u64::MAX / 2] {
        let timeout_ps = 10 * TICK_PS + 777;
        let mut rig = Rig::new(&reps_config(|reps| reps.freezing_timeout_us = Micros::from_ps(timeout_ps))).acks(&[1]);
        rig.timeout(start_ps);
        rig.ack(start_ps + timeout_ps, 1, false);
        assert!(rig.reps.is_frozen());
        rig.ack(start_ps + timeout_ps + TICK_PS, 1, false);
        assert!(!rig.reps.is_frozen());
    }
}

#[test]
fn a_trimmed_packet_is_congestion_with_trimming_and_without() {
    //= docs/specs/reps.md#REPS-14 networks that trim
    for trimming in [true, false] {
        let mut rig = Rig::new(&PathConfig { trimming, ..reps_config(|_| ()) });
        rig.loss(0, loss(1, LossCause::Trimmed));
        assert!(!rig.reps.is_frozen());
    }
}

#[test]
fn with_trimming_any_other_loss_is_failure_whatever_the_rtt() {
    //= docs/specs/reps.md#REPS-14 networks that trim
    //= docs/specs/reps.md#REPS-16 declared losses
    for cause in [LossCause::Timeout, LossCause::SackGap] {
        let mut rig = Rig::paper();
        rig.loss(0, LossInfo { max_rtt_ps: 10 * BASE_RTT_PS, ..loss(1, cause) });
        assert!(rig.reps.is_frozen());
    }
}

#[test]
fn without_trimming_a_high_rtt_before_the_loss_is_congestion() {
    //= docs/specs/reps.md#REPS-15 networks that do not trim
    let threshold_ps = BASE_RTT_PS * 1650 / 1000;
    for (max_rtt_ps, frozen) in [(0, true), (threshold_ps - 1, true), (threshold_ps, false)] {
        let mut rig = Rig::new(&PathConfig { trimming: false, ..reps_config(|_| ()) });
        rig.loss(0, LossInfo { max_rtt_ps, ..loss(1, LossCause::Timeout) });
        assert_eq!(rig.reps.is_frozen(), frozen);
    }
    let config = reps_config(|reps| reps.congestion_rtt = Ratio::default());
    let mut rig = Rig::new(&PathConfig { trimming: false, ..config });
    rig.loss(0, LossInfo { max_rtt_ps: 10 * BASE_RTT_PS, ..loss(1, LossCause::Timeout) });
    assert!(rig.reps.is_frozen());
}

#[test]
fn probes_of_the_lost_ev_end_freezing_in_place_of_time() {
    //= docs/specs/reps.md#REPS-17 probing the lost EV
    //= docs/specs/reps.md#REPS-18 answers to probes
    let mut rig =
        Rig::new(&reps_config(|reps| (reps.probing, reps.probe_us) = (true, Some(Micros::from_ps(1000))))).acks(&[1]);
    assert_eq!(rig.reps.poll_timeout(), None);
    rig.timeout(500);
    assert_eq!(rig.reps.poll_timeout(), Some(1500));
    assert_eq!(rig.reps.poll_probe(1499), None);
    assert_eq!(rig.reps.poll_probe(1500), Some(Ev::new(99)));
    assert_eq!(rig.reps.poll_probe(1500), None);
    assert_eq!(rig.reps.poll_timeout(), Some(2500));
    rig.ack(1000 * TICK_PS, 1, false);
    rig.reps.on_probe_ack(1600, Ev::new(98), false, &mut rig.log);
    rig.reps.on_probe_ack(1600, Ev::new(99), true, &mut rig.log);
    assert!(rig.reps.is_frozen());
    rig.reps.on_probe_ack(1700, Ev::new(99), false, &mut rig.log);
    assert!(!rig.reps.is_frozen());
    assert_eq!(rig.reps.exploring(), 100);
    assert_eq!(rig.reps.poll_timeout(), None);
    rig.reps.on_probe_ack(1800, Ev::new(99), false, &mut rig.log);
    assert_eq!(rig.log, [(500, FROZEN_BY_TIMEOUT), (1700, Event::FreezeExited)]);
}

#[test]
fn with_timed_exit_the_timeout_ends_freezing_besides_probes() {
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
fn without_freezing_only_the_core_logic_is_left() {
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
    assert_eq!(rig.log, [(6 * TICK_PS, Event::FreezeEntered { reason: FreezeReason::Setting })]);
    let mut rig = Rig::new(&reps_config(|reps| reps.force_freezing_us = Some(Micros::default())));
    rig.ack(7, 1, true);
    assert!(rig.reps.is_frozen(), "from the first feedback on");
    assert_eq!(rig.send(), None, "with nothing cached it explores");
}

#[test]
fn reps_probing_probes_by_itself() {
    //= docs/specs/reps.md#REPS-26 with probing
    let mut rig = Rig::new(&reps_named(BalancerKind::RepsProbing, |_| ())).acks(&[1]);
    rig.timeout(0);
    assert_eq!(rig.reps.poll_timeout(), Some(PROBE_RTTS * BASE_RTT_PS));
    rig.ack(1000 * TICK_PS, 1, false);
    assert!(rig.reps.is_frozen(), "its time does not end it");
    let mut rig = Rig::new(&reps_named(BalancerKind::RepsProbing, |reps| reps.probe_us = Some(Micros::from_ps(77))));
    rig.timeout(0);
    assert_eq!(rig.reps.poll_timeout(), Some(77));
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
        freezing_timeout_us: Micros::from_ps(2_500_000),
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
fn the_artifact_freezes_on_timeouts_only_and_empties_the_buffer_on_any_feedback() {
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
fn the_artifacts_walk_starts_over_with_every_freeze() {
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
fn a_nack_thaws_where_asked_and_caches_nothing() {
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

#[test]
fn a_bdp_beyond_the_counter_saturates() {
    let mut rig = Rig::new(&PathConfig { bdp_packets: 1 << 20, ..reps_config(|_| ()) });
    rig.timeout(0);
    rig.ack(11 * TICK_PS, 1, false);
    assert_eq!(rig.reps.exploring(), 65_535);
}

/// One step of a history.
#[derive(Clone, Copy, Debug)]
enum Op {
    Send(u8),
    Ack { ev: u16, marked: bool },
    Loss { ev: u16, cause: LossCause, max_rtt_ps: u64 },
    Probe { ev: u16, marked: bool },
    Wait { ps: u64 },
}

fn cause() -> impl Strategy<Value = LossCause> {
    prop_oneof![Just(LossCause::Timeout), Just(LossCause::SackGap), Just(LossCause::Trimmed)]
}

fn op(wait_ps: impl Strategy<Value = u64>) -> impl Strategy<Value = Op> {
    let rtt_ps = prop_oneof![Just(0), 0..3 * BASE_RTT_PS, any::<u64>()];
    prop_oneof![
        6 => (1..12u8).prop_map(Op::Send),
        6 => (any::<u16>(), prop::bool::weighted(0.3)).prop_map(|(ev, marked)| Op::Ack { ev, marked }),
        2 => (any::<u16>(), cause(), rtt_ps)
            .prop_map(|(ev, cause, max_rtt_ps)| Op::Loss { ev, cause, max_rtt_ps }),
        1 => (0..4u16, any::<bool>()).prop_map(|(ev, marked)| Op::Probe { ev, marked }),
        2 => wait_ps.prop_map(|ps| Op::Wait { ps }),
    ]
}

fn ev_count() -> impl Strategy<Value = u16> {
    prop_oneof![1..=4u16, 1..=65_535u16, Just(65_535)]
}

fn any_reps_config() -> impl Strategy<Value = RepsConfig> {
    let rules = prop_oneof![Just(RepsRule::Paper), Just(RepsRule::Artifact), Just(RepsRule::UltraEthernet)];
    let probing = prop::option::of((0..5 * TICK_PS, any::<bool>()));
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let times = (0..20 * TICK_PS, prop::option::of(any::<u64>()));
    (rules, 0..=10u8, times, probing, flags).prop_map(|(rule, buffer, (timeout_ps, forced_ps), probing, flags)| {
        RepsConfig {
            rule,
            buffer,
            freezing_timeout_us: Micros::from_ps(timeout_ps),
            freezing: flags.4,
            force_freezing_us: forced_ps.map(Micros::from_ps),
            probing: probing.is_some(),
            probe_us: probing.map(|(interval_ps, _)| Micros::from_ps(interval_ps)),
            timed_exit: probing.is_some_and(|(_, timed_exit)| timed_exit),
            empty_on_thaw: Some(flags.0),
            thaw_check: Some(if flags.1 { ThawCheck::AnyFeedback } else { ThawCheck::UnmarkedAck }),
            frozen_walk: Some(if flags.2 { FrozenWalk::AllSlots } else { FrozenWalk::ValidFirst }),
            congestion_rtt: if flags.3 { Ratio::permille(1_650) } else { Ratio::default() },
            ..RepsConfig::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    /// Clauses 1 to 12 and 14: the same as the paper's pseudo-code, draw by draw.
    #[test]
    fn reps_is_the_papers_algorithm(
        ops in prop::collection::vec(op((0..30u64).prop_map(|ticks| ticks * TICK_PS)), 1..300),
        (depth, evs, bdp_packets, timeout_ticks) in (1..=8u8, ev_count(), 0..40u32, 0..25u64),
        start_ticks in prop_oneof![Just(0u64), Just((1 << 32) - 100)],
    ) {
        let freezing_timeout_us = Micros::from_ps(timeout_ticks * TICK_PS);
        let reps = RepsConfig { buffer: depth, freezing_timeout_us, ..RepsConfig::default() };
        let path = PathConfig { evs: u32::from(evs), bdp_packets, ..config(BalancerKind::Reps) };
        let mut ours = Reps::make(&reps, &path, &mut rng::stream(1, 2));
        let mut paper = PaperReps::new(depth, evs, bdp_packets.into(), timeout_ticks * TICK_PS);
        let (mut our_rng, mut paper_rng) = (rng::stream(9, 9), rng::stream(9, 9));
        let mut now_ps = start_ticks * TICK_PS;
        for op in ops {
            match op {
                Op::Send(count) => for _ in 0..count {
                    prop_assert_eq!(ours.next_ev(now_ps, &PACKET, &mut our_rng).index(), paper.on_send(&mut paper_rng));
                },
                Op::Ack { ev, marked } => {
                    ours.on_ack(now_ps, &ack(ev % evs, marked), &mut ());
                    paper.on_ack(now_ps, ev % evs, marked);
                }
                Op::Loss { ev, cause, max_rtt_ps } => {
                    ours.on_loss(now_ps, &LossInfo { ev: Ev::new(ev), bytes: 1, cause, max_rtt_ps, ..LossInfo::default() }, &mut ());
                    if cause != LossCause::Trimmed {
                        paper.on_failure_detection(now_ps);
                    }
                }
                Op::Probe { ev, marked } => ours.on_probe_ack(now_ps, Ev::new(ev), marked, &mut ()),
                Op::Wait { ps } => now_ps += ps,
            }
            prop_assert_eq!(ours.is_frozen(), paper.is_freezing_mode);
            prop_assert_eq!(u64::from(ours.exploring()), paper.explore_counter);
            prop_assert_eq!(usize::from(ours.valid_evs()), paper.number_of_valid_evs);
            let written: Vec<_> = paper.reps_buffer.iter().filter_map(|slot| slot.cached_ev).map(Ev::new).collect();
            prop_assert_eq!(ours.cached_evs(), written);
            prop_assert_eq!(&our_rng, &paper_rng);
        }
    }

    //= docs/specs/reps.md#REPS-23 only EVs of the set
    //= docs/specs/reps.md#REPS-8 reuse while frozen
    /// A frozen connection never explores while anything is cached, under every option.
    #[test]
    fn no_history_leaves_the_set(
        ops in prop::collection::vec(op(prop_oneof![0..30 * TICK_PS, any::<u64>()]), 1..200),
        (evs, reps, trimming) in (prop_oneof![0..6u32, any::<u32>()], any_reps_config(), any::<bool>()),
        (base_rtt_ps, bdp_packets) in (prop_oneof![Just(BASE_RTT_PS), any::<u64>()], any::<u32>()),
    ) {
        for balancer in BalancerKind::ALL {
            let balancer = balancer.config(&Schemes { reps, ..Schemes::default() });
            let config = PathConfig { balancer, evs, bdp_packets, base_rtt_ps, trimming, seed: None };
            let mut rng = rng::stream(5, 5);
            let mut any = AnyBalancer::new(&config, &mut rng);
            let mut now_ps = 0u64;
            let largest = evs.clamp(1, 65_535);
            for &op in &ops {
                match op {
                    Op::Send(count) => for _ in 0..count {
                        let cached = frozen_evs(&any);
                        let ev = any.next_ev(now_ps, &PACKET, &mut rng);
                        prop_assert!(u32::from(ev.index()) < largest);
                        prop_assert!(cached.is_empty() || cached.contains(&ev));
                    },
                    Op::Ack { ev, marked } => {
                        any.on_ack(now_ps, &AckInfo { packets: ev, hops: 255, ..ack(ev, marked) }, &mut ());
                    }
                    Op::Loss { ev, cause, max_rtt_ps } => {
                        let ev = Ev::new((u32::from(ev) % largest) as u16);
                        any.on_loss(now_ps, &LossInfo { ev, bytes: u32::MAX, cause, max_rtt_ps, ..LossInfo::default() }, &mut ());
                    }
                    Op::Probe { ev, marked } => {
                        let probe = any.poll_probe(now_ps);
                        prop_assert!(probe.is_none_or(|ev| u32::from(ev.index()) < largest));
                        prop_assert!(any.poll_probe(now_ps).is_none() || now_ps == u64::MAX);
                        any.on_probe_ack(now_ps, probe.unwrap_or(Ev::new(ev)), marked, &mut ());
                    }
                    Op::Wait { ps } => now_ps = now_ps.saturating_add(ps),
                }
            }
        }
    }
}

/// What a frozen REPS may use; empty where anything goes.
fn frozen_evs(any: &AnyBalancer) -> Vec<Ev> {
    match any {
        AnyBalancer::Reps(reps) if reps.is_frozen() => reps.cached_evs().to_vec(),
        _ => Vec::new(),
    }
}

/// Every scheme without a setting of its own is what its paper says.
#[test]
fn defaults_are_the_published_settings() {
    let published = "
        [reps]
        rule = 'paper'
        buffer = 8
        freezing = true
        freezing_timeout_us = 10000
        congestion_rtt = 1.65
        probing = false
        timed_exit = false
        [flowcut]
        rule = 'paper'
        rtt_ratio = 4
        weight = 0.12
        trend = 0.05
        trend_weight = 0.12
        resume_packets = 0
        credit_bytes = 0
        dead_timeouts = 3
        [plb]
        rule = 'reps'
        [flowlet]
        clock = 'feedback'
        [flowcell]
        cell_bytes = '64 KiB'
        order = 'in-turn'
        [mprdma]
        rule = 'artifact'
        ooo_packets = 32
        probe_share = 0.01
        [bitmap]
        max_penalty = 15
        mark_penalty = 1
        loss_penalty = 4
        timeout_penalty = 15
        pardon = 'first'
        [reps-plus]
        buffer = 16
        freezing_timeout_us = 10_000
        whole_acks = true
        even_exploring = true
        known_paths = true
        early_losses = true
        [host-dr]
        labels = 64
        small_bytes = 256
        order = 'drawn'
        [mptcp]
        subflows = 8
        split = 'equal'
        [subflow]
        subflows = 4
        [ordered-chaos]
        subflows = 16
        interval_us = 15
        jitter = 0.25
        threshold = 0
        silence = true
        detection = true
        probe_packets = 0
        probe_retransmissions = true
        [power-of-two]
        labels = 64
        [least-recently-marked]
        labels = 64
    ";
    let mut written = toml::Table::try_from(Schemes::default()).unwrap();
    written.retain(|_, settings| settings.as_table().is_some_and(|settings| !settings.is_empty()));
    assert_eq!(written, toml::from_str::<toml::Table>(published).unwrap());
    assert_eq!(written.try_into::<Schemes>().unwrap(), Schemes::default());
    assert_eq!(toml::from_str::<Schemes>("").unwrap(), Schemes::default());
}

#[test]
fn a_name_is_a_scheme_with_settings() {
    let reps = RepsConfig { buffer: 3, ..RepsConfig::default() };
    let schemes = Schemes { reps, ..Schemes::default() };
    let named = |name: &str| BalancerKind::named(name).unwrap().config(&schemes);
    assert_eq!(named("reps"), BalancerConfig::Reps(reps));
    assert_eq!(named("arcane"), BalancerConfig::Reps(reps));
    assert_eq!(named("reps-no-freezing"), BalancerConfig::Reps(RepsConfig { freezing: false, ..reps }));
    assert_eq!(named("reps-probing"), BalancerConfig::Reps(RepsConfig { probing: true, ..reps }));
    assert_eq!(BalancerKind::RepsProbing.settings_name(), "reps");
    assert_eq!(named("flowcut"), BalancerKind::Flowcut.into());
    for kind in BalancerKind::ALL {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        assert_eq!(serde_json::from_value::<BalancerKind>(kind.name().into()).unwrap(), kind);
    }
}
