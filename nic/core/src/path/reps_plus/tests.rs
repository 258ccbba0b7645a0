//! The clauses of `docs/specs/reps-plus.md`: as tables, against REPS, and against a literal model
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
use crate::tests::{Setup, at};

const RTT_PS: u64 = 8_000_000;
/// The time after which a probe counts as lost while round trips are as long as without queues:
/// five quarters of 8 us are 9 whole ticks, plus one.
const WAIT_PS: u64 = 10 << TICK_SHIFT;
/// Time between two steps.
const STEP_PS: u64 = WAIT_PS / 3;

/// Returns the time `count` steps later; each takes whole units of time.
fn steps(from: Time, count: u64) -> Time {
    (0..count).fold(from, |at, _| at.after(STEP_PS))
}
const EVS: u16 = 1000;
const BDP: u16 = 5;

fn config(change: impl FnOnce(&mut RepsPlusConfig)) -> Setup {
    let mut own = RepsPlusConfig::default();
    change(&mut own);
    Setup { trimming: true, evs: EVS, ..Setup::new(BalancerConfig::RepsPlus(own), RTT_PS, u32::from(BDP)) }
}

fn make(config: &Setup, rng: &mut Rng) -> RepsPlus {
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

/// A balancer with a random number generator and a log.
struct Rig {
    path: Path,
    plus: RepsPlus,
    /// Whether the next packet is a retransmission.
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

    /// Processes an ACK of the packets with these values, triggered by the last of them.
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

    /// Processes an ACK of a packet sent at `sent`, marked so that nothing is cached.
    fn marked_ack(&mut self, now: Time, sent: Time) {
        let ack = AckInfo { rtt_ps: now.since(sent), ..info(0, true, 1, 1) };
        self.plus.on_ack(self.path.at(now), &ack, &mut self.log);
    }

    fn answer(&mut self, now_ps: u64, ev: u16) {
        let answer = ProbeInfo { ev: Ev::new(ev), marked: true, rtt_ps: RTT_PS };
        self.plus.on_probe_ack(self.path.at_ps(now_ps), &answer, &mut self.log);
    }

    /// Sends every probe that is due by `until`, each when it is due.
    fn probes(&mut self, until: Time) -> Vec<(Time, u16)> {
        let mut sent = Vec::new();
        while let Some(at) = self.plus.poll_timeout(&self.path).filter(|at| *at <= until) {
            sent.extend(self.plus.poll_probe(self.path.at(at)).map(|ev| (at, ev.index())));
            assert_eq!(self.plus.poll_trailer(self.path.at(at), &Flight::default()), None);
        }
        sent
    }

    /// Loses a packet with `ev` and freezes for it. Returns the time.
    fn freeze(&mut self, now_ps: u64, ev: u16) -> u64 {
        self.lose(now_ps, ev);
        self.probes(at(now_ps + 9 * RTT_PS));
        let verdict_ps = now_ps + 10 * RTT_PS;
        self.marked_ack(at(verdict_ps), at(verdict_ps - RTT_PS));
        assert!(self.plus.is_frozen());
        verdict_ps
    }

    /// Answers each probe at once until freezing ends. Returns their number.
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

    /// Returns how many of nine packets use values 1 to 3.
    fn reuses(&mut self) -> usize {
        (0..9).filter(|_| (1..=3).contains(&self.send())).count()
    }

    /// Returns the values sent from the cache.
    fn cached(&mut self) -> Vec<u16> {
        (0..self.plus.valid_evs()).map(|_| self.send()).collect()
    }
}

/// (values settled, the last of which triggered the ACK; packets that it covers; its mark; marked
/// packets; cached values)
type Covered = (&'static [u16], u16, bool, u16, &'static [u16]);

//= docs/specs/reps-plus.md#RPP-1 caching the trigger's EV
//= docs/specs/reps-plus.md#RPP-2 candidates
//= docs/specs/reps-plus.md#RPP-3 number of cached candidates
#[test]
fn candidates_are_the_packets_that_an_ack_covers() {
    let table: [Covered; 10] = [
        (&[1, 2, 3, 4], 4, false, 0, &[1, 2, 3, 4]),
        // Its mark excludes only its value. It does not state which other packets were marked.
        (&[1, 2, 3, 4], 4, true, 1, &[1, 2, 3]),
        (&[1, 2, 3, 4], 4, false, 1, &[4]),
        (&[1, 2, 3, 4], 4, true, 2, &[]),
        (&[1, 2, 3, 4], 4, true, 4, &[]),
        // A count of one covers only the packet itself, as in REPS, regardless of lost ACKs that it
        // replaces.
        (&[1, 2, 3, 4], 1, false, 0, &[4]),
        (&[1, 2, 3, 4], 2, false, 0, &[1, 4]),
        // Overtaken by another ACK, it settles fewer packets than it covers.
        (&[4], 4, false, 0, &[4]),
        // The triggering packet's value counts once for it, and once for another packet with the
        // same value.
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
fn echoes_replace_records() {
    let mut rig = Rig::new(|_| ());
    (1..=4).for_each(|ev| rig.plus.on_packet_acked(rig.path.at_ps(0), &packet(ev)));
    for (ev, marked) in [(7, false), (8, true), (9, false), (EVS, false)] {
        rig.plus.on_echo(rig.path.at_ps(0), Ev::new(ev), marked);
    }
    rig.plus.on_ack(rig.path.at_ps(0), &info(10, false, 4, 3), &mut rig.log);
    assert_eq!(rig.cached(), [7, 9, 10]);
    rig.ack(0, &[1, 2], false, 0);
    assert_eq!(rig.cached(), [1, 2], "the next ACK has no echoes");
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
        let config = Setup { evs, ..config(|_| ()) };
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
fn connections_start_exploring_at_different_values() {
    let first = |seed| {
        let config = Setup { seed: Some(seed), ..config(|_| ()) };
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
fn values_of_very_slow_packets_are_not_cached() {
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
    // With echoes the records decide which packets were slow.
    [fast(1), slow(2), fast(3), fast(4)]
        .iter()
        .for_each(|packet| rig.plus.on_packet_acked(rig.path.at_ps(now_ps), packet));
    (1..4).for_each(|ev| rig.plus.on_echo(rig.path.at_ps(now_ps), Ev::new(ev), false));
    rig.plus.on_ack(rig.path.at_ps(now_ps), &AckInfo { rtt_ps: now_ps - 1, ..ack }, &mut rig.log);
    assert_eq!(rig.cached(), [1, 3, 4]);
    rig.ack(now_ps, &[2, 4], false, 0);
    assert_eq!(rig.cached(), [2, 4], "they have no effect on the next ACK");
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

/// An ACK that reports no packet settles some but makes none of them a candidate, and neither does
/// the next ACK.
//= docs/specs/reps-plus.md#RPP-2 candidates
#[test]
fn an_ack_without_a_report_yields_no_candidates() {
    let mut rig = Rig::new(|_| ());
    (1..=4).for_each(|ev| rig.plus.on_packet_acked(rig.path.at_ps(0), &PacketInfo { reported: false, ..packet(ev) }));
    rig.plus.on_ack(rig.path.at_ps(0), &info(10, false, 4, 0), &mut rig.log);
    assert_eq!(rig.cached(), [10]);
}

//= docs/specs/reps-plus.md#RPP-8 even exploration
#[test]
fn exploring_takes_turns_over_known_paths() {
    let mut rig = Rig::new(|_| ());
    let paths = [700, 20, 3, 41, EVS];
    rig.plus.on_reachable(rig.path.at_ps(0), &paths.map(|ev| [Ev::new(ev); 8]));
    let turns: Vec<u16> = (0..8).map(|_| rig.send()).collect();
    assert_eq!(turns[..4], turns[4..], "each in its turn");
    let mut turn = turns[..4].to_vec();
    turn.sort_unstable();
    assert_eq!(turn, [3, 20, 41, 700], "values outside the set are ignored");
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
    rig.plus.on_reachable(rig.path.at_ps(0), &paths.map(|ev| [Ev::new(ev); 8]));
    assert!((0..8).any(|_| !paths.contains(&rig.send())));
}

//= docs/specs/reps-plus.md#RPP-16 requests for a packet
#[test]
fn an_overdue_ack_of_the_oldest_packet_is_requested() {
    let mut rig = Rig::new(|_| ());
    assert_eq!(rig.plus.poll_timeout(&rig.path), None, "nothing was sent");
    rig.send();
    let after_ps = RTT_PS + RTT_PS / 4;
    assert_eq!(rig.plus.poll_timeout(&rig.path), Some(at(after_ps)));
    let poll_trailer = |rig: &mut Rig, now_ps, oldest: Option<(u64, u64)>, rtt_ps, window_bytes| {
        let oldest = oldest.map(|(psn, sent_ps)| Transmission { psn, ev: Ev::new(5), sent_at: at(sent_ps) });
        rig.plus.poll_trailer(rig.path.at_ps(now_ps), &Flight { oldest, newest_psn: 9, rtt_ps, window_bytes })
    };
    let wide = 2 * u64::from(rig.path.packet_bytes);
    assert_eq!(poll_trailer(&mut rig, after_ps - 1, Some((0, 0)), 0, wide), None);
    // By then it was acknowledged, and another is the oldest.
    assert_eq!(poll_trailer(&mut rig, after_ps, Some((3, RTT_PS)), 0, wide), None);
    assert_eq!(rig.plus.poll_timeout(&rig.path), Some(at(RTT_PS + after_ps)));
    let trailer = poll_trailer(&mut rig, RTT_PS + after_ps, Some((3, RTT_PS)), 0, wide).unwrap();
    assert_eq!((trailer.psn, trailer.ev, trailer.ack_now), (3, Ev::new(5), true));
    assert_eq!(trailer.section.get(), Some((1, 0)), "it reports only this packet");
    assert_eq!(rig.plus.poll_timeout(&rig.path), Some(at(RTT_PS + 2 * after_ps)), "once in that time");
    assert_eq!(poll_trailer(&mut rig, RTT_PS + 2 * after_ps, None, 0, wide), None);
    assert_eq!(rig.plus.poll_timeout(&rig.path), None, "nothing is in flight");
    // If packets wait in queues, their ACKs are overdue later.
    rig.send();
    let due_ps = 5 * RTT_PS;
    assert_eq!(poll_trailer(&mut rig, due_ps - 1, Some((4, 0)), 4 * RTT_PS, wide), None);
    assert_eq!(rig.plus.poll_timeout(&rig.path), Some(at(due_ps)));
    assert_eq!(poll_trailer(&mut rig, due_ps, Some((4, 0)), 4 * RTT_PS, wide - 1), None, "the network has no room");
    let again = |rig: &mut Rig, now_ps| {
        let trailer = poll_trailer(rig, now_ps, Some((4, 0)), 4 * RTT_PS, wide).unwrap();
        (trailer.ev.index(), trailer.psn, trailer.section.get().unwrap().1)
    };
    assert_eq!(again(&mut rig, 2 * due_ps), (5, 4, 0), "no other value is cached");
    rig.ack(0, &[7, 8], false, 0);
    assert_eq!(again(&mut rig, 3 * due_ps), (8, 9, 5), "the packet's path may have failed, with everything sent on it");
    let late = poll_trailer(&mut rig, 4 * due_ps, Some((5, 2 * due_ps + 1_000)), 4 * RTT_PS, wide).unwrap();
    assert_eq!(late.ev, Ev::new(5), "it is not twice as old yet");
}

//= docs/specs/reps-plus.md#RPP-15 bytes of state
#[test]
fn its_state_is_a_cache_line() {
    assert_eq!(RepsPlus::STATE_BYTES, 64);
}
