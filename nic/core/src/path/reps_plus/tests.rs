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
    PacketInfo { psn: 0, ev: Ev::new(ev), bytes: 4150, sent_ps: 0, was_lost: false, reported: true }
}

fn lost(ev: u16) -> LossInfo {
    LossInfo { ev: Ev::new(ev), cause: LossCause::SackGap, ..LossInfo::default() }
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
        evs.iter().for_each(|&ev| self.plus.on_packet_acked(now_ps, &PacketInfo { sent_ps: now_ps, ..packet(ev) }));
        let ev = *evs.last().unwrap();
        self.plus.on_ack(now_ps, &info(ev, marked, evs.len() as u16, marked_packets), &mut self.log);
    }

    fn lose(&mut self, now_ps: u64, ev: u16) {
        self.plus.on_loss(now_ps, &lost(ev), &mut self.log);
    }

    /// An ACK, marked so that nothing is cached, of a packet sent at `sent_ps`.
    fn news(&mut self, now_ps: u64, sent_ps: u64) {
        let ack = AckInfo { rtt_ps: now_ps - sent_ps, ..info(0, true, 1, 1) };
        self.plus.on_ack(now_ps, &ack, &mut self.log);
    }

    fn answer(&mut self, now_ps: u64, ev: u16) {
        self.plus.on_probe_ack(now_ps, Ev::new(ev), true, &mut self.log);
    }

    /// Sends every probe that is due by `until_ps`, each in time.
    fn probes(&mut self, until_ps: u64) -> Vec<(u64, u16)> {
        let mut sent = Vec::new();
        while let Some(at_ps) = self.plus.poll_timeout().filter(|at_ps| *at_ps <= until_ps) {
            sent.extend(self.plus.poll_probe(at_ps).map(|ev| (at_ps, ev.index())));
            assert_eq!(self.plus.poll_trailer(at_ps, None), None);
        }
        sent
    }

    /// Loses a packet with `ev` and freezes for it. Returns when.
    fn freeze(&mut self, now_ps: u64, ev: u16) -> u64 {
        self.lose(now_ps, ev);
        self.probes(now_ps + 4 * RTT_PS);
        let verdict_ps = now_ps + 10 * RTT_PS;
        self.news(verdict_ps, verdict_ps - RTT_PS);
        assert!(self.plus.is_frozen());
        verdict_ps
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

//= docs/specs/reps-plus.md#RPP-17 slow paths
#[test]
fn the_value_of_a_packet_that_took_four_round_trips_is_not_cached() {
    let slow = |ev| PacketInfo { sent_ps: 0, ..packet(ev) };
    let fast = |ev| PacketInfo { sent_ps: 1, ..packet(ev) };
    let now_ps = 4 * RTT_PS;
    let mut rig = Rig::new(|_| ());
    [fast(1), slow(2), fast(3), slow(4)].iter().for_each(|packet| rig.plus.on_packet_acked(now_ps, packet));
    let ack = AckInfo { rtt_ps: now_ps, ..info(4, false, 4, 0) };
    rig.plus.on_ack(now_ps, &ack, &mut rig.log);
    assert_eq!(rig.cached(), [1, 3]);
    // Of echoes the record tells.
    [fast(1), slow(2), fast(3), fast(4)].iter().for_each(|packet| rig.plus.on_packet_acked(now_ps, packet));
    (1..4).for_each(|ev| rig.plus.on_echo(now_ps, Ev::new(ev), false));
    rig.plus.on_ack(now_ps, &AckInfo { rtt_ps: now_ps - 1, ..ack }, &mut rig.log);
    assert_eq!(rig.cached(), [1, 3, 4]);
    rig.ack(now_ps, &[2, 4], false, 0);
    assert_eq!(rig.cached(), [2, 4], "the next ACK knows nothing of them");
}

/// An ACK that reports no packet settles some, and vouches for none: neither it nor the next.
//= docs/specs/reps-plus.md#RPP-2 candidates
#[test]
fn what_an_ack_without_a_report_settles_is_no_candidate() {
    let mut rig = Rig::new(|_| ());
    (1..=4).for_each(|ev| rig.plus.on_packet_acked(0, &PacketInfo { reported: false, ..packet(ev) }));
    rig.plus.on_ack(0, &info(10, false, 4, 0), &mut rig.log);
    assert_eq!(rig.cached(), [10]);
}

//= docs/specs/reps-plus.md#RPP-8 even exploring
#[test]
fn exploring_takes_the_paths_that_it_is_told_in_turn() {
    let mut rig = Rig::new(|_| ());
    let told = [700, 20, 3, 41, EVS];
    rig.plus.on_reachable(0, &told.map(Ev::new));
    let turns: Vec<u16> = (0..8).map(|_| rig.send()).collect();
    assert_eq!(turns[..4], turns[4..], "each in its turn");
    let mut turn = turns[..4].to_vec();
    turn.sort_unstable();
    assert_eq!(turn, [3, 20, 41, 700], "none beyond the set");
    let mut rig = Rig::new(|config| config.known_paths = false);
    rig.plus.on_reachable(0, &told.map(Ev::new));
    assert!((0..8).any(|_| !told.contains(&rig.send())));
}

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
        rig.plus.on_loss(5, &LossInfo { cause, ..lost(7) }, &mut rig.log);
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
    assert_eq!(rig.plus.poll_timeout(), None, "what follows waits for an ACK");
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
    rig.plus.on_loss(0, &LossInfo { max_rtt_ps: 16 * RTT_PS, ..lost(7) }, &mut rig.log);
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
            let at_ps = rig.plus.poll_timeout().unwrap();
            assert!(rig.plus.poll_probe(at_ps).is_some());
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

//= docs/specs/reps-plus.md#RPP-16 asking for a packet
#[test]
fn it_asks_for_the_oldest_packet_when_its_ack_is_overdue() {
    let mut rig = Rig::new(|_| ());
    assert_eq!(rig.plus.poll_timeout(), None, "nothing was sent");
    rig.send();
    let after_ps = RTT_PS + RTT_PS / 4;
    assert_eq!(rig.plus.poll_timeout(), Some(after_ps));
    let old = |psn, sent_ps| Transmission { psn, ev: Ev::new(5), sent_ps };
    assert_eq!(rig.plus.poll_trailer(after_ps - 1, Some(&old(0, 0))), None);
    // By then it was acknowledged, and another is the oldest.
    assert_eq!(rig.plus.poll_trailer(after_ps, Some(&old(3, RTT_PS))), None);
    assert_eq!(rig.plus.poll_timeout(), Some(RTT_PS + after_ps));
    let trailer = rig.plus.poll_trailer(RTT_PS + after_ps, Some(&old(3, RTT_PS))).unwrap();
    assert_eq!((trailer.psn, trailer.ev, trailer.ack_now), (3, Ev::new(5), true));
    assert_eq!(trailer.section.get(), Some((1, 0)), "of this packet alone");
    assert_eq!(rig.plus.poll_timeout(), Some(RTT_PS + 2 * after_ps), "once in that time");
    assert_eq!(rig.plus.poll_trailer(RTT_PS + 2 * after_ps, None), None);
    assert_eq!(rig.plus.poll_timeout(), None, "nothing is in flight");
    let late = Rig::new(|config| config.early_losses = false).plus;
    assert!(!late.has_sections() && !late.wants_gap_rule());
}

//= docs/specs/reps-plus.md#RPP-15 bytes of state
#[test]
fn its_state_is_a_cache_line() {
    assert_eq!(RepsPlus::STATE_BYTES, 64);
}

/// The clauses, word for word.
struct Twin {
    depth: usize,
    valid: VecDeque<u16>,
    slots: Vec<u16>,
    head: usize,
    explore: u16,
    /// The suspect, how many probes went, and when the next one goes, or the last one counts as unanswered.
    suspect: Option<(u16, u8, u64)>,
    frozen: bool,
    wait: u64,
    end: u64,
    phase: u16,
}

impl Twin {
    fn cache(&mut self, ev: u16) {
        self.valid.push_back(ev);
        if self.valid.len() > self.depth {
            self.valid.pop_front();
        }
        if self.head < self.slots.len() {
            self.slots[self.head] = ev
        } else {
            self.slots.push(ev)
        }
        self.head = (self.head + 1) % self.depth;
    }

    fn forget(&mut self, ev: u16) {
        self.valid.retain(|other| *other != ev);
        let pivot = self.head % self.slots.len().max(1);
        self.slots.rotate_left(pivot);
        self.slots.retain(|other| *other != ev);
        self.head = self.slots.len() % self.depth;
    }

    /// `settled` says of each value whether its packet was slow.
    fn on_ack(&mut self, now: u64, sent: u64, settled: &[(u16, bool)], echoes: &[(u16, bool)], ack: &AckInfo) {
        if self.frozen && now > self.end {
            (self.frozen, self.suspect) = (false, None);
        }
        if let Some((ev, 3, at)) = self.suspect
            && !self.frozen
            && 2 * now >= 2 * at
            && 2 * sent >= 2 * at - self.wait
        {
            self.forget(ev);
            (self.frozen, self.explore, self.end) = (true, 0, now + TIMEOUT_PS);
            self.suspect = Some((ev, 3, now + 8 * self.wait));
        }
        let counts = |(ev, slow): &&(u16, bool)| *slow || *ev < EVS;
        let known: Vec<(u16, bool)> = settled.iter().filter(counts).copied().take(MAX_BUFFER).collect();
        let others: Vec<u16> = if echoes.is_empty() {
            let vouched = ack.packets.saturating_sub(1 + ack.marked_packets.saturating_sub(u16::from(ack.marked)));
            let mut others: Vec<u16> = known.iter().filter(|(_, slow)| !slow).map(|(ev, _)| *ev).collect();
            if let Some(own) = others.iter().position(|&ev| ev == ack.ev.index()) {
                others.remove(own);
            }
            others.into_iter().take(usize::from(vouched)).collect()
        } else {
            let is_good = |(ev, marked): &&(u16, bool)| !marked && *ev < EVS && !known.contains(&(*ev, true));
            let room = MAX_BUFFER - known.iter().filter(|(_, slow)| *slow).count();
            echoes.iter().filter(is_good).map(|(ev, _)| *ev).take(room).collect()
        };
        if ack.packets > 1 {
            others.into_iter().for_each(|ev| self.cache(ev));
        }
        if !ack.marked && now - sent < 4 * RTT_PS && ack.ev.index() < EVS {
            self.cache(ack.ev.index());
        }
    }

    fn on_loss(&mut self, now: u64, ev: u16, max_rtt: u64) {
        if self.suspect.is_none() {
            // Whole ticks, and one more.
            self.wait = ((max_rtt * 9 / 8).max(RTT_PS * 5 / 4) / TICK_PS + 1) * TICK_PS;
            self.suspect = Some((ev, 0, now));
        }
        if self.frozen {
            self.forget(ev);
        }
    }

    fn poll_probe(&mut self, now: u64) -> Option<u16> {
        let (ev, sent, at) = self.suspect?;
        if now < at || (sent == 3 && !self.frozen) {
            return None;
        }
        self.suspect = Some(match (self.frozen, sent) {
            (true, _) => (ev, 3, now + 8 * self.wait),
            (false, 2) => (ev, 3, now + self.wait),
            (false, _) => (ev, sent + 1, now + self.wait / 2),
        });
        Some(ev)
    }

    fn on_answer(&mut self, ev: u16) {
        if self.suspect.is_some_and(|(suspect, ..)| suspect == ev) {
            self.explore = if self.frozen { BDP } else { self.explore };
            (self.frozen, self.suspect) = (false, None);
        }
    }

    fn next_ev(&mut self) -> u16 {
        if self.explore > 0 {
            self.explore -= 1;
        } else if let Some(ev) = self.valid.pop_front() {
            return ev;
        } else if self.suspect.is_some() && !self.slots.is_empty() {
            let at = if self.head < self.slots.len() { self.head } else { 0 };
            self.head = (at + 1) % self.depth;
            return self.slots[at];
        }
        self.phase = self.phase.wrapping_add(GOLDEN);
        (u32::from(self.phase) * u32::from(EVS) / 65_536) as u16
    }
}

const TICK_PS: u64 = 1 << TICK_SHIFT;

#[derive(Clone, Debug)]
enum Step {
    Send(u8),
    Ack { settled: Vec<(u16, bool)>, echoes: Vec<(u16, bool)>, marked: bool, marks: u16, packets: u16, age: u64 },
    Loss { ev: u16, max_rtt: u64 },
    Probe,
    Answer(u16),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    // Few values, so that what is lost, cached and probed is often the same.
    let evs = || prop_oneof![4 => 0..8u16, 1 => 0..EVS + 3];
    let echoes = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec((evs(), prop::bool::weighted(0.2)), 1..15),
    ];
    let ack = (
        prop::collection::vec((evs(), prop::bool::weighted(0.2)), 1..30),
        echoes,
        prop::bool::weighted(0.2),
        0u16..4,
        1u16..40,
        prop_oneof![4 => 0u64..20, 1 => 30u64..34],
    );
    prop_oneof![
        6 => (1u8..30).prop_map(Step::Send),
        6 => ack.prop_map(|(settled, echoes, marked, marks, packets, age)| Step::Ack { settled, echoes, marked, marks, packets, age }),
        2 => (0..8u16, 0u64..40).prop_map(|(ev, max_rtt)| Step::Loss { ev, max_rtt }),
        4 => Just(Step::Probe),
        1 => (0..8u16).prop_map(Step::Answer),
        3 => prop_oneof![8 => 1u64..40, 1 => 900u64..1200].prop_map(Step::Wait),
    ]
}

