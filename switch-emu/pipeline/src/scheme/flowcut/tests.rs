//! Flows over two leaves under four spines, compared with a list of the packets in flight.

use super::*;
use crate::flow_hash::Key;
use crate::scheme::tests::chassis::{Chassis, FRAME, FramePath, SETTINGS, US};
use crate::scheme::{FlowcutRule, Scheme};
use proptest::prelude::*;
use spray_wire::flowcut::ONE;
use spray_wire::switch_view::PacketFields;
use std::collections::{HashMap, HashSet};
use std::vec::Vec;
use std::{assert, assert_eq, assert_ne, vec};

const BOTH: [Scheme; 2] = [Scheme::FlowcutIngress, Scheme::FlowcutSwitch];
const LEN: u32 = 4_000;
const SPINES: u32 = 4;

fn two_leaves(scheme: Scheme) -> Chassis {
    Chassis::leaf_spine([2, SPINES, 1], scheme, SETTINGS)
}

/// Sends a frame from one leaf's host to the other's.
fn cross(
    net: &Chassis,
    from: u32,
    flow: u64,
    reply: bool,
    fields: &PacketFields,
    frame: &Frame,
) -> Result<FramePath, Cause> {
    net.begin(from, flow, reply, fields);
    net.cross(Frame { switch: from, flow, checksum: flow as u32, ..*frame }, 1 - from)
}

/// Sends packet `psn` of a flow from leaf 0 at `t_ps`.
fn send(net: &Chassis, t_ps: u64, flow: u64, psn: u64) -> Result<FramePath, Cause> {
    send_by(net, (t_ps, t_ps), flow, psn)
}

/// Sends a packet; the host's clock differs from the switch's.
fn send_by(net: &Chassis, (t_ps, stamp_ps): (u64, u64), flow: u64, psn: u64) -> Result<FramePath, Cause> {
    let fields = PacketFields { number: psn, stamp_ps, ..PacketFields::default() };
    cross(net, 0, flow, false, &fields, &Frame { time_ps: t_ps, len: LEN, ..FRAME })
}

/// Acknowledges the packet before `psn`, which was sent at `stamp_ps`.
fn acknowledge(net: &Chassis, t_ps: u64, flow: u64, psn: u64, stamp_ps: u64) -> FramePath {
    let fields = PacketFields { number: psn, stamp_ps, hops: 3, is_ack: true };
    cross(net, 1, flow, true, &fields, &Frame { time_ps: t_ps, len: 100, control: true, ..FRAME }).unwrap()
}

/// Gives `spine` the shortest queue.
fn prefer(net: &Chassis, spine: u32) {
    (0..SPINES).for_each(|at| net.waiting[net.port_between(0, 2 + at) as usize].set(u64::from(at != spine) * 50_000));
}

#[test]
fn a_flow_changes_its_path_when_nothing_is_in_flight() {
    //= docs/specs/flowcut-switch.md#FCS-1 switches with entries
    //= docs/specs/flowcut-switch.md#FCS-2 one port for a flowcut
    //= docs/specs/flowcut-switch.md#FCS-3 the least loaded port
    //= docs/specs/flowcut-switch.md#FCS-4 acknowledged packets
    for net in BOTH.map(two_leaves) {
        prefer(&net, 2);
        assert_eq!(send(&net, 10 * US, 7, 0).unwrap().spine.unwrap(), 2);
        prefer(&net, 3);
        assert_eq!(send(&net, 11 * US, 7, 1).unwrap().spine.unwrap(), 2, "one packet is in flight");
        acknowledge(&net, 20 * US, 7, 1, 10 * US);
        assert_eq!(send(&net, 21 * US, 7, 2).unwrap().spine.unwrap(), 2, "two packets are in flight");
        // A reply that is no ACK, and an ACK of an earlier packet, are ignored.
        let other = PacketFields { stamp_ps: 21 * US, ..PacketFields::default() };
        cross(&net, 1, 7, true, &other, &Frame { time_ps: 22 * US, control: true, ..FRAME }).unwrap();
        acknowledge(&net, 23 * US, 7, 2, 11 * US);
        assert_eq!(send(&net, 24 * US, 7, 3).unwrap().spine.unwrap(), 2);
        acknowledge(&net, 35 * US, 7, 4, 24 * US);
        assert_eq!(send(&net, 36 * US, 7, 4).unwrap().spine.unwrap(), 3, "the latest ACK acknowledges all");
        assert_eq!(send(&net, 36 * US, 8, 0).unwrap().spine.unwrap(), 3, "another flow has its own entry");
    }
}

