mod drains;
mod histories;
mod learned;
mod model;

use super::*;
use crate::path::{BalancerConfig, BalancerKind};
use crate::rng::{Rng, stream};
use crate::tests::{Setup, at, at_step};
use crate::units::{ByteSize, Gbps, Micros, Ratio};
use std::vec::Vec;

/// An eighth of it is both a whole number of time steps and of ticks of 2^10 ps.
const BASE_RTT_PS: u64 = 10_000 << 10;
const BYTES: u32 = 4_160;

fn config(change: impl FnOnce(&mut FlowcutConfig)) -> Setup {
    let mut own = FlowcutConfig { tail_bytes: Some(ByteSize::new(0)), ..FlowcutConfig::default() };
    change(&mut own);
    Setup { seed: Some(5), ..Setup::new(BalancerConfig::Flowcut(own), BASE_RTT_PS, 100) }
}

fn own(config: &Setup) -> &FlowcutConfig {
    let BalancerConfig::Flowcut(own) = &config.balancer else { panic!("{:?} is not Flowcut", config.balancer) };
    own
}

/// A miniature sender: packets are sent in order, and the oldest open one is acknowledged.
#[derive(Clone)]
struct Rig {
    path: Path,
    flowcut: Flowcut,
    rng: Rng,
    now_ps: u64,
    next_psn: u64,
    /// EVs of open packets.
    open: Vec<Ev>,
    unsent_bytes: u64,
}

impl Rig {
    fn new(config: &Setup) -> Self {
        let mut rng = stream(1, 1);
        Self {
            flowcut: Flowcut::make(own(config), &config.path(), &mut rng),
            path: config.path(),
            rng,
            now_ps: 0,
            next_psn: 0,
            open: Vec::new(),
            unsent_bytes: 0,
        }
    }

    fn info(&self) -> SendInfo {
        let unacked_packets = self.open.len() as u64;
        let in_flight_bytes = unacked_packets * u64::from(BYTES);
        SendInfo { psn: self.next_psn, bytes: BYTES, unacked_packets, in_flight_bytes, ..SendInfo::default() }
    }

    /// Returns whether a new packet may be sent.
    fn may(&mut self) -> bool {
        let info = self.info();
        self.flowcut.admit(self.path.at_ps(self.now_ps), &info) != Admission::Wait
    }

    /// Sends a new packet and returns its path; `None` if it is held back.
    fn send(&mut self) -> Option<Ev> {
        let info = self.info();
        let may = self.may();
        may.then(|| {
            let ev = self.flowcut.next_ev(self.path.at_ps(self.now_ps), &info, &mut self.rng);
            self.next_psn += 1;
            self.open.push(ev);
            ev
        })
    }

    fn ack(&mut self, rtt_ps: u64) {
        let ev = self.open.remove(0);
        self.ack_of(ev, rtt_ps, 3);
    }

    fn ack_of(&mut self, ev: Ev, rtt_ps: u64, hops: u8) {
        let unacked_packets = self.open.len() as u64;
        let in_flight_bytes = unacked_packets * u64::from(BYTES);
        let ack = AckInfo {
            ev,
            rtt_ps,
            hops,
            packet_bytes: BYTES,
            packets: 1,
            bytes: BYTES.into(),
            unacked_packets,
            in_flight_bytes,
            unsent_bytes: self.unsent_bytes,
            ..AckInfo::default()
        };
        self.flowcut.on_ack(self.path.at_ps(self.now_ps), &ack, &mut ());
    }

    /// Times out a packet that was sent at `sent_ps`, with another packet in flight.
    fn timeout(&mut self, sent_ps: u64) {
        self.timeout_with(sent_ps, BYTES.into());
    }

    fn timeout_with(&mut self, sent_ps: u64, in_flight_bytes: u64) {
        let ev = self.flowcut.ev();
        let loss = LossInfo { ev, sent_at: at(sent_ps), bytes: BYTES, in_flight_bytes, ..LossInfo::default() };
        self.flowcut.on_loss(self.path.at_ps(self.now_ps), &loss, &mut ());
    }

    /// Fills the path with ten packets and drains it.
    fn drain(&mut self) -> Ev {
        let path = self.flowcut.ev();
        (0..10).for_each(|_| assert_eq!(self.send(), Some(path)));
        while !self.flowcut.is_draining() {
            self.ack(20 * BASE_RTT_PS);
        }
        path
    }
}

