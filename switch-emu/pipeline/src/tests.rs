use crate::config::{MAX_CHANGES, OUTSIDE, PortConfig, Thresholds, UNIT_BITS};
use crate::counters::PortCounters;
use crate::frame::Frame;
use crate::link::{Flap, LinkChange, LinkState, Share};
use crate::queue::PortQueues;
use crate::scheme::Scheme;
use crate::scheme::tests::chassis::{Chassis, LATENCY_PS};
use crate::shim::{SHIM_BYTES, Shim};
use crate::{Verdict, port, process, process_any};
use core::cell::Cell;
use core::net::Ipv4Addr;
use spray_wire::{Body, Common, DSCP_DATA, Data, Ecn, Envelope, EvPort, Ports, emit};
use std::vec::Vec;
use std::{assert, assert_eq, assert_ne, vec};

const THRESHOLDS: Thresholds = Thresholds {
    limit_bytes: 100,
    mark_min_bytes: 20,
    mark_max_bytes: 80,
    control_limit_bytes: 50,
    trim: true,
    ..Thresholds::NONE
};

//= docs/specs/virtual-queue.md#VQ-1 slots
#[test]
fn a_slot_holds_about_three_frames() {
    for gbps in [1, 10, 25, 100, 400, 800] {
        for frame in [1_500u32, 3_114, 4_150] {
            let port = PortConfig::new(gbps * 1_000_000_000, 0, &THRESHOLDS, OUTSIDE, frame);
            let frames_x100 =
                u64::from(Share::unpack(port.states[0].share).slot_units) * 100 / (1 << UNIT_BITS) / u64::from(frame);
            assert!((200..=430).contains(&frames_x100), "{gbps} Gb/s, {frame} B: {frames_x100}");
        }
    }
}

//= docs/specs/virtual-queue.md#VQ-3 rates without a division
#[test]
fn fixed_point_rates_are_exact() {
    for (gbps, ps_per_byte) in [(100, 80), (400, 20), (10, 800), (1, 8_000)] {
        let port = PortConfig::new(gbps * 1_000_000_000, 0, &THRESHOLDS, OUTSIDE, 3_114);
        assert_eq!(port.drain(0).delay_ps(0, 1_000), 1_000 * ps_per_byte, "{gbps} Gb/s");
    }
}

#[test]
fn changes_apply_from_their_time() {
    let mut port = PortConfig::new(100_000_000_000, 0, &THRESHOLDS, OUTSIDE, 3_114);
    let slow = |at_ps, rate_ppm| LinkChange { at_ps, state: LinkState { rate_ppm, ..LinkState::UP } };
    assert!(port.push(100_000_000_000, &slow(1_000_000, 500_000)));
    assert!(port.push(100_000_000_000, &slow(2_000_000, 1_000_000)));
    let delay = |at_ps| port.drain(at_ps).delay_ps(0, 100);
    assert_eq!([delay(0), delay(999_999), delay(1_000_000), delay(1_999_999)], [8_000, 8_000, 16_000, 16_000]);
    assert_eq!(delay(2_000_000), 8_000);
    let mut full = port;
    assert!((2..MAX_CHANGES as u64).all(|i| full.push(1, &slow(i * 2_000_000, 1))));
    assert!(!full.push(1, &slow(u64::MAX - 1, 1)));
}

/// A change applied while the port runs replaces pending changes, and any number of changes fit.
#[test]
fn an_amended_port_changes_at_the_given_time() {
    let rate = 100_000_000_000;
    let mut port = PortConfig::new(rate, 0, &THRESHOLDS, OUTSIDE, 3_114);
    let slow = |at_ps, rate_ppm| LinkChange { at_ps, state: LinkState { rate_ppm, ..LinkState::UP } };
    assert!(port.push(rate, &slow(1_000_000, 500_000)) && port.push(rate, &slow(9_000_000, 100_000)));
    port.amend(rate, &slow(2_000_000, 250_000));
    let delay = |port: &PortConfig, at_ps| port.drain(at_ps).delay_ps(0, 100);
    assert_eq!([1_999_999, 2_000_000, 10_000_000].map(|at_ps| delay(&port, at_ps)), [16_000, 32_000, 32_000]);
    for step in 1..100 {
        port.amend(rate, &slow(2_000_000 + step, if step % 2 == 0 { 500_000 } else { 1_000_000 }));
        assert_eq!(delay(&port, 2_000_000 + step), if step % 2 == 0 { 16_000 } else { 8_000 });
    }
    let mut fresh = PortConfig::new(rate, 0, &THRESHOLDS, OUTSIDE, 3_114);
    fresh.amend(rate, &slow(0, 500_000));
    assert_eq!(delay(&fresh, 0), 16_000);
}

