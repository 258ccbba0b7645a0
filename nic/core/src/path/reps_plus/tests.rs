//! The clauses of `docs/specs/reps-plus.md`: as tables, against REPS, and against a literal twin over random histories.

use std::collections::VecDeque;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::path::reps::TICK_SHIFT;
use crate::path::{BalancerConfig, Reps, RepsConfig};
use crate::rng::{self, Rng};
use crate::units::Micros;

const RTT_PS: u64 = 8 << TICK_SHIFT;
const TIMEOUT_PS: u64 = 1000 << TICK_SHIFT;
const EVS: u16 = 1000;
const BDP: u16 = 5;

fn config(change: impl FnOnce(&mut RepsPlusConfig)) -> PathConfig {
    let mut own = RepsPlusConfig { freezing_timeout_us: Micros::from_ps(TIMEOUT_PS), ..RepsPlusConfig::default() };
    change(&mut own);
    PathConfig {
        trimming: true,
        evs: u32::from(EVS),
        ..PathConfig::new(BalancerConfig::RepsPlus(own), RTT_PS, u32::from(BDP))
    }
}

fn make(config: &PathConfig, rng: &mut Rng) -> RepsPlus {
    let BalancerConfig::RepsPlus(own) = &config.balancer else { panic!("{:?} is not reps-plus", config.balancer) };
    RepsPlus::make(own, config, rng)
}

fn info(ev: u16, marked: bool, packets: u16, marked_packets: u16) -> AckInfo {
    AckInfo { ev: Ev::new(ev), marked, packets, marked_packets, ..AckInfo::default() }
}

fn packet(ev: u16) -> PacketInfo {
    PacketInfo { psn: 0, ev: Ev::new(ev), bytes: 4150, sent_ps: 0, was_lost: false }
}

fn lost(sent_ps: u64) -> LossInfo {
    LossInfo { sent_ps, ..LossInfo::default() }
}

/// A balancer with a generator and a log.
struct Rig {
    plus: RepsPlus,
    rng: Rng,
    log: Vec<(u64, Event)>,
}

impl Rig {
    fn new(change: impl FnOnce(&mut RepsPlusConfig)) -> Self {
        let mut rng = rng::stream(1, 2);
        Self { plus: make(&config(change), &mut rng), rng, log: Vec::new() }
    }

    /// An ACK of the packets with these values, the last of which triggered it.
    fn ack(&mut self, now_ps: u64, evs: &[u16], marked: bool, marked_packets: u16) {
        evs.iter().for_each(|&ev| self.plus.on_packet_acked(now_ps, &packet(ev)));
        let ev = *evs.last().unwrap();
        self.plus.on_ack(now_ps, &info(ev, marked, evs.len() as u16, marked_packets), &mut self.log);
    }

    fn lose(&mut self, now_ps: u64, sent_ps: u64) {
        self.plus.on_loss(now_ps, &lost(sent_ps), &mut self.log);
    }

    fn send(&mut self) -> u16 {
        self.plus.next_ev(0, &SendInfo::default(), &mut self.rng).index()
    }

    /// What is sent from the cache.
    fn cached(&mut self) -> Vec<u16> {
        (0..self.plus.valid_evs()).map(|_| self.send()).collect()
    }
}

/// (values settled, the last triggered it; packets that it stands for; its mark; marked packets; what is cached)
type Vouched = (&'static [u16], u16, bool, u16, &'static [u16]);

