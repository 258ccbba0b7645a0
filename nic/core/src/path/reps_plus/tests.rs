//! The clauses of `docs/specs/reps-plus.md`: as tables, against REPS, and against a literal twin
//! over random histories.

mod freezing;
mod histories;
mod history;

use std::vec::Vec;

use super::*;
use crate::event::{Event, FreezeReason};
use crate::path::suspicion::TICK_SHIFT;
use crate::path::{BalancerConfig, Reps, RepsConfig, Transmission};
use crate::rng::{self, Rng};
use crate::tests::{Given, at};

const RTT_PS: u64 = 8_000_000;
/// Time that probes may take where round trips are not longer than without queues: five quarters of
/// 8 us are 9 whole ticks, and one more.
const WAIT_PS: u64 = 10 << TICK_SHIFT;
/// Time between two steps.
const STEP_PS: u64 = WAIT_PS / 3;

/// This number of steps later; each takes whole units of time.
fn steps(from: Time, count: u64) -> Time {
    (0..count).fold(from, |at, _| at.after(STEP_PS))
}
const EVS: u16 = 1000;
const BDP: u16 = 5;

fn config(change: impl FnOnce(&mut RepsPlusConfig)) -> Given {
    let mut own = RepsPlusConfig::default();
    change(&mut own);
    Given { trimming: true, evs: EVS, ..Given::new(BalancerConfig::RepsPlus(own), RTT_PS, u32::from(BDP)) }
}

fn make(config: &Given, rng: &mut Rng) -> RepsPlus {
    let BalancerConfig::RepsPlus(own) = &config.balancer else { panic!("{:?} is not reps-plus", config.balancer) };
    RepsPlus::make(own, &config.path(), rng)
}

fn info(ev: u16, marked: bool, packets: u16, marked_packets: u16) -> AckInfo {
    AckInfo { ev: Ev::new(ev), marked, packets, marked_packets, ..AckInfo::default() }
}

fn packet(ev: u16) -> PacketInfo {
    PacketInfo { psn: 0, ev: Ev::new(ev), bytes: 4150, sent_at: Time::ZERO, was_lost: false, reported: true }
}

fn lost(ev: u16) -> LossInfo {
    LossInfo { ev: Ev::new(ev), cause: LossCause::SackGap, ..LossInfo::default() }
}

/// A balancer with a generator and a log.
struct Rig {
    path: Path,
    plus: RepsPlus,
    /// Whether a packet goes again.
    retransmit: bool,
    rng: Rng,
    log: Vec<(Time, Event)>,
}

impl Rig {
    fn new(change: impl FnOnce(&mut RepsPlusConfig)) -> Self {
        let mut rng = rng::stream(1, 2);
        let config = config(change);
        let (path, plus) = (config.path(), make(&config, &mut rng));
        Self { path, plus, retransmit: false, rng, log: Vec::new() }
    }

    /// An ACK of the packets with these values, the last of which triggered it.
    fn ack(&mut self, now_ps: u64, evs: &[u16], marked: bool, marked_packets: u16) {
        evs.iter().for_each(|&ev| {
            self.plus.on_packet_acked(self.path.at_ps(now_ps), &PacketInfo { sent_at: at(now_ps), ..packet(ev) });
        });
        let ev = *evs.last().unwrap();
        self.plus.on_ack(self.path.at_ps(now_ps), &info(ev, marked, evs.len() as u16, marked_packets), &mut self.log);
    }

    fn lose(&mut self, now_ps: u64, ev: u16) {
        self.plus.on_loss(self.path.at_ps(now_ps), &lost(ev), &mut self.log);
    }

    /// An ACK, marked so that nothing is cached, of a packet sent at `sent`.
    fn news(&mut self, now: Time, sent: Time) {
        let ack = AckInfo { rtt_ps: now.since(sent), ..info(0, true, 1, 1) };
        self.plus.on_ack(self.path.at(now), &ack, &mut self.log);
    }

    fn answer(&mut self, now_ps: u64, ev: u16) {
        let answer = ProbeInfo { ev: Ev::new(ev), marked: true, rtt_ps: RTT_PS };
        self.plus.on_probe_ack(self.path.at_ps(now_ps), &answer, &mut self.log);
    }

    /// Sends every probe that is due by `until`, each in time.
    fn probes(&mut self, until: Time) -> Vec<(Time, u16)> {
        let mut sent = Vec::new();
        while let Some(at) = self.plus.poll_timeout(&self.path).filter(|at| *at <= until) {
            sent.extend(self.plus.poll_probe(self.path.at(at)).map(|ev| (at, ev.index())));
            assert_eq!(self.plus.poll_trailer(self.path.at(at), &Flight::default()), None);
        }
        sent
    }

