mod leaf_spine;

use super::between::behind;
use super::*;
use crate::flow_hash::Key;
use crate::scheme::Scheme;
use crate::scheme::note::ReunionNote;
use crate::scheme::tests::chassis::{Chassis, SETTINGS};
use core::cell::Cell;
use leaf_spine::{INTERVAL_PS, Kind, NONE, fabric};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::vec::Vec;
use std::{assert, assert_eq, assert_ne};

/// Two flows from different leaves to one, over one spine, with a frame per microsecond each.
struct Collision {
    fabric: Chassis,
    flows: [(u32, u32, u32); 2],
    t_ps: u64,
}

impl Collision {
    fn new(scheme: Scheme, settings: Settings) -> Self {
        let fabric = Chassis::leaf_spine([4, 4, 4], scheme, settings);
        let flows = [(0, 12), (5, 13)].map(|(src, dst)| (fabric.flow_over(1, src, dst), src, dst));
        Self { fabric, flows, t_ps: 0 }
    }

    /// Sends for `time_ps`; returns the spines of both flows, in the order of first use.
    fn run(&mut self, time_ps: u64, replies: bool) -> [Vec<u32>; 2] {
        let mut taken = [Vec::new(), Vec::new()];
        let end_ps = self.t_ps + time_ps;
        while self.t_ps < end_ps {
            for (at, (flow, src, dst)) in self.flows.into_iter().enumerate() {
                let spine = self.fabric.send(self.t_ps, flow, src, dst, Kind::Data).0.unwrap();
                if taken[at].last() != Some(&spine) {
                    taken[at].push(spine);
                }
                if replies {
                    self.fabric.send(self.t_ps, flow, dst, src, Kind::Reply);
                } else {
                    self.fabric.notify(self.t_ps, 3);
                }
            }
            self.t_ps += 1_000_000;
        }
        taken
    }
}

//= docs/specs/reunion.md#REU-9 links of the source
//= docs/specs/reunion.md#REU-14 notifications
#[test]
fn colliding_elephants_are_separated() {
    //= docs/specs/reunion.md#REU-10 a collision
    //= docs/specs/reunion.md#REU-15 rerouting
    //= docs/specs/reunion.md#REU-17 notification frames
    let mut collision = Collision::new(Scheme::Reunion, SETTINGS);
    // In the first interval they collide; in the second the source is notified.
    assert_eq!(collision.run(2 * INTERVAL_PS, false), [[1], [1]]);
    let [first, second] = collision.run(3 * INTERVAL_PS, false);
    assert!(first.len() + second.len() <= 3, "one of the two is rerouted, once: {first:?}, {second:?}");
    assert_ne!(first.last(), second.last());
    let parted = [first.last().copied(), second.last().copied()];
    let after = collision.run(5 * INTERVAL_PS, false);
    assert_eq!(after.map(|taken| taken.last().copied()), parted, "they keep their paths");
    let count = |switch, key| collision.fabric.counts(switch).get(key).unwrap();
    assert_eq!((0..8).map(|switch| count(switch, "rerouted")).sum::<u64>(), 1);
    assert!(count(3, "notified") >= 1 && count(0, "notified") + count(1, "notified") == 0);
}

#[test]
fn notifications_are_piggybacked_on_replies() {
    //= docs/specs/reunion.md#REU-18 piggybacked notifications
    let mut collision = Collision::new(Scheme::Reunion, Settings { piggyback: true, ..SETTINGS });
    let [first, second] = collision.run(8 * INTERVAL_PS, true);
    assert_eq!(first.len() + second.len(), 3, "{first:?}, {second:?}");
    assert_eq!(poll(&collision.fabric, 3), None);
}

#[test]
fn elephants_are_separated_over_every_base() {
    for scheme in Scheme::ALL.into_iter().filter(|scheme| scheme.reunion_base().is_some()) {
        for piggyback in [false, true] {
            let mut collision = Collision::new(scheme, Settings { piggyback, ..SETTINGS });
            let [first, second] = collision.run(10 * INTERVAL_PS, piggyback);
            assert_ne!(first.last(), second.last(), "{scheme}");
        }
    }
}

