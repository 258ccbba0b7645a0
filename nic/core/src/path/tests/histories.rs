//! Random histories: REPS against the paper's pseudo-code, and every balancer against its set of
//! entropy values.

use proptest::prelude::*;

use super::model::PaperReps;
use super::*;
use crate::event::Choice;

/// One step of a history.
#[derive(Clone, Copy, Debug)]
enum Op {
    Send(u8),
    Ack { ev: u16, marked: bool },
    Loss { ev: u16, cause: LossCause, max_before_timeout_ps: u64 },
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
            .prop_map(|(ev, cause, max_before_timeout_ps)| Op::Loss { ev, cause, max_before_timeout_ps }),
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
            freezing_timeout_us: Some(Micros::from_ps(timeout_ps)),
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
    fn reps_agrees_with_the_papers_algorithm(
        ops in prop::collection::vec(op((0..30u64).prop_map(|ticks| ticks * TICK_PS)), 1..300),
        (depth, evs, bdp_packets, timeout_ticks) in (1..=8u8, ev_count(), 0..40u32, 0..25u64),
        start in prop_oneof![Just(Time::ZERO), any::<u64>().prop_map(|steps| at_step(steps / 2))],
    ) {
        let freezing_timeout_us = Some(Micros::from_ps(timeout_ticks * TICK_PS));
        let reps = RepsConfig { buffer: depth, freezing_timeout_us, ..RepsConfig::default() };
        let path = Setup { evs, bdp_packets, ..config(BalancerKind::Reps) }.path();
        let mut ours = Reps::make(&reps, &path, &mut rng::stream(1, 2));
        let mut paper = PaperReps::new(depth, evs, bdp_packets.into(), timeout_ticks * TICK_PS);
        let (mut our_rng, mut paper_rng) = (rng::stream(9, 9), rng::stream(9, 9));
        // The model's time begins with the history.
        let mut now_ps = 0;
        for op in ops {
            match op {
                Op::Send(count) => for _ in 0..count {
                    prop_assert_eq!(ours.next_ev(path.at(start.after(now_ps)), &PACKET, &mut our_rng).index(), paper.on_send(&mut paper_rng));
                },
                Op::Ack { ev, marked } => {
                    ours.on_ack(path.at(start.after(now_ps)), &ack(ev % evs, marked), &mut ());
                    paper.on_ack(now_ps, ev % evs, marked);
                }
                Op::Loss { ev, cause, max_before_timeout_ps } => {
                    ours.on_loss(path.at(start.after(now_ps)), &LossInfo { ev: Ev::new(ev), bytes: 1, cause, max_before_timeout_ps, ..LossInfo::default() }, &mut ());
                    if cause != LossCause::Trimmed {
                        paper.on_failure_detection(now_ps);
                    }
                }
                Op::Probe { ev, marked } => ours.on_probe_ack(path.at(start.after(now_ps)), &answer(ev, marked), &mut ()),
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
    /// A frozen connection never explores while anything is cached, under any setting.
    #[test]
    fn no_history_leaves_the_set(
        ops in prop::collection::vec(op(prop_oneof![20 => 0..30 * TICK_PS, 20 => any::<u64>(), 1 => Just(u64::MAX)]), 1..200),
        (evs, reps, trimming) in (prop_oneof![0..6u16, any::<u16>()], any_reps_config(), any::<bool>()),
        (base_rtt_ps, bdp_packets) in (prop_oneof![Just(BASE_RTT_PS), any::<u64>()], any::<u32>()),
    ) {
        for balancer in BalancerKind::ALL {
            let balancer = balancer.config(&Schemes { reps, ..Schemes::default() });
            let path = Setup { balancer, evs, bdp_packets, base_rtt_ps, trimming, seed: None }.path();
            let mut rng = rng::stream(5, 5);
            let mut any = AnyBalancer::new(&balancer, &path, &mut rng);
            let mut now = Time::ZERO;
            for &op in &ops {
                match op {
                    Op::Send(count) => for _ in 0..count {
                        let cached = frozen_evs(&any);
                        let (choice, known) = (any.next_choice(), known_evs(&any));
                        let ev = any.next_ev(path.at(now), &PACKET, &mut rng);
                        let is_new = matches!(choice, Choice::Chosen | Choice::Explored);
                        prop_assert!(is_new || known.is_none_or(|known| known.contains(&ev)), "{choice:?}, {ev:?}");
                        prop_assert!(ev.index() < path.evs);
                        prop_assert!(cached.is_empty() || cached.contains(&ev));
                    },
                    Op::Ack { ev, marked } => {
                        any.on_ack(path.at(now), &AckInfo { packets: ev, hops: 255, ..ack(ev, marked) }, &mut ());
                    }
                    Op::Loss { ev, cause, max_before_timeout_ps } => {
                        let ev = Ev::new(ev % path.evs);
                        any.on_loss(path.at(now), &LossInfo { ev, bytes: u32::MAX, cause, max_before_timeout_ps, ..LossInfo::default() }, &mut ());
                    }
                    Op::Probe { ev, marked } => {
                        let probe = any.poll_probe(path.at(now));
                        let more: Vec<Ev> = core::iter::from_fn(|| any.poll_probe(path.at(now))).take(5).collect();
                        prop_assert!(probe.iter().chain(&more).all(|ev| ev.index() < path.evs));
                        prop_assert!(more.len() < 5 || now == Time::NEVER, "it does not stop probing");
                        any.on_probe_ack(path.at(now), &answer(probe.map_or(ev, Ev::index), marked), &mut ());
                    }
                    Op::Wait { ps } => now = now.after(ps),
                }
            }
        }
    }
}

/// Returns the cached values of REPS; `None` for other schemes.
fn known_evs(any: &AnyBalancer) -> Option<Vec<Ev>> {
    if let AnyBalancer::Reps(reps) = any { Some(reps.cached_evs().to_vec()) } else { None }
}

/// Returns the values that a frozen REPS may use; empty if any may be used.
fn frozen_evs(any: &AnyBalancer) -> Vec<Ev> {
    match any {
        AnyBalancer::Reps(reps) if reps.is_frozen() => reps.cached_evs().to_vec(),
        _ => Vec::new(),
    }
}