#[test]
fn time_starts_at_0_and_false_echoes_are_ignored() {
    //= docs/specs/flowcut-switch.md#FCS-4 acknowledged packets
    for net in BOTH.map(two_leaves) {
        prefer(&net, 2);
        send(&net, 0, 7, 0).unwrap();
        prefer(&net, 1);
        assert_eq!(send(&net, US, 7, 1).unwrap().spine.unwrap(), 2, "one packet is in flight");
        // The echoed time is one at which nothing had been sent.
        assert_eq!(acknowledge(&net, 2 * US, 7, 2, u64::MAX).detour, 0, "no flow drains");
        assert_eq!(send(&net, 3 * US, 7, 2).unwrap().spine.unwrap(), 2);
        acknowledge(&net, 9 * US, 7, 3, 3 * US);
        assert_eq!(send(&net, 10 * US, 7, 3).unwrap().spine.unwrap(), 1);
    }
}

#[test]
fn acks_return_over_the_spine_of_the_data() {
    //= docs/specs/flowcut-switch.md#FCS-8 reverse path
    let ways = |scheme| {
        let net = two_leaves(scheme);
        let way = |flow: u64| {
            prefer(&net, flow as u32 % SPINES);
            let there = send(&net, 10 * US + flow, flow * 7_919, 0).unwrap().spine.unwrap();
            there == acknowledge(&net, 20 * US + flow, flow * 7_919, 1, 10 * US + flow).spine.unwrap()
        };
        (1..33).map(way).collect::<Vec<_>>()
    };
    assert!(ways(Scheme::FlowcutSwitch).iter().all(|same| *same));
    assert!(ways(Scheme::FlowcutIngress).iter().any(|same| !same), "they are routed by their hash");
}

#[test]
fn a_flow_drains_when_its_round_trip_times_are_too_long() {
    //= docs/specs/flowcut-switch.md#FCS-5 draining
    // The host's clock is equal to that of the switches, an hour ahead or 50 us behind.
    let hosts = [0, 3_600_000_000 * US, 0_u64.wrapping_sub(50 * US)];
    for (net, clock) in BOTH.into_iter().flat_map(|scheme| hosts.map(|clock| (two_leaves(scheme), clock))) {
        let stamp = |t_ps: u64| t_ps.wrapping_add(clock);
        prefer(&net, 1);
        let mut paused = Vec::new();
        // The round-trip times are 50 us, then 300: six times as long.
        for psn in 0..40 {
            let t_ps = (100 + psn) * US;
            send_by(&net, (t_ps, stamp(t_ps)), 7, psn).unwrap();
        }
        for psn in 0..40u64 {
            let rtt_ps = if psn < 10 { 50 * US } else { 300 * US };
            let acknowledge = || acknowledge(&net, (100 + psn) * US + rtt_ps, 7, psn + 1, stamp((100 + psn) * US));
            let way = acknowledge();
            assert_eq!(acknowledge().detour, way.detour, "a repeated ACK has no effect");
            assert!(way.detour == 0 || way.detour == PAUSE);
            paused.push(way.detour == PAUSE);
        }
        let first = paused.iter().position(|paused| *paused).expect("it drains");
        assert!((10..25).contains(&first), "{paused:?}");
        assert!(paused[first..39].iter().all(|paused| *paused), "until no packet is in flight");
        assert!(!paused[39]);
        prefer(&net, 0);
        assert_eq!(send_by(&net, (500 * US, stamp(500 * US)), 7, 40).unwrap().spine.unwrap(), 0);
        // The average has been reset.
        send_by(&net, (501 * US, stamp(501 * US)), 7, 41).unwrap();
        assert_eq!(acknowledge(&net, 550 * US, 7, 41, stamp(500 * US)).detour, 0);
    }
}

#[test]
fn ratio_weight_and_trend_are_configurable() {
    //= docs/specs/flowcut-switch.md#FCS-5 draining
    // The round-trip times are 50 us, then 150.
    let first = |rule: FlowcutRule| {
        let mut net = two_leaves(Scheme::FlowcutIngress);
        net.switches.iter_mut().for_each(|switch| switch.flowcut = rule);
        for psn in 0..41 {
            send(&net, (100 + psn) * US, 7, psn).unwrap();
        }
        let rtt_ps = |psn| if psn < 10 { 50 * US } else { 150 * US };
        let drains =
            |psn: u64| acknowledge(&net, (100 + psn) * US + rtt_ps(psn), 7, psn + 1, (100 + psn) * US).detour == PAUSE;
        (0..40).position(drains)
    };
    let flat = FlowcutRule { trend: u32::MAX, ..FlowcutRule::default() };
    assert_eq!(first(FlowcutRule::default()), Some(10), "a sudden factor of three is a trend");
    assert_eq!(first(flat), None, "but below the ratio");
    let low = FlowcutRule { ratio: 2 * ONE, ..flat };
    let slow = first(low).unwrap();
    let fast = first(FlowcutRule { weight: ONE / 2, ..low }).unwrap();
    assert!(10 < fast && fast < slow, "{fast} {slow}");
}