#[test]
fn two_slices_may_share_a_link() {
    //= docs/specs/reunion.md#REU-10 a collision
    let mut collision = Collision::new(Scheme::Reunion, Settings { tolerance: 2, ..SETTINGS });
    assert_eq!(collision.run(8 * INTERVAL_PS, false), [[1], [1]]);
}

//= docs/specs/reunion.md#REU-7 the flow path table
#[test]
fn after_a_pause_a_flow_is_routed_by_the_base() {
    //= docs/specs/reunion.md#REU-8 the fallback
    let mut collision = Collision::new(Scheme::Reunion, SETTINGS);
    collision.run(6 * INTERVAL_PS, false);
    let moved = |taken: &[Vec<u32>; 2]| taken.iter().position(|taken| taken[0] != 1);
    let short = collision.run(1_000_000, false);
    let which = moved(&short).unwrap();
    collision.t_ps += 499_000_000;
    assert_eq!(collision.run(1_000_000, false)[which], short[which]);
    collision.t_ps += 502_000_000;
    assert_eq!(moved(&collision.run(1_000_000, false)), None);
    // The pause exceeds half of the period after which times of the table wrap.
    let mut collision = Collision::new(Scheme::Reunion, SETTINGS);
    collision.run(6 * INTERVAL_PS, false);
    collision.t_ps += 1_500_000_000_000_000;
    assert_eq!(moved(&collision.run(1_000_000, false)), None);
}

#[test]
fn after_a_path_failure_a_flow_is_routed_by_the_base() {
    //= docs/specs/reunion.md#REU-2 source routing
    let fabric = fabric();
    let (flow, src, dst) = (fabric.flow_over(1, 0, 12), 0, 12);
    fabric.send(1, flow, src, dst, Kind::Data);
    let memory = fabric.memory(0);
    let name = Chassis::name(flow, src, dst);
    flows::find(&memory, name, 1).unwrap().give(4);
    assert_eq!(fabric.send(2, flow, src, dst, Kind::Data).0, Some(3));
    fabric.most_ports.set(3);
    assert_eq!(fabric.send(3, flow, src, dst, Kind::Data).0, Some(fabric.hashed(flow, src, dst)));
    fabric.most_ports.set(4);
    assert_eq!(fabric.send(4, flow, src, dst, Kind::Data).0, Some(1), "permanently");
}

#[test]
fn replies_and_neighbours_are_not_counted() {
    //= docs/specs/reunion.md#REU-5 the sketch
    let fabric = fabric();
    for frame in 0..5_000 {
        let t_ps = frame * 1_000_000;
        let (_, note) = fabric.send(t_ps, 1, 0, 12, Kind::Reply);
        assert!(!note.elephant);
        fabric.send(t_ps, 1, 0, 1, Kind::Data);
    }
    assert!((0..32).all(|class| fabric.memory(0).load(regions::CLASSES.place(class)) == Some(0)));
}

//= docs/specs/reunion.md#REU-1 frame metadata
#[test]
fn the_first_bottleneck_is_reported() {
    //= docs/specs/reunion.md#REU-11 the first bottleneck
    let fabric = fabric();
    // Two flows of one leaf to two hosts of another, over one spine: both their first and their
    // second links collide.
    let flows = [(0, 12), (1, 13)].map(|(src, dst)| (fabric.flow_over(2, src, dst), src, dst));
    let mut last = ReunionNote::default();
    for t in 0..3_000 {
        for (flow, src, dst) in flows {
            last = fabric.send(t * 1_000_000, flow, src, dst, Kind::Data).1;
        }
    }
    assert_eq!((last.bottleneck, last.hops, last.path), (1, 2, 3));
}

