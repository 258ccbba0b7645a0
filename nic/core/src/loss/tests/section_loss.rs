//! Reports of missing packets: tables, the published scheme as a model, and no report of reordered
//! packets.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use spray_wire::Section;

use crate::loss::{Bits, Evidence, GapDetector, Received};

/// A receiver's bitmap and the watch.
struct Rig {
    received: Bits,
    cumulative: u64,
    highest: u64,
    watch: GapDetector,
}

impl Rig {
    fn new() -> Self {
        Self { received: Bits::new(256), cumulative: 0, highest: 0, watch: GapDetector::new(256) }
    }

    fn arrive(&mut self, psn: u64) {
        if psn < self.cumulative || self.received.contains(psn) {
            return;
        }
        self.highest = self.highest.max(psn + 1);
        self.received.insert(psn);
        self.watch.on_arrival(psn);
        self.cumulative = self.received.remove_run(self.cumulative, self.highest);
    }

    fn check(&mut self, psn: u64, log2: u8, behind: u16, again: bool, room: usize) -> Vec<u64> {
        let arrived = Received { received: &self.received, cumulative: self.cumulative, highest: self.highest };
        let mut reported = vec![];
        let evidence = Evidence { psn, section: Section::new(log2, behind), again };
        self.watch.check(&arrived, &evidence, |psn| {
            let fits = reported.len() < room;
            if fits {
                reported.push(psn);
            }
            fits
        });
        reported
    }

    /// Receives a new data packet.
    fn data(&mut self, psn: u64, log2: u8, behind: u16) -> Vec<u64> {
        self.arrive(psn);
        self.check(psn, log2, behind, false, 64)
    }
}

#[test]
fn earlier_packets_of_the_section_are_missing() {
    //= docs/specs/ordered-chaos.md#ORC-22 missing packets
    // (what arrived before, packet, log2 of subflows, behind) -> missing
    type Row = (&'static [u64], u64, u8, u16, &'static [u64]);
    let table: &[Row] = &[
        (&[], 0, 2, 0, &[]),
        (&[], 12, 2, 0, &[]),
        (&[], 12, 2, 1, &[8]),
        (&[], 12, 2, 3, &[0, 4, 8]),
        (&[], 12, 2, 4095, &[0, 4, 8]),
        (&[4], 12, 2, 3, &[0, 8]),
        (&[0, 1, 2, 3, 4, 5], 13, 2, 3, &[9]),
        (&[1, 2, 3, 5, 6, 7], 9, 0, 9, &[0, 4, 8]),
        (&[], 200, 6, 3, &[8, 72, 136]),
        (&[], 191, 6, 2, &[63, 127]),
        (&[], 201, 5, 6, &[9, 41, 73, 105, 137, 169]),
    ];
    for (before, psn, log2, behind, missing) in table {
        let mut rig = Rig::new();
        before.iter().for_each(|psn| rig.arrive(*psn));
        assert_eq!(rig.data(*psn, *log2, *behind), *missing, "{before:?} {psn} {log2} {behind}");
    }
}

#[test]
fn packets_report_each_loss_once_and_probes_again() {
    //= docs/specs/ordered-chaos.md#ORC-22 missing packets
    //= docs/specs/ordered-chaos.md#ORC-23 repeated reports
    let mut rig = Rig::new();
    assert_eq!(rig.data(8, 1, 4), [0, 2, 4, 6]);
    assert!(rig.data(10, 1, 5).is_empty());
    assert_eq!(rig.check(10, 1, 5, true, 64), [0, 2, 4, 6]);
    rig.arrive(4);
    assert_eq!(rig.check(10, 1, 5, true, 64), [0, 2, 6]);
    assert_eq!(rig.check(14, 1, 1, true, 64), [12, 14], "a probe also reports the packet that it names");
    assert_eq!(rig.check(4, 1, 0, true, 64), [0; 0], "a retransmitted probe");
    rig.arrive(0);
    // Their bits are reused for the numbers one window later.
    for psn in 1..=14 {
        rig.arrive(psn);
    }
    rig.arrive(270);
    let later: Vec<u64> = (0..127).map(|i| 16 + 2 * i).collect();
    assert_eq!(rig.check(270, 1, 127, false, 200), later);
    let mut rig = Rig::new();
    assert_eq!(rig.check(8, 1, 4, false, 2), [0, 2], "limited by the space");
    assert_eq!(rig.check(8, 1, 4, false, 64), [4, 6, 8]);
}