    /// Loses a packet with `ev` and freezes for it. Returns when.
    fn freeze(&mut self, now_ps: u64, ev: u16) -> u64 {
        self.lose(now_ps, ev);
        self.probes(at(now_ps + 9 * RTT_PS));
        let verdict_ps = now_ps + 10 * RTT_PS;
        self.news(at(verdict_ps), at(verdict_ps - RTT_PS));
        assert!(self.plus.is_frozen());
        verdict_ps
    }

    /// Answers each probe at once, until freezing ends. Returns how many it took.
    fn thaw(&mut self, ev: u16) -> usize {
        let mut answered = 0;
        while self.plus.is_frozen() {
            let now = self.plus.poll_timeout(&self.path).unwrap();
            if self.plus.poll_probe(self.path.at(now)).is_some() {
                self.answer(now.ps(), ev);
                answered += 1;
            }
        }
        answered
    }

    fn send(&mut self) -> u16 {
        let packet = SendInfo { retransmit: self.retransmit, ..SendInfo::default() };
        self.plus.next_ev(self.path.at_ps(0), &packet, &mut self.rng).index()
    }

    /// How many of nine packets go over values 1 to 3.
    fn reuses(&mut self) -> usize {
        (0..9).filter(|_| (1..=3).contains(&self.send())).count()
    }

    /// What is sent from the cache.
    fn cached(&mut self) -> Vec<u16> {
        (0..self.plus.valid_evs()).map(|_| self.send()).collect()
    }
}

/// (values settled, the last triggered it; packets that it stands for; its mark; marked packets;
/// what is cached)
type Vouched = (&'static [u16], u16, bool, u16, &'static [u16]);

//= docs/specs/reps-plus.md#RPP-1 caching the trigger's EV
//= docs/specs/reps-plus.md#RPP-2 candidates
//= docs/specs/reps-plus.md#RPP-3 number of cached candidates
#[test]
fn an_ack_vouches_for_the_packets_it_stands_for() {
    let table: [Vouched; 10] = [
        (&[1, 2, 3, 4], 4, false, 0, &[1, 2, 3, 4]),
        // Its own mark excludes its own value only. It does not say which others were marked.
        (&[1, 2, 3, 4], 4, true, 1, &[1, 2, 3]),
        (&[1, 2, 3, 4], 4, false, 1, &[4]),
        (&[1, 2, 3, 4], 4, true, 2, &[]),
        (&[1, 2, 3, 4], 4, true, 4, &[]),
        // One counts for itself alone, as in REPS, regardless of lost ACKs that it replaces.
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
        settled.iter().for_each(|&ev| rig.plus.on_packet_acked(rig.path.at_ps(0), &packet(ev)));
        rig.plus.on_ack(
            rig.path.at_ps(0),
            &info(*settled.last().unwrap(), marked, packets, marked_packets),
            &mut rig.log,
        );
        assert_eq!(rig.cached(), cached, "{settled:?} {packets} {marked} {marked_packets}");
    }
}