#[test]
fn a_link_is_highly_utilised_above_the_tolerance() {
    //= docs/specs/reunion.md#REU-12 highly utilised links
    for (tolerance, listed) in [(1, [true, true]), (2, [false, true]), (3, [false, false])] {
        let fabric = Chassis::leaf_spine([4, 4, 4], Scheme::Reunion, Settings { tolerance, ..SETTINGS });
        let memory = fabric.memory(3);
        let interval = enter(&memory, 1).unwrap();
        let elephant = |flow: u32, src: u32, dst: u32, spine: u32| {
            fabric.trail.begin(src / 4, false, &Key { addresses: u64::from(src), ports: flow, label: 0 }, &NONE);
            let hop = fabric.here(1, 3, dst);
            destination::arrive(&hop, ReunionNote::data(spine + 1, true).further()).unwrap();
        };
        // One flow over spine 0; two over spine 1, each with several frames.
        (0..5).for_each(|_| elephant(1, 0, 12, 0));
        (0..5).for_each(|_| elephant(2, 4, 13, 1));
        (0..5).for_each(|_| elephant(3, 8, 14, 1));
        let high = Cell::new(Vec::new());
        destination::for_high(&memory, interval, |link| {
            let mut links = high.take();
            links.push(link);
            high.set(links);
        });
        let high = high.take();
        let down = |spine: u32| fabric.port_between(4 + spine, 3);
        assert_eq!([0, 1].map(|spine| high.contains(&down(spine))), listed, "tolerance {tolerance}: {high:?}");
        assert_eq!(high.iter().collect::<HashSet<_>>().len(), high.len(), "each link once");
    }
}

#[test]
fn one_source_per_link_is_notified_that_of_the_last_flow() {
    //= docs/specs/reunion.md#REU-13 the flow to move
    assert_eq!(notified_after_collisions(false), [1, 0]);
    //= docs/specs/reunion.md#REU-18 piggybacked notifications
    assert!(notified_after_collisions(true).is_empty(), "no notification frames with piggybacking");
}

/// Links whose port numbers differ by multiples of the number of slots.
//= docs/specs/reunion.md#REU-13 the flow to move
#[test]
fn links_that_share_a_slot_are_all_reported() {
    let fabric = fabric();
    let memory = fabric.memory(3);
    let links = [3, 131, 259, 387, 515];
    for (link, flow) in links.into_iter().chain([131]).zip((2..).step_by(2)) {
        destination::record(&memory, 1, link, flow, 1).unwrap();
    }
    let read = (0..regions::MAX_BOTTLENECKS).filter_map(|place| destination::read(&memory, place, 1));
    let notified: Vec<_> = read.map(|entry| (entry.link, entry.flow & !1)).collect();
    assert_eq!(notified, [(3, 2), (131, 12), (259, 6), (387, 8)], "the last flow of each, except of a fifth");
}

/// While four other keys occupy its slots, a key is not counted, and they keep their values.
//= docs/specs/reunion.md#REU-4 tables of an interval
#[test]
fn a_full_table_keeps_its_keys() {
    let fabric = fabric();
    let memory = fabric.memory(0);
    let table = memory.links(1);
    let (counted, others): (Vec<u32>, Vec<u32>) = (0..20_000).partition(|key| table.count(*key) == 1);
    assert!(counted.len() > 100 && others.len() > 100);
    assert!(counted.iter().all(|key| table.value(*key) == 1));
    assert!(others.iter().all(|key| table.value(*key) == 0));
}

//= docs/specs/reunion.md#REU-10 a collision
//= docs/specs/reunion.md#REU-14 notifications
#[test]
fn a_mark_hides_no_collision() {
    let fabric = fabric();
    let memory = fabric.memory(0);
    let table = memory.links(1);
    let collides = || behind(&memory, &table, 5, ReunionNote::data(1, true)).bottleneck != 0;
    table.mark(5);
    let seen = [0, 1, 2, 3].map(|elephants| {
        if elephants > 0 {
            assert_eq!(table.count(5), elephants);
        }
        collides()
    });
    assert_eq!(seen, [false, false, true, true]);
    assert!(table.value(5) >= memory::MARKED, "it stays marked");
}

