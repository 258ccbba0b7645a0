//! A port with exact queues: in order per class, never idle while something waits, nothing made or lost.

use super::*;
use crate::Cause;
use crate::config::{OUTSIDE, PortConfig, Thresholds};
use crate::counters::PortCounters;
use crate::frame::Frame;
use core::cell::Cell;
use proptest::prelude::*;
use std::vec::Vec;

const RATE_BPS: u64 = 400_000_000_000;
const PS_PER_BYTE: u64 = 20;
const LATENCY_PS: u64 = 1_000_000;
const TRIMMED: u16 = 64;
/// Fixed-point rounding of one departure, in ps.
const ROUNDING_PS: u64 = 8;

/// A frame that comes so long after the one before.
#[derive(Clone, Copy, Debug)]
struct Coming {
    gap_ps: u64,
    bytes: u32,
    control: bool,
}

fn coming() -> impl Strategy<Value = Coming> {
    (0u64..150_000, 64u32..4_150, prop::bool::weighted(0.2)).prop_map(|(gap_ps, bytes, control)| Coming {
        gap_ps,
        bytes: if control { 64 } else { bytes },
        control,
    })
}

fn frame(t_ps: u64, coming: Coming) -> Frame {
    Frame {
        flow: 0,
        time_ps: t_ps,
        switch: 0,
        port: 0,
        crc: 0,
        len: coming.bytes,
        ttl: 64,
        ecn: 2,
        control: coming.control,
        trimmable: !coming.control,
        trimmed: false,
        trimmed_len: TRIMMED,
        emulated: true,
    }
}

proptest! {
    #[test]
    fn a_port_is_fifo_per_class_and_work_conserving(
        arrivals in prop::collection::vec(coming(), 1..400),
        limit in 8_000u32..40_000,
        trim: bool,
    ) {
        let thresholds =
            Thresholds { limit_bytes: limit, mark_min_bytes: limit / 5, mark_max_bytes: limit / 5 * 4, control_limit_bytes: limit, trim };
        let port = PortConfig::new(RATE_BPS, LATENCY_PS, &thresholds, OUTSIDE, 4_150);
        let (queues, counters) = (PortFifos::default(), PortCounters::<Cell<u64>>::default());
        let (mut t_ps, mut dropped) = (0, 0);
        // When the link has sent everything accepted so far, were it never idle with something waiting.
        let mut busy_until_ps = 0u64;
        let mut left_ps = [0u64; 2];
        let mut carried: Vec<u64> = Vec::new();
        for arrival in &arrivals {
            t_ps += arrival.gap_ps;
            let mut frame = frame(t_ps, *arrival);
            match port.cross(&mut frame, 0x8000_0000_0000_0000, &queues, &counters) {
                Err(cause) => {
                    prop_assert_eq!(cause, Cause::Queue);
                    dropped += 1;
                }
                Ok(()) => {
                    let (leaves_ps, own_ps) = (frame.time_ps - LATENCY_PS, u64::from(frame.len) * PS_PER_BYTE);
                    busy_until_ps = busy_until_ps.max(t_ps) + own_ps;
                    // In order within its class, and no faster than the link.
                    let class = usize::from(frame.control);
                    prop_assert!(leaves_ps + ROUNDING_PS >= left_ps[class] + own_ps);
                    prop_assert!(leaves_ps + ROUNDING_PS >= t_ps + own_ps);
                    left_ps[class] = leaves_ps;
                    if class == 0 {
                        // Data leaves when the link has done all that came before it: not later, so it never idled.
                        let drift = ROUNDING_PS * arrivals.len() as u64;
                        prop_assert!(leaves_ps.abs_diff(busy_until_ps) <= drift, "{leaves_ps} for {busy_until_ps}");
                    }
                    prop_assert_eq!(frame.trimmed, frame.control && !arrival.control);
                    prop_assert_eq!(frame.len, if frame.trimmed { u32::from(TRIMMED) } else { arrival.bytes });
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