//= docs/specs/reps-plus.md#RPP-1 caching the trigger's EV
//= docs/specs/reps-plus.md#RPP-2 candidates
//= docs/specs/reps-plus.md#RPP-3 how many candidates count
#[test]
fn an_ack_vouches_for_the_packets_it_stands_for() {
    let table: [Vouched; 9] = [
        (&[1, 2, 3, 4], 4, false, 0, &[1, 2, 3, 4]),
        // Its own mark costs its own value only, those of others as many values.
        (&[1, 2, 3, 4], 4, true, 1, &[1, 2, 3]),
        (&[1, 2, 3, 4], 4, false, 2, &[1, 4]),
        (&[1, 2, 3, 4], 4, true, 4, &[]),
        // One stands for itself alone, as in REPS, whatever lost ACKs it makes up for.
        (&[1, 2, 3, 4], 1, false, 0, &[4]),
        (&[1, 2, 3, 4], 2, false, 0, &[1, 4]),
        // Overtaken by another, it settles less than it stands for.
        (&[4], 4, false, 0, &[4]),
        // The triggering packet's value counts once for it, and again for others with the same.
        (&[4, 4, 4], 3, false, 0, &[4, 4, 4]),
        (&[4, EVS, 5], 3, false, 0, &[4, 5]),
    ];
    for (settled, packets, marked, marked_packets, cached) in table {
        let mut rig = Rig::new(|_| ());
        settled.iter().for_each(|&ev| rig.plus.on_packet_acked(0, &packet(ev)));
        rig.plus.on_ack(0, &info(*settled.last().unwrap(), marked, packets, marked_packets), &mut rig.log);
        assert_eq!(rig.cached(), cached, "{settled:?} {packets} {marked} {marked_packets}");
    }
    let mut rig = Rig::new(|config| config.whole_acks = false);
    assert!(!rig.plus.tracks_packets());
    rig.plus.on_ack(0, &info(4, false, 4, 0), &mut rig.log);
    assert_eq!(rig.cached(), [4]);
}

//= docs/specs/reps-plus.md#RPP-4 several EVs in an ACK
#[test]
fn echoes_take_the_place_of_records() {
    let mut rig = Rig::new(|_| ());
    (1..=4).for_each(|ev| rig.plus.on_packet_acked(0, &packet(ev)));
    for (ev, marked) in [(7, false), (8, true), (9, false), (EVS, false)] {
        rig.plus.on_echo(0, Ev::new(ev), marked);
    }
    rig.plus.on_ack(0, &info(10, false, 4, 3), &mut rig.log);
    assert_eq!(rig.cached(), [7, 9, 10]);
    rig.ack(0, &[1, 2], false, 0);
    assert_eq!(rig.cached(), [1, 2], "the next ACK has none");
}

//= docs/specs/reps-plus.md#RPP-5 A longer buffer
//= docs/specs/reps-plus.md#RPP-6 exploring or reusing
#[test]
fn the_buffer_keeps_the_latest() {
    let mut rig = Rig::new(|config| config.buffer = 3);
    rig.ack(0, &[1, 2, 3, 4, 5], false, 0);
    assert_eq!(rig.cached(), [3, 4, 5]);
    let most: Vec<u16> = (0..60).collect();
    let mut rig = Rig::new(|_| ());
    rig.ack(0, &most, false, 0);
    assert_eq!(rig.plus.valid_evs() as usize, MAX_BUFFER);
}

//= docs/specs/reps-plus.md#RPP-8 even exploring
#[test]
fn exploring_is_even() {
    for evs in [8u16, 32, 100, 256, 4096] {
        let config = PathConfig { evs: u32::from(evs), ..config(|_| ()) };
        let mut rng = rng::stream(3, 4);
        let mut plus = make(&config, &mut rng);
        let mut counts = std::vec![0u32; usize::from(evs)];
        for _ in 0..u32::from(evs) * 3 {
            counts[usize::from(plus.next_ev(0, &SendInfo::default(), &mut rng).index())] += 1;
        }
        let (least, most) = (*counts.iter().min().unwrap(), *counts.iter().max().unwrap());
        assert!(least >= 1 && most <= 5, "{evs}: {least} to {most}");
    }
}

//= docs/specs/reps-plus.md#RPP-9 where exploring begins
#[test]
fn connections_begin_exploring_at_places_of_their_own() {
    let first = |seed| {
        let config = PathConfig { seed: Some(seed), ..config(|_| ()) };
        make(&config, &mut rng::stream(9, 9)).next_ev(0, &SendInfo::default(), &mut rng::stream(5, 5)).index()
    };
    assert_eq!(first(1), first(1));
    let mut firsts: Vec<u16> = (0..64).map(first).collect();
    firsts.sort_unstable();
    firsts.dedup();
    assert!(firsts.len() > 50);
}

