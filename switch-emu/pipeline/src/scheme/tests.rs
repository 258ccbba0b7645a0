pub(crate) mod chassis;

use self::chassis::{Chassis, FRAME};
use super::note::ReunionNote;
use super::path::{uplink, with_uplink};
use super::*;
use crate::frame::Frame;
use crate::hash::mix;
use crate::routes::{Group, Routes, SwitchConfig};
use crate::trail::Trail;
use core::cell::Cell;
use spray_wire::switch_view::PacketFields;
use std::collections::HashSet;
use std::vec::Vec;
use std::{assert, assert_eq, vec};

const FIRST: u32 = 7;
const TABLE: u32 = 8;
const ARRIVAL: Arrival =
    Arrival { t_ps: 5_000_000, flow: 1, switch: 0, host: 0, checksum: 9, control: false, detour: 0 };

/// A switch with one group of members, starting at `FIRST`, and queues that tests fill.
struct OneSwitch {
    config: SwitchConfig,
    group: Group,
    words: Vec<Cell<u64>>,
    queues: Vec<Cell<u64>>,
}

impl OneSwitch {
    const POINTER: u32 = 3;

    fn new(scheme: Scheme, salt: u32, count: u16) -> Self {
        let orders = scheme.layout().orders;
        Self {
            config: SwitchConfig { gap_ps: 1_000_000, memory: TABLE, ..SwitchConfig::new(salt, scheme) },
            group: Group { first: FIRST, count, orders, hops: 0, pointer: Self::POINTER },
            words: vec![Cell::new(0); (TABLE + FLOWLETS) as usize],
            queues: vec![Cell::new(0); usize::from(count * u16::from(orders)) + FIRST as usize],
        }
    }

    fn fill(&self, bytes: &[u64]) {
        bytes.iter().enumerate().for_each(|(place, bytes)| self.queues[FIRST as usize + place].set(*bytes));
    }

    fn rank(&self, frame: Arrival) -> u32 {
        choose(self, &frame).unwrap().rank
    }
}

impl Routes for OneSwitch {
    fn switch(&self, _: u32) -> Option<&SwitchConfig> {
        Some(&self.config)
    }
    fn group(&self, _: u64, _: u32, _: u32) -> Option<Group> {
        Some(self.group)
    }
    fn member(&self, index: u32) -> Option<u32> {
        Some(index)
    }
}

impl InMemory for OneSwitch {}

impl Forwarding for OneSwitch {
    type Word = Cell<u64>;
    type TrailWord = Cell<u64>;
    fn word(&self, index: u32) -> Option<&Cell<u64>> {
        self.words.get(index as usize)
    }
    fn trail(&self) -> Option<&Trail> {
        None
    }
    fn queue_state(&self, port: u32, _: u64) -> Option<QueueState> {
        Some(QueueState { bytes: self.queues[port as usize].get(), limit: 100_000, ps_per_unit: 1 })
    }
}

/// Returns the chi-square statistic of counts for a uniform distribution.
fn chi_square(counts: &[u64]) -> u64 {
    let mean = counts.iter().sum::<u64>() / counts.len() as u64;
    counts.iter().map(|count| count.abs_diff(mean).pow(2)).sum::<u64>() / mean
}

/// Returns the choice of a switch with `salt` among `count` ports, for frames from consecutive
/// source ports.
fn chosen(salt: u32, count: u16, port: u16) -> usize {
    let addresses = spray_wire::switch_view::addresses_v4([10, 0, 0, 1], [10, 0, 0, 2]);
    let flow = crate::hash::flow(addresses, u32::from(port) << 16 | u32::from(spray_wire::Ports::DEFAULT.first()));
    let switch = OneSwitch::new(Scheme::Ecmp, salt, count);
    let choice = choose(&switch, &Arrival { flow, ..ARRIVAL }).unwrap();
    assert_eq!(choice.port, choice.rank + FIRST);
    choice.rank as usize
}