/// The published scheme: a bitmap of arrivals and one of reports, both from `start`; a frame
/// carries the first number of its section.
#[derive(Default)]
struct Published {
    start: u64,
    received: Vec<bool>,
    reported: Vec<bool>,
}

impl Published {
    fn reach(&mut self, psn: u64) {
        let room = (psn - self.start + 1) as usize;
        if self.received.len() < room {
            self.received.resize(room, false);
            self.reported.resize(room, false);
        }
    }

    fn check(&mut self, psn: u64, base: u64, stride: u64) -> Vec<u64> {
        let mut missing = vec![];
        let mut at = base;
        while at < self.start {
            at += stride;
        }
        while at <= psn {
            let index = (at - self.start) as usize;
            if !self.received[index] && !self.reported[index] {
                self.reported[index] = true;
                missing.push(at);
            }
            at += stride;
        }
        missing
    }

    fn data(&mut self, psn: u64, base: u64, stride: u64, again: bool) -> Vec<u64> {
        if psn >= self.start {
            self.reach(psn);
            self.received[(psn - self.start) as usize] = true;
        }
        let missing = if again || psn < self.start { vec![] } else { self.check(psn, base, stride) };
        while self.received.first() == Some(&true) {
            self.received.remove(0);
            self.reported.remove(0);
            self.start += 1;
        }
        missing
    }
}

proptest! {
    /// Per packet: whether it is lost, whether its section ends after it, how many later ones may
    /// overtake it.
    //= docs/specs/ordered-chaos.md#ORC-22 missing packets
    //= docs/specs/ordered-chaos.md#ORC-24 missing packets are lost
    #[test]
    fn exactly_the_lost_packets_are_reported_missing(
        log2 in 0u8..=4,
        outcomes in prop::collection::vec((prop::bool::weighted(0.15), prop::bool::weighted(0.2), 0usize..60), 1..200),
    ) {
        let (stride, count) = (1usize << log2, outcomes.len());
        // The first packet of the section of each packet.
        let base = |psn: usize| {
            let mut base = psn;
            while base >= stride && !outcomes[base - stride].1 {
                base -= stride;
            }
            base
        };
        // A packet arrives after its delay, but not before earlier packets of its section: a path
        // keeps order.
        let mut arrivals: Vec<(usize, usize)> = vec![];
        for (psn, outcome) in outcomes.iter().enumerate() {
            let before = (base(psn)..psn).step_by(stride).map(|earlier| arrivals[earlier].0).max().unwrap_or(0);
            arrivals.push(((psn + outcome.2).max(before + 1), psn));
        }
        let mut order: Vec<(usize, usize)> = arrivals.into_iter().filter(|(_, psn)| !outcomes[*psn].0).collect();
        order.sort_unstable();
        let (mut rig, mut model, mut reported) = (Rig::new(), Published::default(), vec![]);
        for (_, psn) in &order {
            let behind = (psn - base(*psn)) / stride;
            let missing = rig.data(*psn as u64, log2, behind as u16);
            prop_assert_eq!(&missing, &model.data(*psn as u64, base(*psn) as u64, stride as u64, false));
            reported.extend(missing);
        }
        // Exactly the lost packets after which another one of their section arrived.
        reported.sort_unstable();
        let proven = |psn: &usize| {
            let mut later = *psn;
            while !outcomes[later].1 && later + stride < count {
                later += stride;
                if !outcomes[later].0 {
                    return true;
                }
            }
            false
        };
        let expected: Vec<u64> = (0..count).filter(|psn| outcomes[*psn].0 && proven(psn)).map(|psn| psn as u64).collect();
        prop_assert_eq!(reported, expected);
    }

    /// For any frames in any order: no panic, no report of packets that have arrived or are outside
    /// the window.
    #[test]
    fn hostile_sections_are_harmless(
        frames in prop::collection::vec((0u64..256, any::<u16>(), any::<bool>(), any::<bool>()), 1..300),
    ) {
        let mut rig = Rig::new();
        for (ahead, bits, again, arrives) in frames {
            let psn = rig.cumulative + ahead;
            if arrives {
                rig.arrive(psn);
            }
            let arrived = Received { received: &rig.received, cumulative: rig.cumulative, highest: rig.highest };
            let mut reported = vec![];
            let evidence = Evidence { psn, section: Section::from_bits(bits), again };
            rig.watch.check(&arrived, &evidence, |psn| {
                reported.push(psn);
                true
            });
            let fits = |missing: &u64| (rig.cumulative..=psn).contains(missing) && !rig.received.contains(*missing);
            prop_assert!(reported.iter().all(fits), "{reported:?}");
        }
    }
}
