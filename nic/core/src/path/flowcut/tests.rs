mod twin;

use self::twin::Twin;
use super::*;
use crate::path::{BalancerConfig, BalancerKind};
use crate::rng::{Rng, stream};
use crate::units::{ByteSize, Gbps, Micros, Ratio};
use std::vec::Vec;

const BASE_RTT_PS: u64 = 10 << 20;
const BYTES: u32 = 4_160;

fn config(change: impl FnOnce(&mut FlowcutConfig)) -> PathConfig {
    let mut own = FlowcutConfig { tail_bytes: Some(ByteSize::new(0)), ..FlowcutConfig::default() };
    change(&mut own);
    PathConfig { seed: Some(5), ..PathConfig::new(BalancerConfig::Flowcut(own), BASE_RTT_PS, 100) }
}

fn own(config: &PathConfig) -> &FlowcutConfig {
    let BalancerConfig::Flowcut(own) = &config.balancer else { panic!("{:?} is not Flowcut", config.balancer) };
    own
}

/// A sender in miniature: packets in order, of which the first open ones are acknowledged in order.
#[derive(Clone)]
struct Rig {
    flowcut: Flowcut,
    rng: Rng,
    now_ps: u64,
    next_psn: u64,
    /// EVs of open packets.
    open: Vec<Ev>,
    unsent_bytes: u64,
}

impl Rig {
    fn new(config: &PathConfig) -> Self {
        let mut rng = stream(1, 1);
        Self {
            flowcut: Flowcut::make(own(config), config, &mut rng),
            rng,
            now_ps: 0,
            next_psn: 0,
            open: Vec::new(),
            unsent_bytes: 0,
        }
    }

    fn info(&self) -> SendInfo {
        let open_packets = self.open.len() as u64;
        let in_flight_bytes = open_packets * u64::from(BYTES);
        SendInfo { psn: self.next_psn, bytes: BYTES, open_packets, in_flight_bytes, ..SendInfo::default() }
    }

    /// Whether a new packet may go.
    fn may(&mut self) -> bool {
        let info = self.info();
        self.flowcut.admit(self.now_ps, &info) != Admission::Wait
    }

