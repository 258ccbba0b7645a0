//! A port with exact queues: FIFO per class, work-conserving, and without losing or duplicating
//! frames.

use super::super::*;
use crate::Cause;
use crate::config::{OUTSIDE, PortConfig, Thresholds};
use crate::counters::PortCounters;
use crate::frame::Frame;
use core::cell::Cell;
use proptest::prelude::*;
use std::assert_eq;
use std::vec::Vec;

const RATE_BPS: u64 = 400_000_000_000;
const PS_PER_BYTE: u64 = 20;
const LATENCY_PS: u64 = 1_000_000;
const TRIMMED: u16 = 64;
/// Fixed-point rounding of one departure, in ps.
const ROUNDING_PS: u64 = 8;

/// A frame, and the time since the previous one.
#[derive(Clone, Copy, Debug)]
struct Arriving {
    gap_ps: u64,
    bytes: u32,
    control: bool,
}

fn arriving() -> impl Strategy<Value = Arriving> {
    (0u64..150_000, 64u32..4_150, prop::bool::weighted(0.2)).prop_map(|(gap_ps, bytes, control)| Arriving {
        gap_ps,
        bytes: if control { 64 } else { bytes },
        control,
    })
}

fn frame(t_ps: u64, arriving: Arriving) -> Frame {
    Frame {
        flow: 0,
        time_ps: t_ps,
        switch: 0,
        port: 0,
        checksum: 0,
        len: arriving.bytes,
        ttl: 64,
        ecn: 2,
        control: arriving.control,
        trimmed: 0,
        trimmed_len: if arriving.control { 0 } else { TRIMMED },
        emulated: true,
        detour: 0,
    }
}

proptest! {
    //= docs/specs/virtual-queue.md#VQ-10a the exact queue
    #[test]
    fn a_port_is_fifo_per_class_and_work_conserving(
        arrivals in prop::collection::vec(arriving(), 1..400),
        limit in 8_000u32..40_000,
        trim: bool,
    ) {
        let thresholds = Thresholds {
            limit_bytes: limit,
            mark_min_bytes: limit / 5,
            mark_max_bytes: limit / 5 * 4,
            control_limit_bytes: limit,
            trim,
            ..Thresholds::NONE
        };
        let port = PortConfig::new(RATE_BPS, LATENCY_PS, &thresholds, OUTSIDE, 4_150);
        let (queues, counters) = (<PortFifos>::default(), PortCounters::<Cell<u64>>::default());
        let (mut t_ps, mut dropped) = (0, 0);
        // The time at which a work-conserving link has sent everything accepted so far.
        let mut busy_until_ps = 0u64;
        let mut left_ps = [0u64; 2];
        let mut carried: Vec<u64> = Vec::new();
        for arrival in &arrivals {
            t_ps += arrival.gap_ps;
            let mut frame = frame(t_ps, *arrival);
            match port.transmit(&mut frame, 0x8000_0000_0000_0000, &queues, &counters, |_, _| {}) {
                Err(cause) => {
                    prop_assert_eq!(cause, Cause::Queue);
                    dropped += 1;
                }
                Ok(()) => {
                    let (leaves_ps, own_ps) = (frame.time_ps - LATENCY_PS, u64::from(frame.len) * PS_PER_BYTE);
                    busy_until_ps = busy_until_ps.max(t_ps) + own_ps;
                    // In order within its class, and no faster than the link allows.
                    let class = usize::from(frame.control);
                    prop_assert!(leaves_ps + ROUNDING_PS >= left_ps[class] + own_ps);
                    prop_assert!(leaves_ps + ROUNDING_PS >= t_ps + own_ps);
                    left_ps[class] = leaves_ps;
                    if class == 0 {
                        // Data leaves once the link has sent everything before it, and no later:
                        // the link was never idle.
                        let drift = ROUNDING_PS * arrivals.len() as u64;
                        prop_assert!(leaves_ps.abs_diff(busy_until_ps) <= drift, "{leaves_ps} for {busy_until_ps}");
                    }
                    prop_assert_eq!(frame.trimmed != 0, frame.control && !arrival.control);
                    prop_assert_eq!(frame.len, if frame.trimmed != 0 { u32::from(TRIMMED) } else { arrival.bytes });
                    carried.push(u64::from(frame.len));
                }
            }
        }
        prop_assert_eq!(carried.len() + dropped, arrivals.len());
        prop_assert_eq!(counters.frames.get(), carried.len() as u64);
        prop_assert_eq!(counters.bytes.get(), carried.iter().sum::<u64>());
        prop_assert_eq!(counters.drops_queue.get(), dropped as u64);
    }
}

proptest! {
    /// The area under the queue, accumulated frame by frame, compared with the sum of its
    /// trapezoids between arrivals.
    //= docs/specs/switch.md#SW-18 length of the queue over time
    #[test]
    fn the_queue_area_is_that_of_a_literal_queue(
        arrivals in prop::collection::vec((0u64..9_000, 64u32..4_150, prop::bool::weighted(0.3)), 1..400),
        limit in 8_000u32..80_000,
    ) {
        let thresholds = Thresholds {
            limit_bytes: limit,
            mark_min_bytes: 1,
            mark_max_bytes: 2,
            control_limit_bytes: limit / 8,
            trim: true,
            ..Thresholds::NONE
        };
        let port = PortConfig::new(RATE_BPS, LATENCY_PS, &thresholds, OUTSIDE, 4_150);
        let (queues, counters) = (<PortFifos>::default(), PortCounters::<Cell<u64>>::default());
        // One byte leaves at each tick.
        let (mut ticks, mut bytes, mut most, mut area) = (0, 0u64, 0, 0u128);
        for (gap_bytes, bytes_of_frame, control) in arrivals {
            let left = bytes.min(gap_bytes);
            area += u128::from((2 * bytes - left) * left * PS_PER_BYTE);
            (ticks, bytes) = (ticks + gap_bytes, bytes - left);
            let mut frame = frame(ticks * PS_PER_BYTE, Arriving { gap_ps: 0, bytes: bytes_of_frame, control });
            if port.transmit(&mut frame, 0x8000_0000_0000_0000, &queues, &counters, |_, _| {}).is_ok() {
                bytes += u64::from(frame.len);
                most = most.max(bytes);
            }
        }
        area += u128::from(bytes * bytes * PS_PER_BYTE);
        prop_assert_eq!((counters.queue_area(), counters.queue_max.get()), (area, most));
    }
}

#[test]
fn the_area_of_a_long_queue_over_a_long_time_does_not_overflow() {
    let counters = PortCounters::<Cell<u64>>::default();
    let (hour_ps, full) = (3_600_000_000_000_000, 4_000_000_000);
    (0..1_000).for_each(|_| counters.queued(full, 9_000, hour_ps, 20 * 9_000));
    assert_eq!(counters.queue_area(), 1_000 * 9_000 * (2 * u128::from(hour_ps) - 180_000));
    assert_eq!(counters.queue_max.get(), full + 9_000);
    // The counters of all CPUs are summed.
    let mut sum = counters.read();
    sum.add(&counters.read());
    assert_eq!(sum.queue_mean_bytes(2 * hour_ps), counters.read().queue_mean_bytes(hour_ps));
    assert_eq!((sum.queue_max, sum.queue_area_low >> 32), (full + 9_000, 0));
}
