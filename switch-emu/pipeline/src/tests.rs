use crate::config::{MAX_CHANGES, OUTSIDE, PortConfig, Thresholds, UNIT_BITS};
use crate::counters::PortCounters;
use crate::frame::Frame;
use crate::link::{Flap, LinkChange, LinkState};
use crate::queue::PortQueues;
use core::cell::Cell;
use std::{assert, assert_eq};

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
            let frames_x100 = u64::from(port.states[0].slot_units) * 100 / (1 << UNIT_BITS) / u64::from(frame);
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
fn changes_hold_from_their_time_on() {
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

/// A change that comes while the port runs takes the place of what was to come, and any number of them fit.
#[test]
fn an_amended_port_is_as_it_was_until_then_and_keeps_the_change() {
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

/// The share of marks over the length of the queue: DCQCN's curve, at Reunion's setting and at extremes of the scale.
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
                assert!(found.abs_diff(expected) <= 1 + expected / 50, "{found} for {expected}")
            };
            near(marks((min + max) / 2), most / 2);
            near(marks(max - (max - min) / 1_000 - 1), most);
        }
    }
}

/// A port may hold `alpha` of what is free, and never more than is.
//= docs/specs/switch.md#SW-20 shared buffer
#[test]
fn a_shared_buffer_is_shared_by_what_is_free() {
    let limit = |alpha_milli, used, waiting| {
        let thresholds = Thresholds { limit_bytes: 900, shared_bytes: 1_000, alpha_milli, ..THRESHOLDS };
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
        crc: 0,
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

/// A link that flaps is out at the beginning of each cycle, counted from the change.
//= docs/specs/switch.md#SW-7 losses of a link
#[test]
fn a_flapping_link_is_out_at_the_beginning_of_each_cycle() {
    let thresholds = Thresholds { limit_bytes: 10_000, ..Thresholds::NONE };
    let mut port = PortConfig::new(100_000_000_000, 0, &thresholds, OUTSIDE, 3_114);
    let flap = Some(Flap { period_ps: 1_000, down_ps: 300 });
    assert!(port.push(100_000_000_000, &LinkChange { at_ps: 5_000, state: LinkState { flap, ..LinkState::UP } }));
    for (t_ps, is_out) in
        [(4_999, false), (5_000, true), (5_299, true), (5_300, false), (5_999, false), (6_000, true), (6_300, false)]
    {
        let (queues, counters) = (PortQueues::<Cell<u64>>::default(), PortCounters::<Cell<u64>>::default());
        let crossed = port.cross(&mut plain_frame(t_ps), u64::MAX, &queues, &counters, |_, _| {});
        assert_eq!(crossed.is_err(), is_out, "{t_ps}");
        assert_eq!(counters.drops_silent.get(), u64::from(is_out), "{t_ps}");
    }
}

/// What a port does is told where the chassis counts it over time, and of a port that is left out nothing.
#[test]
fn a_port_tells_where_it_is_asked_to() {
    for counts in [0, 1] {
        let told = Cell::new(0);
        let mut port = PortConfig::new(100_000_000_000, 0, &THRESHOLDS, OUTSIDE, 3_114);
        port.counts = counts;
        let (queues, counters) = (PortQueues::<Cell<u64>>::default(), PortCounters::<Cell<u64>>::default());
        // One frame passes, one has no hop left, and for one there is no room.
        for (len, ttl) in [(64, 64), (64, 1), (1_000, 64)] {
            let mut frame = Frame { len, ttl, ..plain_frame(0) };
            let _ = port.cross(&mut frame, u64::MAX, &queues, &counters, |_, _| told.set(told.get() + 1));
        }
        assert_eq!(told.get(), 3 * u32::from(counts));
    }
}