#[test]
fn a_drain_may_end_early_and_later_packets_keep_the_port() {
    //= docs/specs/flowcut-switch.md#FCS-9 early resumption
    let mut net = two_leaves(Scheme::FlowcutIngress);
    net.switches.iter_mut().for_each(|switch| switch.resume_packets = 3);
    prefer(&net, 1);
    for psn in 0..10 {
        send(&net, (100 + psn) * US, 7, psn).unwrap();
    }
    acknowledge(&net, 110 * US, 7, 1, 100 * US);
    let paused: Vec<bool> =
        (1..9).map(|psn| acknowledge(&net, 900 * US, 7, psn + 1, (100 + psn) * US).detour == PAUSE).collect();
    // When packet 7 is the lowest that has not arrived, 7 to 9 are in flight.
    assert_eq!(paused, [true, true, true, true, true, false, false, false]);
    prefer(&net, 0);
    assert_eq!(send(&net, 901 * US, 7, 10).unwrap().spine.unwrap(), 1);
}

/// Returns the set of a flow in the table of the first switch.
fn set_of(net: &Chassis, flow: u64) -> u32 {
    net.trail.begin(0, false, &Key { addresses: flow, ports: 0, label: 0 }, &PacketFields::default());
    (mix(net.trail.flow() ^ net.switches[0].salt) >> 32) as u32 % 512
}

//= docs/specs/flowcut-switch.md#FCS-3 the least loaded port
#[test]
fn flows_of_a_set_that_was_never_full_take_the_least_loaded_port() {
    let net = two_leaves(Scheme::FlowcutIngress);
    let flows: Vec<u64> = (1..40_000).map(mix).filter(|flow| set_of(&net, *flow) == 7).take(32).collect();
    assert_eq!(flows.len(), 32);
    for (four, t_us) in flows.chunks(4).zip(1..) {
        prefer(&net, t_us as u32 % SPINES);
        for flow in four {
            assert_eq!(send(&net, t_us * 100 * US, *flow, 0).unwrap().spine.unwrap(), t_us as u32 % SPINES);
        }
        for flow in four {
            acknowledge(&net, (t_us * 100 + 10) * US, *flow, 1, t_us * 100 * US);
        }
    }
}

/// Returns the wanted flows that find their set full when the flows start one after the other.
fn without_an_entry(net: &Chassis, flows: &[u64], is_wanted: impl Fn(u64) -> bool) -> Vec<u64> {
    let mut sets: HashMap<u32, u32> = HashMap::new();
    let is_without = |flow: &u64| {
        let taken = sets.entry(set_of(net, *flow)).or_default();
        *taken += 1;
        *taken > 4 && is_wanted(*flow)
    };
    flows.iter().copied().filter(is_without).collect()
}

#[test]
fn flows_without_an_entry_use_their_hash_and_are_never_overtaken() {
    //= docs/specs/flowcut-switch.md#FCS-6 a full table
    let net = two_leaves(Scheme::FlowcutIngress);
    let hash = |flow: u64| {
        let (switch, frame) = (&net.switches[0], Frame { flow, ..FRAME });
        hashed::rank(switch, &crate::routes::Routes::group(&net, 0, 0, 1).unwrap(), frame.flow)
    };
    // There are more flows than entries, all with packets in flight.
    let flows: Vec<u64> = (1..4_000).map(mix).collect();
    prefer(&net, 2);
    let without = |flow: &u64| send(&net, 10 * US, *flow, 0).unwrap().spine.unwrap() != 2;
    let without: Vec<u64> = flows.iter().copied().filter(without).collect();
    assert_eq!(without, without_an_entry(&net, &flows, |flow| hash(flow) != 2));
    assert!(without.len() > 500, "{}", without.len());
    assert!(without.iter().all(|flow| send(&net, 11 * US, *flow, 1).unwrap().spine.unwrap() == hash(*flow)));
    // When entries become free, flows without one still use their hash until none of their packets
    // is in flight.
    let has_entry = |flow: &&u64| !without.contains(flow);
    for flow in flows.iter().filter(has_entry) {
        acknowledge(&net, 20 * US, *flow, 1, 10 * US);
    }
    prefer(&net, 3);
    assert!(without.iter().all(|flow| send(&net, 30 * US, *flow, 2).unwrap().spine.unwrap() == hash(*flow)));
}