//= docs/specs/reps-plus.md#RPP-4 several EVs in an ACK
#[test]
fn echoes_take_the_place_of_records() {
    let mut rig = Rig::new(|_| ());
    (1..=4).for_each(|ev| rig.plus.on_packet_acked(rig.path.at_ps(0), &packet(ev)));
    for (ev, marked) in [(7, false), (8, true), (9, false), (EVS, false)] {
        rig.plus.on_echo(rig.path.at_ps(0), Ev::new(ev), marked);
    }
    rig.plus.on_ack(rig.path.at_ps(0), &info(10, false, 4, 3), &mut rig.log);
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

//= docs/specs/reps-plus.md#RPP-8 even exploration
#[test]
fn exploring_is_even() {
    for evs in [8u16, 32, 100, 256, 4096] {
        let config = Given { evs, ..config(|_| ()) };
        let mut rng = rng::stream(3, 4);
        let (mut plus, path) = (make(&config, &mut rng), config.path());
        let mut counts = std::vec![0u32; usize::from(evs)];
        for _ in 0..u32::from(evs) * 3 {
            counts[usize::from(plus.next_ev(path.at_ps(0), &SendInfo::default(), &mut rng).index())] += 1;
        }
        let (least, most) = (*counts.iter().min().unwrap(), *counts.iter().max().unwrap());
        assert!(least >= 1 && most <= 5, "{evs}: {least} to {most}");
    }
}

//= docs/specs/reps-plus.md#RPP-9 start of exploration
#[test]
fn connections_begin_exploring_at_places_of_their_own() {
    let first = |seed| {
        let config = Given { seed: Some(seed), ..config(|_| ()) };
        let mut plus = make(&config, &mut rng::stream(9, 9));
        plus.next_ev(config.path().at_ps(0), &SendInfo::default(), &mut rng::stream(5, 5)).index()
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
    let slow = |ev| PacketInfo { sent_at: Time::ZERO, ..packet(ev) };
    let fast = |ev| PacketInfo { sent_at: Time::ZERO.next(), ..packet(ev) };
    let now_ps = 4 * RTT_PS;
    let mut rig = Rig::new(|_| ());
    [fast(1), slow(2), fast(3), slow(4)]
        .iter()
        .for_each(|packet| rig.plus.on_packet_acked(rig.path.at_ps(now_ps), packet));
    let ack = AckInfo { rtt_ps: now_ps, ..info(4, false, 4, 0) };
    rig.plus.on_ack(rig.path.at_ps(now_ps), &ack, &mut rig.log);
    assert_eq!(rig.cached(), [1, 3]);
    // With echoes the record decides.
    [fast(1), slow(2), fast(3), fast(4)]
        .iter()
        .for_each(|packet| rig.plus.on_packet_acked(rig.path.at_ps(now_ps), packet));
    (1..4).for_each(|ev| rig.plus.on_echo(rig.path.at_ps(now_ps), Ev::new(ev), false));
    rig.plus.on_ack(rig.path.at_ps(now_ps), &AckInfo { rtt_ps: now_ps - 1, ..ack }, &mut rig.log);
    assert_eq!(rig.cached(), [1, 3, 4]);
    rig.ack(now_ps, &[2, 4], false, 0);
    assert_eq!(rig.cached(), [2, 4], "the next ACK knows nothing of them");
}

//= docs/specs/reps-plus.md#RPP-17 slow paths
#[test]
fn values_of_a_slow_path_are_cached_less_often() {
    let mut rig = Rig::new(|own| own.buffer = 16);
    let path = Path { slow_rtt_ps: 2 * RTT_PS, ..rig.path };
    rig.path = path;
    for (rtt_ps, of_12) in
        [(2 * RTT_PS, 12), (5 * RTT_PS / 2, 7), (3 * RTT_PS, 4), (4 * RTT_PS - 1, 0), (4 * RTT_PS, 0)]
    {
        // An ACK alone, and one for a packet that the sender has a record of.
        for is_recorded in [false, true] {
            let mut cached = 0;
            for ev in 0..1_200u16 {
                let before = rig.plus.state.valid;
                let now = path.at_ps(rtt_ps);
                if is_recorded {
                    rig.plus.on_packet_acked(now, &PacketInfo { sent_at: Time::ZERO, ..packet(ev % 64) });
                }
                let ack = AckInfo { rtt_ps, ..info(ev % 64, false, 1, 0) };
                rig.plus.on_ack(now, &ack, &mut rig.log);
                cached += u32::from(rig.plus.state.valid > before);
                rig.plus.state.valid = 0;
            }
            assert!(cached.abs_diff(of_12 * 100) <= 24, "{rtt_ps} {is_recorded}: {cached}");
        }
    }
}

/// An ACK that reports no packet settles some, and vouches for none: neither it nor the next.
//= docs/specs/reps-plus.md#RPP-2 candidates
#[test]
fn what_an_ack_without_a_report_settles_is_no_candidate() {
    let mut rig = Rig::new(|_| ());
    (1..=4).for_each(|ev| rig.plus.on_packet_acked(rig.path.at_ps(0), &PacketInfo { reported: false, ..packet(ev) }));
    rig.plus.on_ack(rig.path.at_ps(0), &info(10, false, 4, 0), &mut rig.log);
    assert_eq!(rig.cached(), [10]);
}

//= docs/specs/reps-plus.md#RPP-8 even exploration
#[test]
fn exploring_takes_the_paths_that_it_is_told_in_turn() {
    let mut rig = Rig::new(|_| ());
    let told = [700, 20, 3, 41, EVS];
    rig.plus.on_reachable(rig.path.at_ps(0), &told.map(|ev| [Ev::new(ev); 8]));
    let turns: Vec<u16> = (0..8).map(|_| rig.send()).collect();
    assert_eq!(turns[..4], turns[4..], "each in its turn");
    let mut turn = turns[..4].to_vec();
    turn.sort_unstable();
    assert_eq!(turn, [3, 20, 41, 700], "none beyond the set");
    // Every round takes another value of each path, in another order.
    let all = [[1, 2, 3, 4, 5, 6, 7, 8], [11, 12, 13, 14, 15, 16, 17, 18]].map(|path| path.map(Ev::new));
    rig.plus.on_reachable(rig.path.at_ps(0), &all);
    // From the beginning of a round.
    rig.plus.state.phase = 0;
    let mut turns: Vec<u16> = (0..16).map(|_| rig.send()).collect();
    let orders: Vec<bool> = turns.chunks(2).map(|round| round[0] > 10).collect();
    assert!(turns.chunks(2).all(|round| (round[0] > 10) != (round[1] > 10)), "{turns:?}");
    assert!(orders.contains(&true) && orders.contains(&false), "{turns:?}");
    turns.sort_unstable();
    assert_eq!(turns, all.as_flattened().iter().map(|ev| ev.index()).collect::<Vec<_>>());
    let mut rig = Rig::new(|config| config.known_paths = false);
    rig.plus.on_reachable(rig.path.at_ps(0), &told.map(|ev| [Ev::new(ev); 8]));
    assert!((0..8).any(|_| !told.contains(&rig.send())));
}

//= docs/specs/reps-plus.md#RPP-16 requests for a packet
#[test]
fn it_asks_for_the_oldest_packet_when_its_ack_is_overdue() {
    let mut rig = Rig::new(|_| ());
    assert_eq!(rig.plus.poll_timeout(&rig.path), None, "nothing was sent");
    rig.send();
    let after_ps = RTT_PS + RTT_PS / 4;
    assert_eq!(rig.plus.poll_timeout(&rig.path), Some(at(after_ps)));
    let ask = |rig: &mut Rig, now_ps, oldest: Option<(u64, u64)>, rtt_ps, window_bytes| {
        let oldest = oldest.map(|(psn, sent_ps)| Transmission { psn, ev: Ev::new(5), sent_at: at(sent_ps) });
        rig.plus.poll_trailer(rig.path.at_ps(now_ps), &Flight { oldest, newest_psn: 9, rtt_ps, window_bytes })
    };
    let wide = 2 * u64::from(rig.path.packet_bytes);
    assert_eq!(ask(&mut rig, after_ps - 1, Some((0, 0)), 0, wide), None);
    // By then it was acknowledged, and another is the oldest.
    assert_eq!(ask(&mut rig, after_ps, Some((3, RTT_PS)), 0, wide), None);
    assert_eq!(rig.plus.poll_timeout(&rig.path), Some(at(RTT_PS + after_ps)));
    let trailer = ask(&mut rig, RTT_PS + after_ps, Some((3, RTT_PS)), 0, wide).unwrap();
    assert_eq!((trailer.psn, trailer.ev, trailer.ack_now), (3, Ev::new(5), true));
    assert_eq!(trailer.section.get(), Some((1, 0)), "of this packet alone");
    assert_eq!(rig.plus.poll_timeout(&rig.path), Some(at(RTT_PS + 2 * after_ps)), "once in that time");
    assert_eq!(ask(&mut rig, RTT_PS + 2 * after_ps, None, 0, wide), None);
    assert_eq!(rig.plus.poll_timeout(&rig.path), None, "nothing is in flight");
    // Where packets wait in queues, their ACKs are not overdue before.
    rig.send();
    let due_ps = 5 * RTT_PS;
    assert_eq!(ask(&mut rig, due_ps - 1, Some((4, 0)), 4 * RTT_PS, wide), None);
    assert_eq!(rig.plus.poll_timeout(&rig.path), Some(at(due_ps)));
    assert_eq!(ask(&mut rig, due_ps, Some((4, 0)), 4 * RTT_PS, wide - 1), None, "the network has no room");
    let again = |rig: &mut Rig, now_ps| {
        let trailer = ask(rig, now_ps, Some((4, 0)), 4 * RTT_PS, wide).unwrap();
        (trailer.ev.index(), trailer.psn, trailer.section.get().unwrap().1)
    };
    assert_eq!(again(&mut rig, 2 * due_ps), (5, 4, 0), "no other is known");
    rig.ack(0, &[7, 8], false, 0);
    assert_eq!(again(&mut rig, 3 * due_ps), (8, 9, 5), "its own path may have failed, with all that it carried");
    let late = ask(&mut rig, 4 * due_ps, Some((5, 2 * due_ps + 1_000)), 4 * RTT_PS, wide).unwrap();
    assert_eq!(late.ev, Ev::new(5), "it is not twice as old yet");
}

//= docs/specs/reps-plus.md#RPP-15 bytes of state
#[test]
fn its_state_is_a_cache_line() {
    assert_eq!(RepsPlus::STATE_BYTES, 64);
}