//= docs/specs/flowcut.md#FLC-1 one path for a flowcut
//= docs/specs/flowcut.md#FLC-2 the first path
//= docs/specs/flowcut.md#FLC-3 end of a flowcut
#[test]
fn a_path_lasts_until_it_drains() {
    let config = config(|_| ());
    let mut rig = Rig::new(&config);
    let mut ecmp = crate::path::Ecmp::make(&crate::path::NoSettings {}, &rig.path, &mut stream(9, 9));
    let ecmp = ecmp.next_ev(rig.path.at_ps(0), &SendInfo::default(), &mut stream(9, 9));
    let first: Vec<_> = (0..20).map(|_| rig.send()).collect();
    assert!(first.iter().all(|ev| *ev == Some(ecmp)), "the first window uses ECMP's path");
    for _ in 0..100 {
        rig.ack(BASE_RTT_PS);
        assert_eq!(rig.send(), Some(ecmp));
    }
    (0..20).for_each(|_| rig.ack(BASE_RTT_PS));
    assert_eq!(rig.send(), Some(ecmp), "nothing was in flight, and nothing drained");
    rig.drain();
    // An ACK that the balancer does not see may settle the last packet as well.
    rig.open.clear();
    let second = rig.send();
    assert!(second.is_some_and(|second| second != ecmp));
    assert_eq!(rig.send(), second);
}

//= docs/specs/flowcut.md#FLC-4 choice of another path
#[test]
fn a_new_path_differs_from_the_old_one() {
    let mut rig = Rig::new(&Setup { evs: 2, ..config(|_| ()) });
    for _ in 0..50 {
        let before = rig.drain();
        rig.open.clear();
        let after = rig.send().unwrap();
        assert_eq!(before.index() + after.index(), 1);
    }
    let mut one = Rig::new(&Setup { evs: 1, ..config(|_| ()) });
    for _ in 0..5 {
        assert_eq!(one.drain(), Ev::new(0));
        one.open.clear();
    }
}

//= docs/specs/flowcut.md#FLC-20 beginning to drain
//= docs/specs/flowcut.md#FLC-21 end of a drain
//= docs/specs/flowcut.md#FLC-23 retransmissions during a drain
#[test]
fn a_congested_path_drains_and_is_left() {
    let mut rig = Rig::new(&config(|_| ()));
    let old = rig.drain();
    assert!(rig.open.len() > 3 && !rig.may());
    let again = SendInfo { retransmit: true, ..rig.info() };
    assert_eq!(rig.flowcut.admit(rig.path.at_ps(rig.now_ps), &again), Admission::Window);
    assert_eq!(rig.flowcut.next_ev(rig.path.at_ps(rig.now_ps), &again, &mut stream(2, 2)), old);
    while rig.open.len() > 1 {
        rig.ack(BASE_RTT_PS);
        assert!(rig.flowcut.is_draining() && !rig.may());
    }
    rig.ack(BASE_RTT_PS);
    assert!(!rig.flowcut.is_draining());
    assert_ne!(rig.send().unwrap(), old);
}

/// Returns the number of ACKs with one normalised RTT until the path drains, from an average of 1.
fn acks_until_drained(config: &Setup, rtt_ps: u64) -> Option<usize> {
    let mut rig = Rig::new(config);
    (0..400).for_each(|_| assert!(rig.send().is_some()));
    (1..400).find(|_| {
        rig.ack(rtt_ps);
        rig.flowcut.is_draining()
    })
}

//= docs/specs/flowcut.md#FLC-12 average against threshold
//= docs/specs/flowcut.md#FLC-15 A table for each connection
#[test]
fn the_average_exceeds_the_ratio_after_the_computed_count() {
    // 1 + (n - 1)(1 - 0.88^k) > 4 for the first time; the base RTT bounds the unknown minimum.
    for (normalised, expected) in [(5, 11), (6, 8), (10, 4), (20, 2), (4, 0)] {
        let found = acks_until_drained(&config(|own| own.trend = Ratio::default()), normalised * BASE_RTT_PS);
        assert_eq!(found.unwrap_or(0), expected, "{normalised}");
    }
    // At weight 1 one sample decides.
    let at_once = config(|own| (own.trend, own.weight) = (Ratio::default(), Ratio::permille(1_000)));
    assert_eq!(acks_until_drained(&at_once, 4 * BASE_RTT_PS + 20_000), Some(1));
    // If the base RTT is longer, the first sample is the minimum.
    let longer = Setup { base_rtt_ps: 1_000 * BASE_RTT_PS, ..config(|own| own.trend = Ratio::default()) };
    assert_eq!(acks_until_drained(&longer, 50 * BASE_RTT_PS), None);
}