#[test]
fn a_flow_with_a_removed_port_waits() {
    //= docs/specs/flowcut-switch.md#FCS-7 ports removed by routing
    for net in BOTH.map(two_leaves) {
        prefer(&net, 3);
        send(&net, 10 * US, 7, 0).unwrap();
        net.most_ports.set(3);
        assert_eq!(send(&net, 11 * US, 7, 1), Err(Cause::NoRoute));
        // The maximum round-trip time of the test is 100 us.
        assert_eq!(send(&net, 110 * US, 7, 1), Err(Cause::NoRoute));
        assert_ne!(send(&net, 111 * US, 7, 1).unwrap().spine.unwrap(), 3);
        // After an ACK the flow continues at once.
        net.most_ports.set(4);
        send(&net, 300 * US, 9, 0).unwrap();
        net.most_ports.set(3);
        acknowledge(&net, 310 * US, 9, 1, 300 * US);
        assert_ne!(send(&net, 311 * US, 9, 1).unwrap().spine.unwrap(), 3);
    }
}

proptest! {
    /// Random packets and ACKs of a few flows, compared with lists of packets in flight: a flow
    /// changes its spine only when its list is empty, and then takes the least loaded one; the
    /// count of flows with packets in flight is the number of lists that are not empty.
    #[test]
    fn random_histories_agree_with_lists(steps in prop::collection::vec((0..5u64, any::<bool>(), 0..SPINES), 1..400)) {
        for net in BOTH.map(two_leaves) {
            let mut on_way: Vec<Vec<u64>> = vec![Vec::new(); 5];
            let mut spines = [u32::MAX; 5];
            let mut most = 0;
            for (step, (flow, sends, shortest)) in (1u64..).zip(&steps) {
                let (list, t_ps) = (&mut on_way[*flow as usize], step * US);
                prefer(&net, *shortest);
                if *sends {
                    let spine = send(&net, t_ps, flow * 104_729 + 1, step).unwrap().spine.unwrap();
                    let expected = if list.is_empty() { *shortest } else { spines[*flow as usize] };
                    prop_assert_eq!(spine, expected);
                    spines[*flow as usize] = spine;
                    list.push(t_ps);
                } else if !list.is_empty() {
                    // Acknowledges the packet in the middle: those before it have arrived too.
                    let arrived = list.len() / 2;
                    let stamp_ps = list[arrived];
                    list.drain(..=arrived);
                    acknowledge(&net, t_ps, flow * 104_729 + 1, step, stamp_ps);
                }
                let active = on_way.iter().filter(|list| !list.is_empty()).count() as u64;
                most = most.max(active);
                let word = net.words[(net.switches[0].memory + ACTIVE) as usize].get();
                prop_assert_eq!((word & 0xffff_ffff, word >> 32), (active, most));
            }
        }
    }
}

/// Sends a packet from host 0 to host 3, in the next group, while the shortest path has a queue.
/// Returns the group in its note, and the groups that it crosses.
fn detour_of(net: &Chassis, t_ps: u64, flow: u64) -> (u32, Vec<u32>) {
    net.fill(net.port_between(0, 2), Frame { time_ps: t_ps, len: 20_000, ..FRAME });
    net.begin(0, flow, false, &PacketFields { stamp_ps: t_ps, ..PacketFields::default() });
    let ways = net.walk(Frame { time_ps: t_ps, len: LEN, flow: mix(flow), ..FRAME }, 3);
    let mut groups: Vec<u32> = ways[..ways.len() - 1].iter().map(|frame| frame.switch / 2).collect();
    groups.dedup();
    (u32::from(ways[0].detour) - 2, groups)
}

//= docs/specs/flowcut-switch.md#FCS-11 detours
#[test]
fn simultaneous_flowcuts_use_all_third_groups() {
    for net in BOTH.map(Chassis::dragonfly) {
        let noted: HashSet<u32> = (1..40).map(|flow| detour_of(&net, 10 * US, flow).0).collect();
        assert_eq!(noted, [2, 3].into());
    }
}

//= docs/specs/flowcut-switch.md#FCS-11 detours
#[test]
fn a_flow_changes_its_third_group_when_nothing_is_in_flight() {
    let net = Chassis::dragonfly(Scheme::FlowcutSwitch);
    let mut noted = HashSet::new();
    for t_ps in (1..40).map(|step| step * 100 * US) {
        let (via, groups) = detour_of(&net, t_ps, 7);
        assert_eq!(groups, [0, via, 1]);
        assert_eq!(detour_of(&net, t_ps + 1, 7), (via, groups), "a packet of the same flowcut");
        let fields = PacketFields { number: 1, stamp_ps: t_ps + 1, hops: 5, is_ack: true };
        net.begin(3, 7, true, &fields);
        net.walk(Frame { time_ps: t_ps + 50 * US, switch: 3, control: true, ..FRAME }, 0);
        noted.insert(via);
    }
    assert_eq!(noted, [2, 3].into());
}