/// A rerouted flow may be notified again, but not in the same interval; a pending notification is
/// not delayed.
//= docs/specs/reunion.md#REU-15 rerouting
#[test]
fn a_rerouted_flow_is_notified_again_from_the_next_interval() {
    let fabric = fabric();
    let memory = fabric.memory(0);
    let known = flows::enter(&memory, 7 << 32, 1, SETTINGS.timeout_ps).unwrap();
    known.moves(3, 0x0102);
    let notified = [3, 4, 5, 7].map(|interval| {
        known.notify(interval);
        known.notified()
    });
    assert_eq!((notified, known.path()), ([0, 4, 4, 7], 0x0102));
}

/// Returns the destinations of a switch's notification frames after collisions on two links.
fn notified_after_collisions(piggyback: bool) -> Vec<u32> {
    let fabric = Chassis::leaf_spine([4, 4, 4], Scheme::Reunion, Settings { piggyback, ..SETTINGS });
    let memory = fabric.memory(3);
    enter(&memory, 1).unwrap();
    for (src, spine) in [(0, 0), (4, 0), (8, 1), (4, 1), (0, 1)] {
        fabric.trail.begin(src / 4, false, &Key { addresses: u64::from(src), ports: 1, label: 0 }, &NONE);
        // The second link is the bottleneck.
        let note = ReunionNote::data(spine + 1, true).further().collided();
        destination::arrive(&fabric.here(1, 3, 12), note).unwrap();
    }
    enter(&memory, INTERVAL_PS + 1).unwrap();
    let notified = fabric.notify(INTERVAL_PS + 1, 3);
    assert!(fabric.notify(INTERVAL_PS + 2, 3).is_empty());
    notified
}