#[test]
fn source_ports_are_spread_evenly() {
    //= docs/specs/switch.md#SW-5 the choice within a group
    // With 16,384 consecutive ports over n uplinks, chi-square stays below its 99.9 % point.
    for (uplinks, limit) in [(4, 17), (7, 23), (16, 38), (64, 104)] {
        let mut counts = vec![0; uplinks as usize];
        (49_152..=65_535).for_each(|port| counts[chosen(uplinks, uplinks as u16, port)] += 1);
        assert!(chi_square(&counts) < limit, "{uplinks} uplinks: {}", chi_square(&counts));
    }
}

#[test]
fn switches_choose_independently() {
    // Every pair of choices of two switches with adjacent salts is equally likely.
    let mut counts = vec![0; 64];
    (1..=65_535).for_each(|port| counts[chosen(1, 8, port) * 8 + chosen(2, 8, port)] += 1);
    assert!(chi_square(&counts) < 104, "{}", chi_square(&counts));
}

#[test]
fn without_ports_there_is_no_route() {
    assert_eq!(choose(&OneSwitch::new(Scheme::Ecmp, 1, 0), &ARRIVAL), None);
}

#[test]
fn numbers_and_names_of_schemes_agree() {
    for (number, scheme) in Scheme::ALL.into_iter().enumerate() {
        assert_eq!((scheme as usize, Scheme::from_number(number as u32)), (number, scheme));
    }
    let names: HashSet<_> = Scheme::ALL.into_iter().map(Scheme::name).collect();
    assert_eq!(names.len(), Scheme::ALL.len());
}

//= docs/specs/switching.md#SWC-34 supported fabrics
#[test]
fn all_schemes_except_two_support_any_fabric() {
    let anywhere: Vec<Scheme> = Scheme::anywhere().collect();
    let elsewhere = Scheme::ALL.into_iter().filter(|scheme| !anywhere.contains(scheme));
    assert_eq!(elsewhere.collect::<Vec<_>>(), [Scheme::Valiant, Scheme::Ugal]);
}

#[test]
fn random_choices_are_even_and_differ_between_switches() {
    //= docs/specs/switching.md#SWC-3 random choices
    let (one, other) = (OneSwitch::new(Scheme::Random, 1, 8), OneSwitch::new(Scheme::Random, 2, 8));
    let mut counts = vec![0; 64];
    for checksum in 0..65_536 {
        let frame = Arrival { checksum, ..ARRIVAL };
        counts[(one.rank(frame) * 8 + other.rank(frame)) as usize] += 1;
    }
    assert!(chi_square(&counts) < 104, "{}", chi_square(&counts));
}

#[test]
fn a_group_of_one_port_advances_no_pointer() {
    //= docs/specs/switching.md#SWC-1 no pointer moves
    let switch = OneSwitch::new(Scheme::Rr, 1, 1);
    let pointer = &switch.words[OneSwitch::POINTER as usize];
    pointer.set(3);
    assert_eq!(([0; 4].map(|_| switch.rank(ARRIVAL)), pointer.get()), ([0; 4], 3));
}