//= docs/specs/reps-plus.md#RPP-7 reuse while frozen
//= docs/specs/reps-plus.md#RPP-10 what a failure is
//= docs/specs/reps-plus.md#RPP-11 freezing
//= docs/specs/reps-plus.md#RPP-12 thawing
#[test]
fn it_freezes_and_thaws_as_reps() {
    let mut rig = Rig::new(|_| ());
    rig.ack(0, &[1, 2, 3], false, 0);
    rig.plus.on_loss(0, &LossInfo { cause: LossCause::Trimmed, ..lost(0) }, &mut rig.log);
    assert!(!rig.plus.is_frozen());
    rig.lose(RTT_PS, 0);
    rig.lose(RTT_PS, 0);
    assert_eq!(rig.log, [(RTT_PS, Event::FreezeEntered)]);
    let mut sent: Vec<u16> = (0..9).map(|_| rig.send()).collect();
    assert_eq!(sent[..3], [1, 2, 3], "what is valid first");
    sent.sort_unstable();
    assert_eq!(sent, [1, 1, 1, 2, 2, 2, 3, 3, 3], "then all in turn");
    let end_ps = RTT_PS + TIMEOUT_PS;
    rig.ack(end_ps, &[4], false, 0);
    rig.ack(2 * end_ps, &[4], true, 1);
    assert!(rig.plus.is_frozen(), "not yet over, and marked");
    rig.ack(end_ps + (1 << TICK_SHIFT), &[5], false, 0);
    assert_eq!(rig.log[1..], [(end_ps + (1 << TICK_SHIFT), Event::FreezeExited)]);
    rig.lose(2 * end_ps, 2 * end_ps);
    assert!(!rig.plus.is_frozen(), "it explores first");
    (0..BDP).for_each(|_| _ = rig.send());
    assert_eq!(rig.cached(), [4, 5]);
}

//= docs/specs/reps-plus.md#RPP-10 what a failure is
#[test]
fn without_trimming_a_high_rtt_makes_a_loss_congestion() {
    for (rtt_permille, freezes) in [(0, true), (1649, true), (1650, false)] {
        let config = PathConfig { trimming: false, ..config(|_| ()) };
        let mut plus = make(&config, &mut rng::stream(1, 2));
        let max_rtt_ps = RTT_PS * rtt_permille / 1000 + u64::from(rtt_permille == 1650);
        plus.on_loss(0, &LossInfo { max_rtt_ps, ..lost(0) }, &mut ());
        assert_eq!(plus.is_frozen(), freezes, "{rtt_permille}");
    }
}

//= docs/specs/reps-plus.md#RPP-13 A loss despite freezing
//= docs/specs/reps-plus.md#RPP-14 immunity
#[test]
fn freezing_that_does_not_help_ends() {
    let tick = 1 << TICK_SHIFT;
    for futile_losses in [0, 1, 2, 3] {
        let mut rig = Rig::new(|config| config.futile_losses = futile_losses as u8);
        rig.ack(0, &[1, 2, 3], false, 0);
        rig.lose(0, 0);
        rig.lose(5 * RTT_PS, RTT_PS);
        assert!(rig.plus.is_frozen(), "sent within a round trip: it may have been under way to the failure");
        for n in 1..=4u64 {
            let now_ps = 10 * n * RTT_PS;
            // A burst counts once.
            (0..3).for_each(|_| rig.lose(now_ps, now_ps - 5 * RTT_PS));
            assert_eq!(rig.plus.is_immune(), futile_losses > 0 && n >= futile_losses, "{futile_losses} {n}");
        }
        assert_eq!(rig.plus.is_frozen(), futile_losses == 0);
        let thawed_ps = 10 * futile_losses * RTT_PS;
        if futile_losses > 0 {
            assert_eq!(rig.log, [(0, Event::FreezeEntered), (thawed_ps, Event::FreezeExited)]);
            assert_eq!(rig.cached(), [1, 2, 3], "no exploring first");
            rig.lose(thawed_ps + TIMEOUT_PS, thawed_ps);
            assert!(!rig.plus.is_frozen());
            rig.lose(thawed_ps + TIMEOUT_PS + tick, thawed_ps);
            assert!(rig.plus.is_frozen(), "immunity is over");
        }
    }
}

