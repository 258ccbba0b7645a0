//! Balancers in a closed loop over a few modelled paths: the claims of the REPS paper, end to end.
//!
//! One packet is sent per slot of time, if the congestion control permits. Every path is a queue
//! that
//! serves one packet per number of slots, marks above a threshold and may fail. Acknowledgements
//! return
//! after the queue and a fixed delay, losses after a timeout.

use std::vec::Vec;

use rand_core::RngCore;

use crate::Time;
use crate::cc::{AnyCc, CcKind, CongestionControl};
use crate::event::Event;
use crate::now;
use crate::path::{
    AckInfo, AnyBalancer, Balancer, BalancerKind, Ev, LossCause, LossInfo, RepsConfig, Schemes, SendInfo,
};
use crate::rng;
use crate::tests::agenda::Agenda;
use crate::tests::at;
use crate::units::Micros;

const PATHS: usize = 8;
const SLOT_PS: u64 = 1 << 20;
const PACKET_BYTES: u32 = 4150;
const DELAY_SLOTS: u64 = 40;
const TIMEOUT_SLOTS: u64 = 200;
const FREEZING_SLOTS: u64 = 2000;
const MARK_ABOVE: u64 = 4;

#[derive(Clone, Copy)]
struct Path {
    slots_per_packet: u64,
    free_at: u64,
    packets: u64,
    longest_wait: u64,
    failed: bool,
}

enum Feedback {
    Ack { ev: Ev, marked: bool },
    Loss { ev: Ev },
}

struct Fabric {
    path: now::Path,
    balancer: AnyBalancer,
    cc: AnyCc,
    in_flight: u64,
    rng: rng::Rng,
    paths: [Path; PATHS],
    salt: u64,
    slot: u64,
    feedback: Agenda<Feedback>,
    log: Vec<(Time, Event)>,
}

impl Fabric {
    fn new(kind: BalancerKind, cc: CcKind, seed: u64) -> Self {
        let mut rng = rng::stream(seed, 0);
        let freezing_timeout_us = Some(Micros::from_ps(FREEZING_SLOTS * SLOT_PS));
        let reps = RepsConfig { freezing_timeout_us, ..RepsConfig::default() };
        let balancer = kind.config(&Schemes { reps, ..Schemes::default() });
        let lane = Path { slots_per_packet: 6, free_at: 0, packets: 0, longest_wait: 0, failed: false };
        // The sender's link carries one packet per slot.
        let link_bps = u64::from(PACKET_BYTES) * 8 * 1_000_000_000_000 / SLOT_PS;
        let known = now::Path::new((DELAY_SLOTS + 6) * SLOT_PS, link_bps, PACKET_BYTES);
        let mut path = now::Path { trimming: true, bdp_packets: DELAY_SLOTS as u32, ..known };
        if cc == CcKind::FixedRate {
            path.max_window_bytes = u64::MAX;
        }
        Self {
            balancer: AnyBalancer::new(&balancer, &path, &mut rng),
            cc: AnyCc::new(&cc.into(), &path),
            path,
            in_flight: 0,
            salt: rng.next_u64() | 1,
            rng,
            paths: [lane; PATHS],
            slot: 0,
            feedback: Agenda::default(),
            log: Vec::new(),
        }
    }

    /// Sends one packet per slot and returns the number of packets on each path.
    fn run(&mut self, slots: u64) -> [u64; PATHS] {
        let before = self.paths.map(|path| path.packets);
        (0..slots).for_each(|_| self.step());
        let mut counts = self.paths.map(|path| path.packets);
        counts.iter_mut().zip(before).for_each(|(count, before)| *count -= before);
        counts
    }

    fn step(&mut self) {
        let now_ps = self.slot * SLOT_PS;
        while let Some(feedback) = self.feedback.take_due(at(now_ps)) {
            self.take(now_ps, feedback);
        }
        if (self.in_flight + 1) * u64::from(PACKET_BYTES) <= self.cc.window_bytes(&self.path) {
            self.send(now_ps);
        }
        self.slot += 1;
    }

    fn send(&mut self, now_ps: u64) {
        self.in_flight += 1;
        let packet = SendInfo { psn: self.slot, bytes: PACKET_BYTES, retransmit: false, ..SendInfo::default() };
        let ev = self.balancer.next_ev(self.path.at_ps(now_ps), &packet, &mut self.rng);
        let path = &mut self.paths[path_of(ev, self.salt)];
        path.packets += 1;
        let (slot, feedback) = path.carry(self.slot, ev);
        self.feedback.put(at(slot * SLOT_PS), feedback);
    }