#[test]
fn round_robin_takes_ports_in_turn() {
    //= docs/specs/switching.md#SWC-5 pointers
    let switch = OneSwitch::new(Scheme::Rr, 1, 5);
    switch.words[OneSwitch::POINTER as usize].set(3);
    let ranks: Vec<_> = (0..12).map(|flow| switch.rank(Arrival { flow, ..ARRIVAL })).collect();
    assert_eq!(ranks, [3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
}

#[test]
fn alternating_data_and_acks_use_all_ports() {
    //= docs/specs/switching.md#SWC-5 pointers
    //= docs/specs/switching.md#SWC-6 changing permutations
    for scheme in [Scheme::Rr, Scheme::RrPermuted] {
        let switch = OneSwitch::new(scheme, 1, 4);
        for control in [false, true] {
            let mut ports = HashSet::new();
            for turn in 0..8 {
                let rank = switch.rank(Arrival { control: turn % 2 == 1, ..ARRIVAL });
                if (turn % 2 == 1) == control {
                    ports.insert(rank % 4);
                }
            }
            assert_eq!(ports.len(), 4, "{scheme:?}");
        }
    }
}

#[test]
fn drill_compares_two_random_queues_and_the_last_best() {
    //= docs/specs/switching.md#SWC-55 two random queues and the last best
    let switch = OneSwitch::new(Scheme::Drill, 1, 16);
    let frame = |checksum: u32| Arrival { checksum, ..ARRIVAL };
    // The shortest of 16 queues is found once a frame samples it, and is remembered from then on.
    switch.fill(&core::array::from_fn::<u64, 16, _>(|place| if place == 11 { 10 } else { 1_000 }));
    let ranks: Vec<u32> = (0..200).map(|checksum| switch.rank(frame(checksum))).collect();
    let found = ranks.iter().position(|rank| *rank == 11).unwrap();
    assert!((1..60).contains(&found), "sampling 2 of 16 finds it after about 8 frames, not {found}");
    assert!(ranks[found..].iter().all(|rank| *rank == 11), "{ranks:?}");
    // When it is the longest it is dropped, and no frame takes a longer queue than the previous
    // one.
    switch.fill(&core::array::from_fn::<u64, 16, _>(|place| place as u64 * 100));
    let ranks: Vec<u32> = (0..200).map(|checksum| switch.rank(frame(checksum))).collect();
    assert!(ranks.is_sorted_by(|before, after| before >= after) && ranks[199] == 0, "{ranks:?}");
    // Equal queues are taken equally often.
    switch.fill(&[500; 16]);
    let mut counts = vec![0; 16];
    (0..16_000).for_each(|checksum| counts[switch.rank(frame(checksum)) as usize] += 1);
    assert!(chi_square(&counts) < 60, "{counts:?}");
}

#[test]
fn an_order_lasts_five_rounds() {
    //= docs/specs/switching.md#SWC-6 changing permutations
    let switch = OneSwitch::new(Scheme::RrPermuted, 1, 6);
    let mut orders = HashSet::new();
    for _ in 0..200 {
        let ranks: Vec<_> = (0..30).map(|_| switch.rank(ARRIVAL)).collect();
        let first = ranks[0] - ranks[0] % 6;
        let round: Vec<_> = (first..first + 6).collect();
        assert!(ranks.chunks(6).all(|ranks| ranks == round), "{ranks:?}");
        orders.insert(first / 6);
    }
    // 200 draws of 64 orders miss 3 on average.
    assert!(orders.len() > 52, "{}", orders.len());
}

#[test]
fn the_shortest_queue_wins_and_ties_are_random() {
    //= docs/specs/switching.md#SWC-11 the least loaded port
    let switch = OneSwitch::new(Scheme::Jsq, 1, 5);
    switch.fill(&[900, 400, 401, 400, 5_000]);
    let mut counts = vec![0; 5];
    (0..2_000).for_each(|checksum| counts[switch.rank(Arrival { checksum, ..ARRIVAL }) as usize] += 1);
    assert_eq!(counts[1] + counts[3], 2_000);
    assert!((850..1_150).contains(&counts[1]), "{counts:?}");
}

#[test]
fn classes_hide_small_differences() {
    //= docs/specs/switching.md#SWC-12 classes of load
    let switch = OneSwitch::new(Scheme::Adaptive, 1, 4);
    // With a limit of 100,000, classes start at 5,000, 10,000 and 20,000.
    let taken = |queues: [u64; 4]| {
        switch.fill(&queues);
        let mut taken: Vec<_> = (0..200).map(|checksum| switch.rank(Arrival { checksum, ..ARRIVAL })).collect();
        taken.sort_unstable();
        taken.dedup();
        taken
    };
    assert_eq!(taken([4_999, 0, 5_000, 100]), [0, 1, 3]);
    assert_eq!(taken([9_999, 10_000, 5_000, 30_000]), [0, 2]);
    assert_eq!(taken([19_999, 10_000, 20_000, 30_000]), [0, 1]);
    assert_eq!(taken([20_000, 90_000, 20_000, 30_000]), [0, 1, 2, 3]);
}

#[test]
fn a_flowlet_keeps_its_port_until_it_pauses() {
    //= docs/specs/switching.md#SWC-13 flowlets
    let switch = OneSwitch::new(Scheme::AdaptiveFlowlet, 1, 4);
    let at = |t_ps, flow| Arrival { t_ps, flow, ..ARRIVAL };
    switch.fill(&[50_000, 50_000, 0, 50_000]);
    assert_eq!(switch.rank(at(10_000_000, 1)), 2);
    switch.fill(&[50_000, 0, 50_000, 50_000]);
    // Gaps have a resolution of 4.096 ns.
    assert_eq!(switch.rank(at(10_990_000, 1)), 2, "the flowlet continues");
    assert_eq!(switch.rank(at(11_980_000, 1)), 2, "the flowlet still continues");
    assert_eq!(switch.rank(at(12_000_000, 2)), 1, "another flow");
    assert_eq!(switch.rank(at(12_990_000, 1)), 1, "after a pause");
}

#[test]
fn a_frame_with_an_earlier_time_belongs_to_the_flowlet() {
    //= docs/specs/switching.md#SWC-14 flowlets out of order
    let switch = OneSwitch::new(Scheme::AdaptiveFlowlet, 1, 4);
    let at = |t_ps| Arrival { t_ps, ..ARRIVAL };
    switch.fill(&[50_000, 50_000, 0, 50_000]);
    assert_eq!(switch.rank(at(20_000_000)), 2);
    switch.fill(&[50_000, 0, 50_000, 50_000]);
    assert_eq!(switch.rank(at(12_000_000)), 2, "eight pauses earlier");
    assert_eq!(switch.rank(at(20_500_000)), 2, "the earlier frame did not set the time back");
}

/// Times of the table wrap after 2^60 ps: a flow that was idle for most of that period has paused
/// all the same.
#[test]
fn a_flowlet_ends_after_any_pause() {
    //= docs/specs/switching.md#SWC-14 flowlets out of order
    for idle_ps in [1_000_000, 1 << 40, 1 << 59, (1 << 60) - (1 << 50), (1 << 61) + 1_000_000] {
        let switch = OneSwitch::new(Scheme::AdaptiveFlowlet, 1, 4);
        let at = |t_ps| Arrival { t_ps, ..ARRIVAL };
        switch.fill(&[50_000, 50_000, 0, 50_000]);
        assert_eq!(switch.rank(at(20_000_000)), 2);
        switch.fill(&[50_000, 0, 50_000, 50_000]);
        assert_eq!(switch.rank(at(20_000_000 + idle_ps)), 1, "{idle_ps}");
    }
}

#[test]
fn ofan_has_a_pointer_for_each_class() {
    //= docs/specs/switching.md#SWC-8 OFAN's pointers
    let switch = OneSwitch::new(Scheme::Ofan, 1, 4);
    switch.words[OneSwitch::POINTER as usize].set(6);
    switch.words[OneSwitch::POINTER as usize + 1].set(1);
    let rank = |control| switch.rank(Arrival { control, ..ARRIVAL });
    assert_eq!([rank(false), rank(true), rank(false), rank(false), rank(true)], [2, 1, 3, 0, 2]);
}

#[test]
fn a_pointer_may_start_at_the_shortest_queue() {
    //= docs/specs/switching.md#SWC-10 OFAN from the shortest queue
    let switch = OneSwitch::new(Scheme::OfanShortest, 1, 4);
    switch.fill(&[50, 60, 10, 70]);
    let ranks: Vec<_> = (0..6).map(|_| switch.rank(ARRIVAL)).collect();
    assert_eq!(ranks, [2, 3, 0, 1, 2, 3]);
}

#[test]
fn bytes_per_time_and_time_per_bytes_agree() {
    use crate::config::{OUTSIDE, PortConfig, Thresholds};
    for (gbps, kib_ps) in [(1, 8_192_000), (10, 819_200), (100, 81_920), (400, 20_480)] {
        let port = PortConfig::new(gbps * 1_000_000_000, 0, &Thresholds::NONE, OUTSIDE, 4_150);
        let waiting = QueueState { bytes: 0, limit: 0, ps_per_unit: port.drain(0).ps_per_unit };
        assert_eq!((waiting.kib_ps(), waiting.bytes_in(kib_ps)), (kib_ps, 1_024), "{gbps} Gb/s");
    }
}

/// Starts a frame from host 0 to host 3, in the other pod, at its first switch.
fn begin(chassis: &Chassis, flow: u64) -> Frame {
    chassis.begin(0, flow, false, &PacketFields::default());
    Frame { flow: mix(flow), time_ps: flow * 1_000_000, len: 1_000, ..FRAME }
}

//= docs/specs/conweave.md#CWV-2 source routing
#[test]
fn the_source_switch_selects_the_whole_path_and_the_others_follow_it() {
    let chassis = Chassis::three_tiers(Scheme::ConWeave);
    let mut paths = HashSet::new();
    for flow in 1..100 {
        let mut frame = begin(&chassis, flow);
        chassis.step(&mut frame, 3).unwrap();
        let path = ReunionNote::unpack(chassis.trail.note.get()).path;
        let first = chassis.uplink(frame.port);
        chassis.step(&mut frame, 3).unwrap();
        assert_eq!([first, chassis.uplink(frame.port)], [uplink(path, 0), uplink(path, 1)]);
        paths.insert(path);
    }
    assert_eq!(paths, [[1, 1], [1, 2], [2, 1], [2, 2]].map(|[first, second]| with_uplink(first, 1, second)).into());
}

//= docs/specs/reunion.md#REU-17 notification frames
#[test]
fn a_notification_crosses_all_tiers_over_every_base() {
    for scheme in Scheme::ALL.into_iter().filter(|scheme| scheme.reunion_base().is_some()) {
        let chassis = Chassis::three_tiers(scheme);
        chassis.trail.begin_notice(0, ReunionNote::notify(7, 9).pack(), 0, [0; 2]);
        let frames = chassis.walk(Frame { time_ps: 1_000_000, control: true, ..FRAME }, 3);
        assert_eq!(
            (frames.len(), ReunionNote::unpack(chassis.trail.note.get()).notified()),
            (5, Some((7, 9))),
            "{scheme}"
        );
    }
}

//= docs/specs/reunion.md#REU-2 source routing
#[test]
fn data_follows_the_path_of_its_tier_or_the_base_if_that_is_0() {
    let chassis = Chassis::three_tiers(Scheme::Reunion);
    let taken = |path: u32| -> HashSet<u32> {
        let second = |flow| {
            let mut frame = begin(&chassis, flow);
            chassis.step(&mut frame, 3).unwrap();
            let first = chassis.uplink(frame.port);
            chassis.trail.note.set(ReunionNote::data(with_uplink(first, 1, path), false).pack());
            chassis.step(&mut frame, 3).unwrap();
            let uplink = chassis.uplink(frame.port);
            assert_eq!(
                ReunionNote::unpack(chassis.trail.note.get()).path,
                with_uplink(first, 1, uplink),
                "it records the path taken"
            );
            uplink
        };
        (1..100).map(second).collect()
    };
    assert_eq!([0, 1, 2].map(taken), [[1, 2].into(), [1].into(), [2].into()]);
}