    /// Sends a new packet and returns its path; `None` when it is held.
    fn send(&mut self) -> Option<Ev> {
        let info = self.info();
        let may = self.may();
        may.then(|| {
            let ev = self.flowcut.next_ev(self.now_ps, &info, &mut self.rng);
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
        let open_packets = self.open.len() as u64;
        let in_flight_bytes = open_packets * u64::from(BYTES);
        let ack = AckInfo {
            ev,
            rtt_ps,
            hops,
            packet_bytes: BYTES,
            packets: 1,
            bytes: BYTES.into(),
            open_packets,
            in_flight_bytes,
            unsent_bytes: self.unsent_bytes,
            ..AckInfo::default()
        };
        self.flowcut.on_ack(self.now_ps, &ack, &mut ());
    }

    fn timeout(&mut self, sent_ps: u64) {
        let loss = LossInfo { ev: self.flowcut.ev(), sent_ps, bytes: BYTES, ..LossInfo::default() };
        self.flowcut.on_loss(self.now_ps, &loss, &mut ());
    }

    /// Fills the path with ten packets and lets it drain.
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
fn a_path_lasts_until_nothing_is_open() {
    let config = config(|_| ());
    let mut rig = Rig::new(&config);
    let ecmp = crate::path::Ecmp::make(&crate::path::NoSettings {}, &config, &mut stream(9, 9)).next_ev(
        0,
        &SendInfo::default(),
        &mut stream(9, 9),
    );
    let first: Vec<_> = (0..20).map(|_| rig.send()).collect();
    assert!(first.iter().all(|ev| *ev == Some(ecmp)), "the first window takes ecmp's path");
    for _ in 0..100 {
        rig.ack(BASE_RTT_PS);
        assert_eq!(rig.send(), Some(ecmp));
    }
    (0..20).for_each(|_| rig.ack(BASE_RTT_PS));
    let second = rig.send().unwrap();
    assert_ne!(second, ecmp);
    assert_eq!(rig.send(), Some(second));
    // An ACK that the balancer is not told of may settle the last packet as well.
    rig.open.clear();
    assert_ne!(rig.send(), Some(second));
}

//= docs/specs/flowcut.md#FLC-4 another path than before
#[test]
fn a_change_of_path_is_one() {
    let mut rig = Rig::new(&PathConfig { evs: 2, ..config(|_| ()) });
    let mut before = rig.send();
    for _ in 0..50 {
        rig.ack(BASE_RTT_PS);
        let after = rig.send();
        assert_eq!(before.unwrap().index() + after.unwrap().index(), 1);
        before = after;
    }
    let mut one = Rig::new(&PathConfig { evs: 1, ..config(|_| ()) });
    for _ in 0..5 {
        assert_eq!(one.send(), Some(Ev::new(0)));
        one.ack(BASE_RTT_PS);
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
    assert_eq!(rig.flowcut.admit(rig.now_ps, &again), Admission::Window);
    assert_eq!(rig.flowcut.next_ev(rig.now_ps, &again, &mut stream(2, 2)), old);
    while rig.open.len() > 1 {
        rig.ack(BASE_RTT_PS);
        assert!(rig.flowcut.is_draining() && !rig.may());
    }
    rig.ack(BASE_RTT_PS);
    assert!(!rig.flowcut.is_draining());
    assert_ne!(rig.send().unwrap(), old);
}

/// ACKs of one normalised RTT until the path drains, from an average of 1.
fn acks_until_drained(config: &PathConfig, rtt_ps: u64) -> Option<usize> {
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
fn the_average_crosses_the_ratio_when_arithmetic_says() {
    // 1 + (n - 1)(1 - 0.88^k) > 4 for the first time; the base RTT bounds what was never seen.
    for (normalised, expected) in [(5, 11), (6, 8), (10, 4), (20, 2), (4, 0)] {
        let found = acks_until_drained(&config(|own| own.trend = Ratio::default()), normalised * BASE_RTT_PS);
        assert_eq!(found.unwrap_or(0), expected, "{normalised}");
    }
    // At weight 1 one sample decides.
    let at_once = config(|own| (own.trend, own.weight) = (Ratio::default(), Ratio::permille(1_000)));
    assert_eq!(acks_until_drained(&at_once, 4 * BASE_RTT_PS + 20_000), Some(1));
    // Where no base RTT is known, what was seen first is the least.
    let unknown = PathConfig { base_rtt_ps: 0, ..config(|own| own.trend = Ratio::default()) };
    assert_eq!(acks_until_drained(&unknown, 50 * BASE_RTT_PS), None);
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
fn hops_and_serialisation_are_told_apart() {
    // 25 Gb/s: 4,160 bytes take 1.33 us a hop.
    let config = config(|own| {
        (own.trend, own.link_rate_gbps) = (Ratio::default(), Some(Gbps::new(25)));
        (own.rtt_ratio, own.weight) = (Ratio::permille(1_500), Ratio::permille(1_000));
    });
    let mut rig = Rig::new(&PathConfig { base_rtt_ps: 0, ..config });
    let path = rig.send().unwrap();
    (0..50).for_each(|_| assert_eq!(rig.send(), Some(path)));
    let mut ack = |hops: u8, bytes: u32, rtt_ps: u64| {
        let ack =
            AckInfo { ev: path, rtt_ps, hops, packet_bytes: bytes, packets: 1, open_packets: 9, ..AckInfo::default() };
        rig.flowcut.on_ack(0, &ack, &mut ());
        rig.flowcut.is_draining()
    };
    let (near, far) = (4_000_000, 9_000_000);
    assert!(!ack(1, 64, near) && !ack(3, 64, far) && !ack(3, 64, far));
    // A full packet takes 1.33 us longer at each of three hops, and that is no congestion; 1.5 times 13 us is.
    assert!(!ack(3, 4_160, far + 3 * 1_332_000));
    assert!(!ack(12, 64, 3 * far), "more than nine hops count as nine, of which nothing was known");
    assert!(!ack(3, 4_160, 19_300_000) && ack(3, 4_160, 19_600_000));
}

/// A connection that learns its path, with much to send and 40 packets under way. The path's least RTT is known.
fn learning() -> Rig {
    let config = config(|_| ());
    let mut rig = Rig::new(&config);
    rig.flowcut.adopt(Flowcut::make(own(&config), &config, &mut stream(2, 2)));
    rig.unsent_bytes = 1 << 30;
    (0..40).for_each(|_| assert!(rig.send().is_some()));
    rig.ack(BASE_RTT_PS);
    rig
}

/// Sends over one path, which delivers a packet every `gap_ps` and has a long queue, until `packets` arrived or it drains. Returns whether
/// it drains; it has drained then.
fn drains(rig: &mut Rig, gap_ps: u64, packets: u32) -> bool {
    while rig.open.len() < 40 && rig.send().is_some() {}
    for _ in 0..packets {
        rig.now_ps += gap_ps;
        rig.ack(30 * BASE_RTT_PS);
        if rig.flowcut.is_draining() {
            rig.now_ps += gap_ps;
            (0..rig.open.len()).for_each(|_| rig.ack(30 * BASE_RTT_PS));
            return true;
        }
        rig.send();
    }
    false
}

/// What three paths deliver, in packets per base RTT.
fn three_known(rates: [u64; 3]) -> Rig {
    let mut rig = learning();
    for rate in rates {
        assert!(drains(&mut rig, BASE_RTT_PS / rate, 2_000), "a path is left while too few are known");
    }
    rig
}

//= docs/specs/flowcut.md#FLC-16 a base that nobody told
//= docs/specs/flowcut.md#FLC-17 paths compared
#[test]
fn a_learned_path_is_left_for_better_ones_only() {
    let mut alike = three_known([8, 9, 8]);
    assert!(!drains(&mut alike, BASE_RTT_PS / 8, 2_000), "no path did better");
    assert!(!drains(&mut alike, BASE_RTT_PS / 3, 2_000), "a third is no congestion");
    assert!(drains(&mut alike, BASE_RTT_PS / 2, 2_000), "more than four times as much");
    let mut short = learning();
    short.unsent_bytes = 31 * 40 * u64::from(BYTES);
    assert!(!drains(&mut short, BASE_RTT_PS / 8, 2_000), "too little is left to try others");
    let mut empty = learning();
    for _ in 0..2_000 {
        empty.now_ps += BASE_RTT_PS / 8;
        empty.ack(2 * BASE_RTT_PS);
        assert!(empty.send().is_some(), "there is hardly a queue");
    }
}

//= docs/specs/flowcut.md#FLC-17 paths compared
#[test]
fn a_path_is_tried_again_less_and_less_often() {
    let mut rig = three_known([8, 8, 8]);
    // A round takes an RTT, in which 240 packets arrive.
    for rounds in [64, 512, 4_096, 4_096] {
        assert!(!drains(&mut rig, BASE_RTT_PS / 8, (rounds - 1) * 240), "{rounds} rounds");
        assert!(drains(&mut rig, BASE_RTT_PS / 8, 2 * 240), "{rounds} rounds");
    }
}

//= docs/specs/flowcut.md#FLC-18 where paths differ
#[test]
fn a_good_path_is_kept_where_paths_differ() {
    for (rates, is_kept) in [([8, 8, 9], false), ([8, 1, 9], true)] {
        let mut rig = three_known(rates);
        assert!(!drains(&mut rig, BASE_RTT_PS / 8, 100));
        let path = rig.flowcut.ev();
        while !rig.open.is_empty() {
            rig.ack(BASE_RTT_PS);
        }
        assert_eq!(rig.send() == Some(path), is_kept, "{rates:?}");
    }
    // A dead path differs from any.
    let mut rig = three_known([8, 8, 8]);
    assert!(rig.send().is_some());
    for round in 1..=3 {
        rig.now_ps += 1 << 40;
        rig.timeout(rig.now_ps - round);
    }
    rig.open.clear();
    let path = rig.send();
    rig.ack(BASE_RTT_PS);
    assert_eq!(rig.send(), path);
    rig.ack(BASE_RTT_PS);
    assert_eq!(rig.send(), path);
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

//= docs/specs/flowcut.md#FLC-22 XOFF with credit
//= docs/specs/flowcut.md#FLC-30 pausing from outside
#[test]
fn a_drain_s_credit_is_spent_and_told() {
    let mut rig = Rig::new(&config(|own| own.credit_bytes = ByteSize::new(2 * u64::from(BYTES) + 1)));
    assert_eq!(rig.flowcut.allowed_bytes(), u64::MAX);
    let old = rig.drain();
    assert_eq!(rig.flowcut.allowed_bytes(), 2 * u64::from(BYTES) + 1);
    assert_eq!([rig.send(), rig.send(), rig.send()], [Some(old), Some(old), None]);
    assert_eq!(rig.flowcut.allowed_bytes(), 1);
    while !rig.open.is_empty() {
        rig.ack(BASE_RTT_PS);
    }
    assert_eq!(rig.flowcut.allowed_bytes(), u64::MAX);
    let mut plain = Rig::new(&config(|_| ()));
    plain.drain();
    assert_eq!((plain.flowcut.allowed_bytes(), plain.send()), (0, None));
}

//= docs/specs/flowcut.md#FLC-24 A silent drain
#[test]
fn a_drain_without_acks_ends_on_the_old_path() {
    let mut rig = Rig::new(&config(|own| own.drain_timeout_us = Some(Micros::new(100))));
    rig.now_ps = 7_000_000;
    let old = rig.drain();
    assert_eq!(rig.flowcut.poll_timeout(), None, "nothing waits yet");
    assert!(!rig.may());
    assert_eq!(rig.flowcut.poll_timeout(), Some(107_000_000));
    rig.now_ps = 50_000_000;
    rig.ack(BASE_RTT_PS);
    assert_eq!(rig.flowcut.poll_timeout(), Some(150_000_000), "what comes back puts it off");
    rig.now_ps = 150_000_000;
    assert_eq!(rig.send(), Some(old));
    assert_eq!((rig.flowcut.is_draining(), rig.flowcut.poll_timeout()), (false, None));
    rig.ack(4 * BASE_RTT_PS);
    assert!(!rig.flowcut.is_draining(), "the average began anew");
}

//= docs/specs/flowcut.md#FLC-25 no drain near the end
#[test]
fn the_last_packets_are_not_worth_a_drain() {
    let drains = |tail_bytes: Option<u64>, unsent_bytes: u64| {
        let mut rig = Rig::new(&config(|own| own.tail_bytes = tail_bytes.map(ByteSize::new)));
        let ev = rig.send().unwrap();
        let ack = AckInfo {
            ev,
            rtt_ps: 50 * BASE_RTT_PS,
            packet_bytes: BYTES,
            open_packets: 5,
            unsent_bytes,
            ..AckInfo::default()
        };
        (0..9).for_each(|_| rig.flowcut.on_ack(0, &ack, &mut ()));
        rig.flowcut.is_draining()
    };
    assert!(drains(Some(1_000), 1_000) && !drains(Some(1_000), 999) && drains(Some(0), 0));
    let bdp = 100 * u64::from(BYTES);
    assert!(drains(None, bdp) && !drains(None, bdp - 1));
}

//= docs/specs/flowcut.md#FLC-27 early resumption
//= docs/specs/flowcut.md#FLC-28 bound of reordering
#[test]
fn early_resumption_bounds_how_far_a_packet_gets_ahead() {
    let mut rig = Rig::new(&config(|own| own.resume_packets = 3));
    let old = rig.drain();
    while rig.open.len() > 3 {
        assert!(!rig.may());
        rig.ack(BASE_RTT_PS);
    }
    let new = rig.send().unwrap();
    assert_ne!(new, old);
    assert!(!rig.flowcut.is_draining() && rig.send().is_none(), "four are open");
    // Old ones make room for as many; once they are all gone nothing is held.
    for _ in 0..2 {
        rig.ack(BASE_RTT_PS);
        assert_eq!((rig.send(), rig.send()), (Some(new), None));
    }
    rig.ack(BASE_RTT_PS);
    (0..20).for_each(|_| assert_eq!(rig.send(), Some(new)));
}

//= docs/specs/flowcut.md#FLC-40 silent rounds
//= docs/specs/flowcut.md#FLC-41 A dead path
//= docs/specs/flowcut.md#FLC-42 repair
//= docs/specs/flowcut.md#FLC-44 end of repair
#[test]
fn a_silent_path_is_left_and_what_was_open_goes_one_by_one() {
    let mut rig = Rig::new(&config(|_| ()));
    let old = rig.drain();
    // Two rounds; of a flight only the first timeout counts.
    for round in 1..=2u64 {
        rig.now_ps = round * 1_000_000;
        (0..5).for_each(|_| rig.timeout((round - 1) * 1_000_000));
    }
    assert!(rig.flowcut.is_draining());
    // Something comes back: the count begins again.
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
        open_packets: 4,
        bytes: BYTES,
        ..SendInfo::default()
    };
    let admit = |rig: &mut Rig, in_flight_bytes| rig.flowcut.admit(rig.now_ps, &again(in_flight_bytes));
    assert_eq!([admit(&mut rig, 1), admit(&mut rig, 0)], [Admission::Wait, Admission::Window]);
    let mut rng = stream(3, 3);
    let new = rig.flowcut.next_ev(0, &again(0), &mut rng);
    assert_ne!(new, old);
    // Still one at a time, and after the last the path stays.
    assert_eq!([admit(&mut rig, 1), admit(&mut rig, 0)], [Admission::Wait, Admission::Window]);
    rig.open.clear();
    rig.ack_of(new, BASE_RTT_PS, 3);
    assert_eq!([rig.send(), rig.send()], [Some(new), Some(new)]);
}

#[test]
fn a_trimmed_packet_shows_a_path_alive() {
    let mut rig = Rig::new(&config(|own| own.dead_timeouts = 1));
    let ev = rig.send().unwrap();
    let loss = LossInfo { ev, cause: LossCause::Trimmed, ..LossInfo::default() };
    rig.flowcut.on_loss(0, &loss, &mut ());
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

//= docs/specs/flowcut.md#FLC-50 the published simulator's rule
#[test]
fn the_simple_rule_keeps_its_average_and_changes_paths_after_drains_only() {
    let mut rig = Rig::new(&config(|own| own.rule = FlowcutRule::Simple));
    let first = rig.send();
    rig.ack(BASE_RTT_PS);
    assert_eq!(rig.send(), first, "nothing was open, and nothing was drained");
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
    assert!(rig.flowcut.is_draining(), "the average is the old path's");
}

//= docs/specs/flowcut.md#FLC-60 bytes of state
#[test]
fn the_state_takes_what_the_specification_says() {
    assert_eq!(Flowcut::STATE_BYTES, 128);
    assert!(size_of::<crate::path::AnyBalancer>() <= 192);
}

/// The published rules as their texts have them, in floating point, and ours over random histories.
//= docs/specs/flowcut.md#FLC-12 average against threshold
//= docs/specs/flowcut.md#FLC-50 the published simulator's rule
#[test]
fn random_histories_go_as_the_texts_say() {
    let mut compared = 0;
    for seed in 0..300 {
        let mut draw = stream(seed, 77);
        let simple = seed % 2 == 1;
        let config = config(|own| {
            own.rule = if simple { FlowcutRule::Simple } else { FlowcutRule::Paper };
            own.rtt_ratio = Ratio::permille(1_000 + draw.next_u64() % 5_000);
            own.weight = Ratio::permille(1 + draw.next_u64() % 1_000);
            own.trend = Ratio::permille([0, 20, 50, 200][draw.next_u64() as usize % 4]);
            own.trend_weight = Ratio::permille(1 + draw.next_u64() % 1_000);
            own.dead_timeouts = 0;
            own.drain_timeout_us = Some(Micros::from_ps(1 << 60));
        });
        let mut rig = Rig::new(&config);
        let mut twin = Twin::new(own(&config), BASE_RTT_PS);
        let mut rtt_ps = BASE_RTT_PS;
        for _ in 0..600 {
            if draw.next_u32().is_multiple_of(2) {
                let may = rig.send().is_some();
                assert_eq!(may, twin.send(rig.open.last().copied()), "seed {seed}");
            } else if !rig.open.is_empty() {
                // A queue that fills and empties.
                let step = draw.next_u64() % (BASE_RTT_PS / 2);
                rtt_ps = if draw.next_u32() % 5 < 3 { rtt_ps + step } else { rtt_ps.saturating_sub(step) };
                rtt_ps = rtt_ps.clamp(BASE_RTT_PS, 12 * BASE_RTT_PS);
                rig.ack(rtt_ps);
                twin.ack(rtt_ps, rig.open.len());
                if twin.is_close_call() {
                    // Where rounding decides, either is right.
                    break;
                }
                assert_eq!(rig.flowcut.is_draining(), twin.is_stopped(), "seed {seed}");
                compared += 1;
            }
        }
    }
    assert!(compared > 20_000, "{compared}");
}

#[test]
fn no_history_is_too_odd() {
    for seed in 0..200 {
        let mut draw = stream(seed, 78);
        let mut odd = || match draw.next_u64() % 4 {
            0 => 0,
            1 => u64::MAX,
            2 => draw.next_u64() % 5,
            _ => draw.next_u64(),
        };
        let own = FlowcutConfig {
            rule: if odd() == 0 { FlowcutRule::Simple } else { FlowcutRule::Paper },
            rtt_ratio: Ratio::from_ppm(odd()),
            weight: Ratio::from_ppm(odd()),
            trend: Ratio::from_ppm(odd()),
            trend_weight: Ratio::from_ppm(odd()),
            link_rate_gbps: Some(Gbps::from_bps(odd())),
            tail_bytes: Some(ByteSize::new(odd())),
            drain_timeout_us: Some(Micros::from_ps(odd())),
            resume_packets: odd() as u16,
            credit_bytes: ByteSize::new(odd()),
            dead_timeouts: odd() as u8,
        };
        let config = PathConfig { evs: odd() as u32, ..PathConfig::new(BalancerKind::Flowcut, odd(), odd() as u32) };
        let mut rng = stream(seed, 79);
        let mut flowcut = Flowcut::make(&own, &config, &mut rng);
        for _ in 0..300 {
            let info = SendInfo {
                psn: odd(),
                bytes: odd() as u32,
                retransmit: odd() == 0,
                in_flight_bytes: odd(),
                open_packets: odd(),
                unsent_bytes: odd(),
            };
            let now_ps = odd();
            if flowcut.admit(now_ps, &info) != Admission::Wait {
                let ev = flowcut.next_ev(now_ps, &info, &mut rng);
                assert!(u32::from(ev.index()) < config.evs.clamp(1, 65_535));
            }
            let ack = AckInfo {
                ev: Ev::new(odd() as u16),
                rtt_ps: odd(),
                hops: odd() as u8,
                packet_bytes: odd() as u32,
                open_packets: odd(),
                unsent_bytes: odd(),
                ..AckInfo::default()
            };
            flowcut.on_ack(odd(), &ack, &mut ());
            let cause = [LossCause::Timeout, LossCause::SackGap, LossCause::Trimmed][odd() as usize % 3];
            flowcut.on_loss(
                odd(),
                &LossInfo { ev: flowcut.ev(), cause, sent_ps: odd(), ..LossInfo::default() },
                &mut (),
            );
            let _ = (flowcut.poll_timeout(), flowcut.allowed_bytes(), flowcut.is_draining());
        }
    }
}