    fn take(&mut self, now_ps: u64, feedback: Feedback) {
        self.in_flight -= 1;
        match feedback {
            Feedback::Ack { ev, marked } => {
                let marked_packets = u16::from(marked);
                let ack = AckInfo {
                    ev,
                    marked,
                    packets: 1,
                    marked_packets,
                    bytes: PACKET_BYTES.into(),
                    rtt_ps: 1,
                    hops: 3,
                    ..AckInfo::default()
                };
                self.cc.on_ack(self.path.at_ps(now_ps), &ack);
                self.balancer.on_ack(self.path.at_ps(now_ps), &ack, &mut self.log);
            }
            Feedback::Loss { ev } => {
                let loss = LossInfo { ev, bytes: PACKET_BYTES, cause: LossCause::Timeout, ..LossInfo::default() };
                self.cc.on_loss(self.path.at_ps(now_ps), PACKET_BYTES, loss.cause);
                self.balancer.on_loss(self.path.at_ps(now_ps), &loss, &mut self.log);
            }
        }
    }
}

impl Path {
    fn carry(&mut self, slot: u64, ev: Ev) -> (u64, Feedback) {
        if self.failed {
            return (slot + TIMEOUT_SLOTS, Feedback::Loss { ev });
        }
        let start = self.free_at.max(slot);
        self.free_at = start + self.slots_per_packet;
        self.longest_wait = self.longest_wait.max(start - slot);
        let marked = start - slot > MARK_ABOVE * self.slots_per_packet;
        (self.free_at + DELAY_SLOTS, Feedback::Ack { ev, marked })
    }
}

/// Returns the path that a switch's hash selects.
fn path_of(ev: Ev, salt: u64) -> usize {
    ((u64::from(ev.index()) + 1).wrapping_mul(salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as usize
}

#[test]
fn ecmp_uses_one_path_and_ops_all_alike() {
    //= docs/specs/reps.md#REPS-21 ECMP
    //= docs/specs/reps.md#REPS-22 OPS
    let ecmp = Fabric::new(BalancerKind::Ecmp, CcKind::FixedRate, 1).run(1000);
    assert_eq!(ecmp.iter().filter(|&&count| count > 0).count(), 1);
    let ops = Fabric::new(BalancerKind::Ops, CcKind::FixedRate, 1).run(8000);
    assert!(ops.iter().all(|count| (850..1150).contains(count)), "{ops:?}");
}

#[test]
fn reps_sends_a_slow_path_what_it_can_carry() {
    // REPS §4.3.2: marked paths are not recycled.
    for seed in 0..8 {
        let slow = |kind| {
            let mut fabric = Fabric::new(kind, CcKind::FixedRate, seed);
            fabric.paths[3].slots_per_packet = 12;
            let counts = fabric.run(20_000);
            (counts[3], fabric.paths[3].longest_wait)
        };
        let (ops, reps) = (slow(BalancerKind::Ops), slow(BalancerKind::Reps));
        assert!(reps.0 <= 20_000 / 12 + 50, "seed {seed}: {reps:?}");
        assert!(reps.1 * 8 < ops.1, "seed {seed}: waits {reps:?}, OPS {ops:?}");
    }
}

#[test]
fn reps_leaves_a_failed_path_in_one_timeout_and_returns() {
    // REPS §3.2. The 40 packets that explore afterwards may all miss it: one seed in 200.
    //= docs/specs/reps.md#REPS-8 reuse while frozen
    //= docs/specs/reps.md#REPS-10 freezing on a failure
    //= docs/specs/reps.md#REPS-12 thawing
    let mut found = 0;
    for seed in 0..8 {
        let mut fabric = Fabric::new(BalancerKind::Reps, CcKind::Dctcp, seed);
        fabric.run(2000);
        fabric.paths[5].failed = true;
        let detected = fabric.run(TIMEOUT_SLOTS + 2 * DELAY_SLOTS)[5];
        assert!(detected > 0, "seed {seed}");
        assert!(fabric.log.iter().any(|(_, event)| matches!(event, Event::FreezeEntered { .. })));
        assert_eq!(fabric.run(FREEZING_SLOTS / 2)[5], 0, "seed {seed}: frozen, on working paths");
        fabric.paths[5].failed = false;
        found += u32::from(fabric.run(2 * FREEZING_SLOTS)[5] > 0);
        assert!(fabric.log.iter().any(|(_, event)| *event == Event::FreezeExited), "seed {seed}");
    }
    assert!(found >= 6, "{found} of 8");
}

#[test]
fn reps_loses_far_less_than_ops_to_a_failed_path() {
    // REPS §4.3.3
    for seed in 0..8 {
        let lost = |kind| {
            let mut fabric = Fabric::new(kind, CcKind::Dctcp, seed);
            fabric.run(1000);
            fabric.paths[5].failed = true;
            fabric.run(20_000)[5]
        };
        let (ops, reps) = (lost(BalancerKind::Ops), lost(BalancerKind::Reps));
        assert!(reps * 4 < ops, "seed {seed}: REPS {reps}, OPS {ops}");
    }
}