//= docs/specs/reps-plus.md#RPP-15 bytes of state
#[test]
fn its_state_is_under_64_bytes() {
    assert_eq!(RepsPlus::STATE_BYTES, 60);
}

/// The clauses, word for word.
struct Twin {
    depth: usize,
    futile: u64,
    valid: VecDeque<u16>,
    slots: Vec<u16>,
    written: usize,
    walked: usize,
    explore: u16,
    frozen: bool,
    immune: bool,
    since: u64,
    end: u64,
    losses: u64,
    phase: u16,
}

impl Twin {
    fn cache(&mut self, ev: u16) {
        self.valid.push_back(ev);
        if self.valid.len() > self.depth {
            self.valid.pop_front();
        }
        let at = self.written % self.depth;
        if at < self.slots.len() {
            self.slots[at] = ev
        } else {
            self.slots.push(ev)
        }
        self.written += 1;
    }

    fn on_ack(&mut self, tick: u64, settled: &[u16], echoes: &[(u16, bool)], ack: &AckInfo) {
        if !ack.marked && tick > self.end {
            if self.frozen {
                self.explore = BDP;
            }
            (self.frozen, self.immune) = (false, false);
        }
        let others: Vec<u16> = if echoes.is_empty() {
            let vouched = ack.packets.saturating_sub(1 + ack.marked_packets.saturating_sub(u16::from(ack.marked)));
            let mut others: Vec<u16> = settled.iter().copied().filter(|&ev| ev < EVS).take(MAX_BUFFER).collect();
            if let Some(own) = others.iter().position(|&ev| ev == ack.ev.index()) {
                others.remove(own);
            }
            others.into_iter().take(usize::from(vouched)).collect()
        } else {
            echoes.iter().filter(|(ev, marked)| !marked && *ev < EVS).map(|(ev, _)| *ev).collect()
        };
        if ack.packets > 1 {
            others.into_iter().for_each(|ev| self.cache(ev));
        }
        if !ack.marked && ack.ev.index() < EVS {
            self.cache(ack.ev.index());
        }
    }

    fn on_loss(&mut self, tick: u64, sent: u64) {
        if self.frozen {
            if self.futile == 0 || sent <= self.since + RTT_PS / TICK_PS {
                return;
            }
            self.losses += 1;
            self.since = tick;
            if self.losses >= self.futile {
                (self.frozen, self.immune, self.end) = (false, true, tick + TIMEOUT_PS / TICK_PS);
            }
            return;
        }
        if self.immune && tick > self.end {
            self.immune = false;
        }
        if !self.immune && self.explore == 0 {
            self.frozen = true;
            (self.since, self.end, self.losses) = (tick, tick + TIMEOUT_PS / TICK_PS, 0);
        }
    }

    fn next_ev(&mut self) -> u16 {
        if self.explore > 0 {
            self.explore -= 1;
        } else if let Some(ev) = self.valid.pop_front() {
            return ev;
        } else if self.frozen && !self.slots.is_empty() {
            self.walked = if self.walked + 1 < self.slots.len() { self.walked + 1 } else { 0 };
            return self.slots[self.walked];
        }
        self.phase = self.phase.wrapping_add(GOLDEN);
        (u32::from(self.phase) * u32::from(EVS) / 65_536) as u16
    }
}

const TICK_PS: u64 = 1 << TICK_SHIFT;