proptest! {
    #[test]
    fn any_history_is_as_the_clauses_say(steps in prop::collection::vec(step(), 1..120), depth in 1u64..=16) {
        let mut rig = Rig::new(|config| config.buffer = depth as u8);
        let mut twin = Twin {
            depth: depth as usize, valid: VecDeque::new(), slots: Vec::new(), head: 0, explore: 0,
            suspect: None, frozen: false, wait: 0, end: 0, phase: rig.plus.state.phase,
        };
        let mut tick = 100;
        for step in steps {
            let now_ps = tick * TICK_PS;
            match step {
                Step::Send(count) => for _ in 0..count {
                    prop_assert_eq!(rig.send(), twin.next_ev());
                },
                Step::Ack { settled, echoes, marked, marks, packets, age } => {
                    let ack = info(settled.last().unwrap().0, marked, packets, (marks + u16::from(marked)).min(packets));
                    let ack = AckInfo { rtt_ps: age * TICK_PS, ..ack };
                    for &(ev, slow) in &settled {
                        let age_ps = 4 * RTT_PS - u64::from(!slow);
                        rig.plus.on_packet_acked(now_ps, &PacketInfo { sent_ps: now_ps - age_ps, ..packet(ev) });
                    }
                    echoes.iter().for_each(|&(ev, marked)| rig.plus.on_echo(now_ps, Ev::new(ev), marked));
                    rig.plus.on_ack(now_ps, &ack, &mut rig.log);
                    twin.on_ack(now_ps, now_ps - age * TICK_PS, &settled, &echoes, &ack);
                }
                Step::Loss { ev, max_rtt } => {
                    let loss = LossInfo { max_rtt_ps: max_rtt * TICK_PS, ..lost(ev) };
                    rig.plus.on_loss(now_ps, &loss, &mut rig.log);
                    twin.on_loss(now_ps, ev, max_rtt * TICK_PS);
                }
                Step::Probe => prop_assert_eq!(rig.plus.poll_probe(now_ps).map(Ev::index), twin.poll_probe(now_ps)),
                Step::Answer(ev) => {
                    rig.answer(now_ps, ev);
                    twin.on_answer(ev);
                }
                Step::Wait(ticks) => tick += ticks,
            }
            let seen = (rig.plus.is_frozen(), rig.plus.suspect().map(Ev::index), usize::from(rig.plus.valid_evs()));
            prop_assert_eq!(seen, (twin.frozen, twin.suspect.map(|(ev, ..)| ev), twin.valid.len()));
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
        let mut plus = make(&config, &mut rng::stream(1, 1));
        let mut reps = Reps::make(&RepsConfig::default(), &config, &mut rng::stream(1, 1));
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