//= docs/specs/flowcut.md#FLC-13 trend against threshold
#[test]
fn fast_growth_drains_before_the_average_does() {
    let grown = |per_ack_permille: u64, trend: u64| {
        let mut rig =
            Rig::new(&config(|own| (own.trend, own.rtt_ratio) = (Ratio::permille(trend), Ratio::permille(1_000_000))));
        (0..300).for_each(|_| assert!(rig.send().is_some()));
        (0..200).find(|count| {
            rig.ack(BASE_RTT_PS + BASE_RTT_PS * per_ack_permille * count / 1_000);
            rig.flowcut.is_draining()
        })
    };
    // g (1 - 0.88^k) > 0.05 for the first time at the k-th difference.
    assert_eq!([grown(49, 50), grown(60, 50), grown(100, 50), grown(500, 50)], [None, Some(15), Some(6), Some(1)]);
    assert_eq!(grown(500, 0), None);
}

//= docs/specs/flowcut.md#FLC-10 least round-trip time
//= docs/specs/flowcut.md#FLC-11 normalised RTT
#[test]
fn hops_and_serialisation_are_distinguished() {
    // 25 Gb/s: 4,160 bytes take 1.33 us a hop.
    let config = config(|own| {
        (own.trend, own.link_rate_gbps) = (Ratio::default(), Some(Gbps::new(25)));
        (own.rtt_ratio, own.weight) = (Ratio::permille(1_500), Ratio::permille(1_000));
    });
    let mut rig = Rig::new(&Setup { base_rtt_ps: 1_000 * BASE_RTT_PS, ..config });
    let path = rig.send().unwrap();
    (0..50).for_each(|_| assert_eq!(rig.send(), Some(path)));
    let mut ack = |hops: u8, bytes: u32, rtt_ps: u64| {
        let ack = AckInfo {
            ev: path,
            rtt_ps,
            hops,
            packet_bytes: bytes,
            packets: 1,
            unacked_packets: 9,
            ..AckInfo::default()
        };
        rig.flowcut.on_ack(rig.path.at_ps(0), &ack, &mut ());
        rig.flowcut.is_draining()
    };
    let (near, far) = (4_000_000, 9_000_000);
    assert!(!ack(1, 64, near) && !ack(3, 64, far) && !ack(3, 64, far));
    // A full packet takes 1.33 us longer at each of three hops, which is no congestion; 1.5 times
    // 13 us is.
    assert!(!ack(3, 4_160, far + 3 * 1_332_000));
    assert!(!ack(12, 64, 3 * far), "more than nine hops count as nine, for which there was no sample");
    assert!(!ack(3, 4_160, 19_300_000) && ack(3, 4_160, 19_600_000));
}

//= docs/specs/flowcut.md#FLC-14 ACKs of other paths
#[test]
fn acks_of_other_paths_change_nothing() {
    let mut rig = Rig::new(&config(|_| ()));
    let path = rig.send().unwrap();
    rig.send();
    (0..100).for_each(|_| rig.ack_of(Ev::new(path.index() ^ 1), 50 * BASE_RTT_PS, 3));
    assert!(!rig.flowcut.is_draining());
}