/// The share of marked frames by queue length: DCQCN's curve, with Reunion's setting and at
/// extremes of the scale.
//= docs/specs/switch.md#SW-10 marking
#[test]
fn marks_grow_to_the_probability_and_then_jump() {
    for (min, max, ppm) in
        [(100_000, 400_000, 200_000), (20, 80, 1_000_000), (0, 8_000_000, 10_000), (500, 500, 200_000)]
    {
        let thresholds = Thresholds { mark_min_bytes: min, mark_max_bytes: max, mark_ppm: ppm, ..THRESHOLDS };
        let port = PortConfig::new(100_000_000_000, 0, &thresholds, OUTSIDE, 3_114);
        let marks = |waiting: u64| {
            let counters = PortCounters::<Cell<u64>>::default();
            for step in 0..100_000u64 {
                let mut ecn = 2;
                port.mark(&mut ecn, waiting, ((step << 32) / 100_000) as u32, &counters);
            }
            counters.marks.get()
        };
        let (min, max, most) = (u64::from(min), u64::from(max), u64::from(ppm) / 10);
        assert_eq!([marks(min), marks(max), marks(max + 1)], [0, if min == max { 0 } else { 100_000 }, 100_000]);
        if min < max {
            let near = |found: u64, expected: u64| {
                assert!(found.abs_diff(expected) <= 1 + expected / 50, "{found} for {expected}");
            };
            near(marks((min + max) / 2), most / 2);
            near(marks(max - (max - min) / 1_000 - 1), most);
        }
    }
}

/// A port may hold `alpha` times the free memory, and never more than the free memory.
//= docs/specs/switch.md#SW-20 shared buffer
#[test]
fn a_shared_buffer_is_limited_by_its_free_part() {
    let limit = |alpha_milli: u32, used, waiting| {
        let thresholds =
            Thresholds { limit_bytes: 900, shared_bytes: 1_000, alpha_ppm: 1_000 * alpha_milli, ..THRESHOLDS };
        thresholds.limit_within(used, waiting)
    };
    assert_eq!([limit(1_000, 0, 0), limit(1_000, 400, 400), limit(1_000, 500, 100)], [900, 600, 500]);
    assert_eq!([limit(500, 400, 0), limit(8_000, 900, 50), limit(8_000, 1_200, 50)], [300, 150, 0]);
}

fn plain_frame(time_ps: u64) -> Frame {
    Frame {
        flow: 0,
        time_ps,
        switch: 0,
        port: 0,
        checksum: 0,
        len: 1_000,
        ttl: 64,
        ecn: 2,
        control: false,
        trimmed: 0,
        trimmed_len: 0,
        emulated: true,
        detour: 0,
    }
}

/// A flapping link is down at the start of each cycle, counted from the change.
//= docs/specs/switch.md#SW-7 losses of a link
#[test]
fn a_flapping_link_is_down_at_the_start_of_each_cycle() {
    let thresholds = Thresholds { limit_bytes: 10_000, ..Thresholds::NONE };
    let mut port = PortConfig::new(100_000_000_000, 0, &thresholds, OUTSIDE, 3_114);
    let flap = Some(Flap { period_ps: 1_000, down_ps: 300 });
    assert!(port.push(100_000_000_000, &LinkChange { at_ps: 5_000, state: LinkState { flap, ..LinkState::UP } }));
    for (t_ps, is_out) in
        [(4_999, false), (5_000, true), (5_299, true), (5_300, false), (5_999, false), (6_000, true), (6_300, false)]
    {
        let (queues, counters) = (PortQueues::<Cell<u64>>::default(), PortCounters::<Cell<u64>>::default());
        let crossed = port.transmit(&mut plain_frame(t_ps), u64::MAX, &queues, &counters, |_, _| {});
        assert_eq!(crossed.is_err(), is_out, "{t_ps}");
        assert_eq!(counters.drops_silent.get(), u64::from(is_out), "{t_ps}");
    }
}