#[derive(Clone, Debug)]
enum Step {
    Send(u8),
    Ack { settled: Vec<u16>, echoes: Vec<(u16, bool)>, marked: bool, marks: u16, packets: u16 },
    Loss { age: u64 },
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let evs = || 0..EVS + 3;
    let echoes = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec((evs(), prop::bool::weighted(0.2)), 1..15),
    ];
    let ack = (prop::collection::vec(evs(), 1..30), echoes, prop::bool::weighted(0.2), 0u16..4, 1u16..40);
    prop_oneof![
        6 => (1u8..30).prop_map(Step::Send),
        6 => ack.prop_map(|(settled, echoes, marked, marks, packets)| Step::Ack { settled, echoes, marked, marks, packets }),
        2 => (0u64..40).prop_map(|age| Step::Loss { age }),
        1 => prop_oneof![1u64..40, 900u64..1200].prop_map(Step::Wait),
    ]
}

proptest! {
    #[test]
    fn any_history_is_as_the_clauses_say(
        steps in prop::collection::vec(step(), 1..120),
        (depth, futile) in (1u64..=20, 0u64..3),
    ) {
        let mut rig = Rig::new(|config| (config.buffer, config.futile_losses) = (depth as u8, futile as u8));
        let mut twin = Twin {
            depth: depth as usize, futile, valid: VecDeque::new(), slots: Vec::new(), written: 0, walked: 0, explore: 0,
            frozen: false, immune: false, since: 0, end: 0, losses: 0, phase: rig.plus.state.phase,
        };
        let mut tick = 100;
        for step in steps {
            match step {
                Step::Send(count) => for _ in 0..count {
                    prop_assert_eq!(rig.send(), twin.next_ev());
                },
                Step::Ack { settled, echoes, marked, marks, packets } => {
                    let ack = info(*settled.last().unwrap(), marked, packets, (marks + u16::from(marked)).min(packets));
                    settled.iter().for_each(|&ev| rig.plus.on_packet_acked(tick * TICK_PS, &packet(ev)));
                    echoes.iter().for_each(|&(ev, marked)| rig.plus.on_echo(tick * TICK_PS, Ev::new(ev), marked));
                    rig.plus.on_ack(tick * TICK_PS, &ack, &mut rig.log);
                    twin.on_ack(tick, &settled, &echoes, &ack);
                }
                Step::Loss { age } => {
                    rig.lose(tick * TICK_PS, (tick - age) * TICK_PS);
                    twin.on_loss(tick, tick - age);
                }
                Step::Wait(ticks) => tick += ticks,
            }
            let seen = (rig.plus.is_frozen(), rig.plus.is_immune(), usize::from(rig.plus.valid_evs()));
            prop_assert_eq!(seen, (twin.frozen, twin.immune, twin.valid.len()));
        }
    }

    /// With an ACK per packet, and exploring at random, it is REPS until something fails.
    //= docs/specs/reps-plus.md#RPP-3 how many candidates count
    #[test]
    fn with_an_ack_per_packet_it_is_reps(
        steps in prop::collection::vec((any::<bool>(), 0..EVS, prop::bool::weighted(0.3)), 1..300),
        seed: u64,
    ) {
        let config = config(|config| (config.buffer, config.even_exploring) = (8, false));
        let (mut plus, mut reps) = (make(&config, &mut rng::stream(1, 1)), Reps::make(&RepsConfig::default(), &config, &mut rng::stream(1, 1)));
        let (mut ours, mut theirs) = (rng::stream(seed, 0), rng::stream(seed, 0));
        for (sends, ev, marked) in steps {
            if sends {
                let (ours, theirs) = (&mut ours, &mut theirs);
                prop_assert_eq!(plus.next_ev(0, &SendInfo::default(), ours), reps.next_ev(0, &SendInfo::default(), theirs));
                continue;
            }
            // Settled along with it, for want of an ACK that was lost.
            plus.on_packet_acked(0, &packet(ev / 2));
            plus.on_packet_acked(0, &packet(ev));
            let ack = info(ev, marked, 1, u16::from(marked));
            plus.on_ack(0, &ack, &mut ());
            reps.on_ack(0, &ack, &mut ());
        }
    }
}