//= docs/specs/flowcut.md#FLC-40 silent rounds
//= docs/specs/flowcut.md#FLC-41 A dead path
//= docs/specs/flowcut.md#FLC-42 repair
//= docs/specs/flowcut.md#FLC-44 end of repair
#[test]
fn a_silent_path_is_left_and_its_packets_resent_one_by_one() {
    let mut rig = Rig::new(&config(|_| ()));
    let old = rig.drain();
    // Two rounds; only the first timeout of a flight counts.
    for round in 1..=2u64 {
        rig.now_ps = round * 1_000_000;
        (0..5).for_each(|_| rig.timeout((round - 1) * 1_000_000));
    }
    assert!(rig.flowcut.is_draining());
    // An acknowledgement arrives: the count restarts.
    rig.ack_of(old, BASE_RTT_PS, 3);
    for round in 3..=5u64 {
        assert_eq!(rig.flowcut.allowed_bytes(), 0);
        assert!(rig.flowcut.is_draining());
        rig.now_ps = round * 1_000_000;
        rig.timeout((round - 1) * 1_000_000);
    }
    assert_eq!((rig.flowcut.is_draining(), rig.flowcut.allowed_bytes()), (false, 0));
    let again = |in_flight_bytes: u64| SendInfo {
        retransmit: true,
        in_flight_bytes,
        unacked_packets: 4,
        bytes: BYTES,
        ..SendInfo::default()
    };
    let admit = |rig: &mut Rig, in_flight_bytes| rig.flowcut.admit(rig.path.at_ps(rig.now_ps), &again(in_flight_bytes));
    assert_eq!([admit(&mut rig, 1), admit(&mut rig, 0)], [Admission::Wait, Admission::Window]);
    let mut rng = stream(3, 3);
    let new = rig.flowcut.next_ev(rig.path.at_ps(0), &again(0), &mut rng);
    assert_ne!(new, old);
    // Still one at a time, and after the last the path stays.
    assert_eq!([admit(&mut rig, 1), admit(&mut rig, 0)], [Admission::Wait, Admission::Window]);
    rig.open.clear();
    rig.ack_of(new, BASE_RTT_PS, 3);
    assert_eq!([rig.send(), rig.send()], [Some(new), Some(new)]);
}

#[test]
fn a_lone_packet_that_times_out_leaves_its_path() {
    //= docs/specs/flowcut.md#FLC-41 A dead path
    let mut rig = Rig::new(&config(|_| ()));
    let old = rig.send().unwrap();
    rig.now_ps = 500_000;
    rig.ack_of(old, BASE_RTT_PS, 3);
    rig.now_ps = 1_000_000;
    rig.timeout_with(0, 0);
    assert_eq!(rig.flowcut.allowed_bytes(), u64::MAX, "the path acknowledged a packet after this one was sent");
    rig.now_ps = 2_000_000;
    rig.timeout_with(1_000_000, 0);
    assert_eq!(rig.flowcut.allowed_bytes(), 0, "retransmissions only");
    rig.open.clear();
    assert_ne!(rig.send(), Some(old));
    let mut never = Rig::new(&config(|own| own.dead_timeouts = 0));
    let old = never.send().unwrap();
    never.now_ps = 1_000_000;
    never.timeout_with(500_000, 0);
    assert_eq!(never.send(), Some(old));
}

#[test]
fn a_trimmed_packet_shows_a_path_alive() {
    let mut rig = Rig::new(&config(|own| own.dead_timeouts = 1));
    let ev = rig.send().unwrap();
    let loss = LossInfo { ev, cause: LossCause::Trimmed, ..LossInfo::default() };
    rig.flowcut.on_loss(rig.path.at_ps(0), &loss, &mut ());
    assert_eq!(rig.flowcut.allowed_bytes(), u64::MAX);
    rig.timeout(0);
    assert_eq!(rig.flowcut.allowed_bytes(), 0);
    let mut never = Rig::new(&config(|own| own.dead_timeouts = 0));
    never.send();
    (0..400u64).for_each(|round| {
        never.now_ps = round + 1;
        never.timeout(round);
    });
    assert_eq!(never.flowcut.allowed_bytes(), u64::MAX);
}

//= docs/specs/flowcut.md#FLC-50 the published artifact's rule
#[test]
fn the_simple_rule_changes_paths_only_after_drains() {
    let mut rig = Rig::new(&config(|own| own.rule = FlowcutRule::Simple));
    let first = rig.send();
    rig.ack(BASE_RTT_PS);
    assert_eq!(rig.send(), first, "nothing was in flight, and nothing drained");
    (0..9).for_each(|_| assert_eq!(rig.send(), first));
    while !rig.flowcut.is_draining() {
        rig.ack(20 * BASE_RTT_PS);
    }
    while !rig.open.is_empty() {
        rig.ack(20 * BASE_RTT_PS);
    }
    let second = rig.send();
    assert_ne!(second, first);
    rig.send();
    rig.ack(BASE_RTT_PS);
    assert!(rig.flowcut.is_draining(), "the average is still that of the old path");
}

//= docs/specs/flowcut.md#FLC-60 bytes of state
#[test]
fn the_size_of_the_state_is_as_specified() {
    assert_eq!(Flowcut::STATE_BYTES, 128);
    assert!(size_of::<crate::path::AnyBalancer>() <= 200);
}