/// The chassis reports the events of a port for its time series, and nothing of an excluded port.
#[test]
fn a_port_reports_its_events_if_enabled() {
    for counts in [0, 1] {
        let events = Cell::new(0);
        let mut port = PortConfig::new(100_000_000_000, 0, &THRESHOLDS, OUTSIDE, 3_114);
        port.counts = counts;
        let (queues, counters) = (PortQueues::<Cell<u64>>::default(), PortCounters::<Cell<u64>>::default());
        // One frame passes, one has an expired TTL, and one does not fit into the queue.
        for (len, ttl) in [(64, 64), (64, 1), (1_000, 64)] {
            let mut frame = Frame { len, ttl, ..plain_frame(0) };
            let _ = port.transmit(&mut frame, u64::MAX, &queues, &counters, |_, _| events.set(events.get() + 1));
        }
        assert_eq!(events.get(), 3 * u32::from(counts));
    }
}

/// Returns a data frame with a payload of 1,000 bytes from host 0 to host 3.
fn data_frame(ttl: u8) -> Vec<u8> {
    let address = |host| Ipv4Addr::new(10, 0, 0, host).into();
    let envelope = Envelope {
        src_mac: [2; 6],
        dst_mac: [4; 6],
        src: address(0),
        dst: address(3),
        src_port: EvPort::new(50_000),
        dst_port: Ports::DEFAULT.first(),
        dscp: DSCP_DATA,
        ecn: Ecn::Ect0,
        ttl,
    };
    let body = Body::Data(Data { payload_bytes: 1_000, ..Data::default() });
    let mut frame = vec![0; 2_000];
    let bytes = emit(&mut frame, &envelope, &Common::default(), &body, &[7; 1_000]).unwrap();
    frame.truncate(bytes);
    frame
}

/// Offset of the TTL after the Ethernet header.
const TTL: usize = 14 + 8;

/// Between two pods a frame crosses five switches, so four links; the host emulates the fifth.
//= docs/specs/switch.md#SW-2 a chassis of switches
//= docs/specs/switch.md#SW-13 virtual time after a port
#[test]
fn a_frame_crosses_three_tiers_and_has_no_time_if_it_had_none() {
    for (virtual_time_ps, links) in [(5_000_000, 4), (0, 5)] {
        let chassis = Chassis::three_tiers(Scheme::Ecmp);
        let frame = data_frame(64);
        let len = frame.len() as u64;
        let mut shimmed = Shim { virtual_time_ps, ..Shim::default() }.before(&frame).to_vec();
        shimmed.extend(frame);
        let verdict = process(&chassis, &mut shimmed[..], 0, || 7_000_000);
        assert_eq!(verdict, Verdict::Redirect { port: chassis.port_to(3), trimmed_len: 0 });
        let (head, frame) = shimmed.split_first_chunk::<SHIM_BYTES>().unwrap();
        let after_ps = Shim::read(head).unwrap().virtual_time_ps;
        let expected_ps = if virtual_time_ps == 0 { 0 } else { virtual_time_ps + links * (LATENCY_PS + len * 80) };
        assert_eq!((after_ps, frame[TTL]), (expected_ps, 64 - links as u8));
    }
}