proptest! {
    /// Compared with exact counts: never less, and rarely much more (Cormode and Muthukrishnan,
    /// theorem 1).
    //= docs/specs/reunion.md#REU-5 the sketch
    #[test]
    fn the_sketch_has_the_error_bound_of_its_paper(flows in prop::collection::vec(0u64..5_000, 1..20_000), seed: u64) {
        let fabric = fabric();
        let memory = fabric.memory(0);
        let mut exact: HashMap<u64, u64> = HashMap::new();
        let mut counted = HashMap::new();
        for flow in &flows {
            let name = crate::hash::mix(flow ^ seed);
            *exact.entry(name).or_default() += 1;
            counted.insert(name, sketch::count(&memory, name, 5).unwrap());
        }
        // With k = 2 / eps an estimate exceeds the count by eps of all frames with a probability
        // below 2^-a.
        let slack = 2 * flows.len() as u64 / u64::from(regions::ENTRIES);
        let above = exact.iter().filter(|(name, count)| counted[name] > **count + slack).count();
        prop_assert!(exact.iter().all(|(name, count)| counted[name] >= *count));
        prop_assert!(above * 100 <= exact.len() + 99, "{above} of {}", exact.len());
        // The next interval has a new sketch.
        let name = crate::hash::mix(flows[0] ^ seed);
        prop_assert_eq!(sketch::count(&memory, name, 6), Some(1));
    }

    /// Elephants are the largest flows by sorting, to the resolution of powers of two.
    //= docs/specs/reunion.md#REU-6 elephants
    #[test]
    fn elephants_are_the_largest_flows(sizes in prop::collection::vec(1u64..3_000, 1..40)) {
        let fabric = fabric();
        let memory = fabric.memory(0);
        let mut name = 0;
        let mut count = |interval: u64| sizes.iter().map(|size| {
            name += 1;
            (0..*size).fold(false, |_, _| {
                let frames = sketch::count(&memory, crate::hash::mix(name), interval).unwrap();
                sketch::is_large(&memory, frames)
            })
        }).collect::<Vec<_>>();
        prop_assert!(!count(1).contains(&false), "until sizes are known, all are elephants within the limit");
        sketch::begin(&memory, 2).unwrap();
        let large = count(2);
        let mut sorted = sizes.clone();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        // Four uplinks with a tolerance of 1: at most four flows, or more if the largest are in one
        // class.
        let class = |size: u64| 64 - size.leading_zeros();
        let top = class(sorted[0]);
        let least = (1..=top).find(|least| sizes.iter().filter(|size| class(**size) >= *least).count() <= 4).unwrap_or(top);
        // An empty class is equivalent to the one above.
        let least = (least..=top).find(|least| sizes.iter().any(|size| class(*size) == *least)).unwrap();
        let expected: Vec<bool> = sizes.iter().map(|size| class(*size) >= least).collect();
        prop_assert_eq!(large, expected, "{:?}", sizes);
        prop_assert_eq!((0..10).filter(|_| sketch::admit(&memory, 2).unwrap()).count(), 4, "no more than these");
    }

    /// Compared with a map, as long as no set of slots is full.
    //= docs/specs/reunion.md#REU-4 tables of an interval
    #[test]
    fn a_ledger_is_a_map_that_empties_itself(
        keys in prop::collection::vec(0u32..100, 1..400),
        next in prop::collection::vec(0u32..100, 1..100),
    ) {
        let fabric = fabric();
        let memory = fabric.memory(0);
        for (interval, keys) in [(1, &keys), (2, &next), (3, &next)] {
            let table = memory.links(interval);
            let mut model: HashMap<u32, u32> = HashMap::new();
            for key in keys {
                *model.entry(*key).or_default() += 1;
                prop_assert_eq!(table.count(*key), model[key]);
            }
            for key in 0..100 {
                prop_assert_eq!(table.value(key), model.get(&key).copied().unwrap_or(0));
            }
        }
    }

    /// Compared with algorithm 2, stopped at the first path found, over all paths of a leaf-spine.
    //= docs/specs/reunion.md#REU-16 an available path
    #[test]
    fn a_path_is_found_if_algorithm_2_finds_one(
        elephants in prop::collection::vec((0u32..4, 0u32..2, 1u32..4), 0..12),
        tolerance in 1u32..4,
        flow: u32,
    ) {
        let fabric = Chassis::leaf_spine([4, 4, 4], Scheme::Reunion, Settings { tolerance, ..SETTINGS });
        let links = fabric.memory(0).links(1);
        let ports = |spine: u32| [fabric.port_between(0, 4 + spine), fabric.port_between(4 + spine, 3)];
        let mut model: HashMap<u32, u32> = HashMap::new();
        for (spine, link, count) in elephants {
            for _ in 0..count {
                links.count(ports(spine)[link as usize]);
                *model.entry(ports(spine)[link as usize]).or_default() += 1;
            }
        }
        let is_available = |spine: u32| ports(spine).iter().all(|link| model.get(link).copied().unwrap_or(0) < tolerance);
        let found = fabric.find(flow);
        prop_assert_eq!(found.is_some(), (0..4).any(is_available));
        if let Some(path) = found {
            prop_assert!(is_available(path - 1));
            for port in ports(path - 1) {
                prop_assert_eq!(links.value(port), model.get(&port).copied().unwrap_or(0) + 1, "it is counted there");
            }
        }
    }
}

#[test]
fn a_path_search_starts_at_a_random_path() {
    //= docs/specs/reunion.md#REU-16 an available path
    let found = |flow| fabric().find(flow).unwrap();
    let all: HashSet<u32> = (0..64).map(found).collect();
    assert_eq!(all, HashSet::from([1, 2, 3, 4]));
}

#[test]
fn interval_numbers_wrap() {
    //= docs/specs/reunion.md#REU-3 intervals end with a frame
    let fabric = fabric();
    let memory = fabric.memory(0);
    assert_eq!(enter(&memory, 0), Some(1));
    assert_eq!(enter(&memory, INTERVAL_PS - 1), Some(1));
    assert_eq!(enter(&memory, INTERVAL_PS), Some(2));
    assert_eq!(enter(&memory, INTERVAL_PS / 2), Some(2), "a late frame belongs to the current interval");
    assert_eq!(enter(&memory, 9 * INTERVAL_PS + 7), Some(3), "intervals without frames do not count");
    memory.word(single::INTERVAL).unwrap().set(memory::INTERVALS);
    assert_eq!((enter(&memory, 20 * INTERVAL_PS), memory::before(1)), (Some(1), memory::INTERVALS));
}
