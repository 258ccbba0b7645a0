//! Tests of path choice; clauses are those of `docs/specs/reps.md`.

mod closed_loop;
mod freezing;
mod histories;
mod model;
mod names;
mod variants;

use std::string::ToString;
use std::vec::Vec;

use super::suspicion::TICK_SHIFT;
use super::*;
use crate::Time;
use crate::event::{Event, FreezeReason};
use crate::rng::{self, Rng};
use crate::tests::{Setup, at, at_step};
use crate::units::{Micros, Ratio};

/// A unit of time.
const TICK_PS: u64 = 1_000_000;
const BASE_RTT_PS: u64 = 8_337_000;
const FREEZING_TIMEOUT: Micros = Micros::from_ps(10 * TICK_PS);
const FROZEN_BY_TIMEOUT: Event = Event::FreezeEntered { reason: FreezeReason::Loss(LossCause::Timeout) };

fn config(balancer: BalancerKind) -> Setup {
    Setup { trimming: true, ..Setup::new(balancer, BASE_RTT_PS, 100) }
}

fn reps_config(change: impl FnOnce(&mut RepsConfig)) -> Setup {
    let mut reps = RepsConfig { freezing_timeout_us: Some(FREEZING_TIMEOUT), ..RepsConfig::default() };
    change(&mut reps);
    Setup { balancer: BalancerConfig::Reps(reps), ..config(BalancerKind::Reps) }
}

/// Returns settings of REPS under another of its names.
fn reps_named(kind: BalancerKind, change: impl FnOnce(&mut RepsConfig)) -> Setup {
    let config = reps_config(change);
    let schemes = Schemes { reps: *own(&config), ..Schemes::default() };
    Setup { balancer: kind.config(&schemes), ..config }
}

fn own(config: &Setup) -> &RepsConfig {
    let BalancerConfig::Reps(reps) = &config.balancer else { panic!("{:?} is not REPS", config.balancer) };
    reps
}

fn answer(ev: u16, marked: bool) -> ProbeInfo {
    ProbeInfo { ev: Ev::new(ev), marked, rtt_ps: BASE_RTT_PS }
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
    LossInfo { ev: Ev::new(ev), bytes: 4150, cause, max_before_timeout_ps: BASE_RTT_PS, ..LossInfo::default() }
}

const PACKET: SendInfo =
    SendInfo { psn: 0, bytes: 4150, retransmit: false, in_flight_bytes: 0, unacked_packets: 0, unsent_bytes: 1 << 20 };

/// A balancer with a random number generator and a log, driven by short calls.
struct Rig {
    path: Path,
    reps: Reps,
    rng: Rng,
    log: Vec<(Time, Event)>,
}

impl Rig {
    fn new(config: &Setup) -> Self {
        let mut rng = rng::stream(1, 2);
        let path = config.path();
        Self { reps: Reps::make(own(config), &path, &mut rng), path, rng, log: Vec::new() }
    }

    fn paper() -> Self {
        Self::new(&reps_config(|_| ()))
    }

    fn acks(mut self, evs: &[u16]) -> Self {
        evs.iter().for_each(|&ev| self.ack(0, ev, false));
        self
    }

    fn ack(&mut self, now_ps: u64, ev: u16, marked: bool) {
        self.reps.on_ack(self.path.at_ps(now_ps), &ack(ev, marked), &mut self.log);
    }

    fn loss(&mut self, now_ps: u64, loss: LossInfo) {
        self.reps.on_loss(self.path.at_ps(now_ps), &loss, &mut self.log);
    }

    fn timeout(&mut self, now_ps: u64) {
        self.loss(now_ps, loss(99, LossCause::Timeout));
    }

    /// Returns the next EVs, or `None` for those drawn at random.
    fn sends(&mut self, count: usize) -> Vec<Option<u16>> {
        (0..count).map(|_| self.send()).collect()
    }

    fn send(&mut self) -> Option<u16> {
        let before = self.rng.clone();
        let ev = self.reps.next_ev(self.path.at_ps(0), &PACKET, &mut self.rng);
        (before == self.rng).then_some(ev.index())
    }
}

#[test]
fn state_fits_the_papers_table() {
    //= docs/specs/reps.md#REPS-1a bytes of state
    assert_eq!(Reps::STATE_BYTES, 24);
}

#[test]
fn ecmp_keeps_its_initial_ev() {
    //= docs/specs/reps.md#REPS-21 ECMP
    let (mut rng, path) = (rng::stream(3, 0), config(BalancerKind::Ecmp).path());
    let mut ecmp = AnyBalancer::new(&BalancerKind::Ecmp.into(), &path, &mut rng);
    let first = ecmp.next_ev(path.at_ps(0), &PACKET, &mut rng);
    ecmp.on_loss(path.at_ps(1_000), &loss(first.index(), LossCause::Timeout), &mut ());
    ecmp.on_ack(path.at_ps(2_000), &ack(first.index(), true), &mut ());
    assert!((0..100).all(|_| ecmp.next_ev(path.at_ps(3_000), &PACKET, &mut rng) == first));
    let others = (0..8).map(|stream| Ecmp::make(&NoSettings {}, &path, &mut rng::stream(3, stream)));
    assert!(others.map(|mut other| other.next_ev(path.at_ps(0), &PACKET, &mut rng)).any(|ev| ev != first));
    let seeded = |seed, stream| {
        let path = Path { seed: Some(seed), ..path };
        let mut ecmp = Ecmp::make(&NoSettings {}, &path, &mut rng::stream(3, stream));
        ecmp.next_ev(path.at_ps(0), &PACKET, &mut rng::stream(0, 0))
    };
    assert_eq!(seeded(9, 0), seeded(9, 1), "only the connection's seed decides");
    assert!((10..18).any(|seed| seeded(seed, 0) != seeded(9, 0)));
}

#[test]
fn ops_draws_evenly() {
    //= docs/specs/reps.md#REPS-22 OPS
    let (mut rng, path) = (rng::stream(4, 0), Path { evs: 16, ..config(BalancerKind::Ops).path() });
    let mut ops = Ops::make(&NoSettings {}, &path, &mut rng);
    let mut counts = [0u32; 16];
    (0..16_000).for_each(|_| counts[usize::from(ops.next_ev(path.at_ps(0), &PACKET, &mut rng).index())] += 1);
    assert!(counts.iter().all(|&count| (850..1150).contains(&count)), "{counts:?}");
}

#[test]
fn a_new_connection_explores_until_an_unmarked_ack() {
    //= docs/specs/reps.md#REPS-1 variables
    //= docs/specs/reps.md#REPS-2 marked ACKs
    //= docs/specs/reps.md#REPS-5 exploration
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
    let mut rig = Rig::new(&Setup { evs: 32, ..reps_config(|_| ()) }).acks(&[32, 65_535, 31]);
    assert_eq!(rig.reps.cached_evs(), [31].map(Ev::new));
    assert_eq!(rig.sends(2), [Some(31), None]);
}