/// Between two pods a frame that goes hop by hop returns before three switches, with the number of
/// the next one. The resulting frame and the counters are those of a frame that crosses all
/// switches at once.
//= docs/specs/switch.md#SW-32 hop by hop
#[test]
fn hop_by_hop_gives_the_same_frame_as_all_switches_at_once() {
    let [whole, hops] = [0, 1].map(|hop_by_hop| {
        let mut chassis = Chassis::three_tiers(Scheme::Ecmp);
        chassis.globals.hop_by_hop = hop_by_hop;
        chassis
    });
    let mut frame = Shim { virtual_time_ps: 5_000_000, ..Shim::default() }.before(&data_frame(64)).to_vec();
    frame.extend(data_frame(64));
    let mut expected = frame.clone();
    let to_host = process(&whole, &mut expected[..], 0, || 0);
    for _ in 0..3 {
        assert_eq!(process(&hops, &mut frame[..], 0, || 0), Verdict::Return { trimmed_len: 0 });
        let shim = Shim::read(frame.first_chunk().unwrap()).unwrap();
        assert!(shim.between && shim.switch < 12, "{shim:?}");
    }
    assert_eq!((process(&hops, &mut frame[..], 0, || 0), &frame), (to_host, &expected));
    let counted = |chassis: &Chassis| {
        let ports: Vec<_> = (0..chassis.ports.len()).map(|port| chassis.counters[port].read()).collect();
        (ports, chassis.chassis.read())
    };
    assert_eq!(counted(&hops), counted(&whole));
}

/// A routed frame loses one TTL at every port except the host's own link; a switched frame keeps
/// its TTL.
//= docs/specs/switch.md#SW-25 deployed fabrics
//= docs/specs/switch.md#SW-26 user-supplied interfaces
#[test]
fn the_ttl_of_a_routed_frame_is_decremented_that_of_a_switched_one_is_not() {
    for (is_routed, ttl, after) in [(true, 64, Some(59)), (false, 64, Some(64)), (true, 5, None), (false, 1, Some(1))] {
        let chassis = Chassis::three_tiers(Scheme::Ecmp);
        let mut frame = data_frame(ttl);
        let entry = || (u32::MAX, chassis.port_from(0));
        let (verdict, due_ps) = process_any(&chassis, &mut frame[..], is_routed, entry, || 7_000_000);
        let to_host = Verdict::Redirect { port: chassis.port_to(3), trimmed_len: 0 };
        let expired = Verdict::Expired { port: chassis.port_to(3) };
        assert_eq!(verdict, after.map_or(expired, |_| to_host), "{is_routed} {ttl}");
        assert_eq!(frame[TTL], after.unwrap_or(ttl));
        let links = (due_ps - 7_000_000) / LATENCY_PS;
        assert_eq!(links, if after.is_some() { 6 } else { 5 }, "it is delayed until it has crossed them");
    }
}

/// Random decisions depend on all of their inputs.
//= docs/specs/switch.md#SW-8 random decisions
#[test]
fn another_frame_time_port_or_seed_has_another_random_decision() {
    let decision = port::share(1, 2, 3, 4);
    for bit in 0..64 {
        assert_ne!(port::share(1, 2 ^ 1 << bit, 3, 4), decision);
        assert_ne!(port::share(1, 2, 3, 4 ^ 1 << bit), decision);
        assert_ne!(port::share(1 ^ 1 << (bit % 32), 2, 3, 4), decision);
        assert_ne!(port::share(1, 2, 3 ^ 1 << (bit % 32), 4), decision);
    }
}

/// A frame 128 slots behind the newest one passes, and is counted.
//= docs/specs/virtual-queue.md#VQ-8 stale frames
#[test]
fn a_frame_that_comes_too_late_is_counted() {
    let port = PortConfig::new(100_000_000_000, 0, &Thresholds { limit_bytes: 10_000, ..THRESHOLDS }, OUTSIDE, 3_114);
    let (queues, counters) = (PortQueues::<Cell<u64>>::default(), PortCounters::<Cell<u64>>::default());
    let behind = |slots: u64| (1 << 40) - (slots << port.slot_shift);
    for (t_ps, stale) in [(behind(0), 0), (behind(127), 0), (behind(128), 1), (behind(500), 2)] {
        port.transmit(&mut plain_frame(t_ps), u64::MAX, &queues, &counters, |_, _| {}).unwrap();
        assert_eq!(counters.stale.get(), stale, "{t_ps}");
    }
}

#[test]
fn lost_frames_of_a_port_are_the_sum_of_all_causes() {
    let lost = PortCounters::<u64> {
        drops_queue: 1,
        drops_down: 2,
        drops_silent: 4,
        drops_random: 8,
        drops_ttl: 16,
        ..PortCounters::default()
    };
    assert_eq!((lost.drops(), lost.drops_link()), (31, 6));
}
