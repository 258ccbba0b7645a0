mod port;

use super::*;
use crate::config::{OUTSIDE, PortConfig, Thresholds};
use crate::hash::mix;
use crate::link::{LinkChange, LinkState};
use crate::queue::Queue;
use core::cell::Cell;
use std::{assert, assert_eq};

const RATE_BPS: u64 = 400_000_000_000;
const PS_PER_BYTE: u64 = 20;
const FRAME: u32 = 4_150;

fn port() -> PortConfig {
    PortConfig::new(RATE_BPS, 0, &Thresholds::NONE, OUTSIDE, FRAME)
}

/// Sends a frame through the queue; returns the bytes ahead of it and its departure time.
fn pass<Q: Backlog>(queue: &Q, drain: &Drain, t_ps: u64, bytes: u32) -> (u64, u64) {
    let position = queue.locate(t_ps, drain);
    let ahead = queue.bytes(&position, drain);
    queue.push(&position, bytes, drain);
    (ahead, t_ps + queue.delay_ps(&position, bytes, drain))
}

#[test]
fn frames_leave_one_after_another() {
    let (fifo, drain) = (<Fifo>::default(), port().drain(0));
    assert_eq!(pass(&fifo, &drain, 1_000, FRAME), (0, 1_000 + 83_000));
    assert_eq!(pass(&fifo, &drain, 1_000, FRAME), (u64::from(FRAME), 1_000 + 166_000));
    assert_eq!(pass(&fifo, &drain, 84_000, 64), (u64::from(FRAME), 168_280));
    assert_eq!(pass(&fifo, &drain, 1_000_000, 64), (0, 1_001_280));
}

/// For frames in order of time this queue agrees with the slotted queue, except for the rounding of
/// slots.
#[test]
fn agrees_with_the_queue_of_slots() {
    for load in [50, 90, 99, 120] {
        let (fifo, slots, drain) = (<Fifo>::default(), Queue::<Cell<u64>>::default(), port().drain(0));
        let (mut t_ps, mut worst) = (0, 0);
        for frame in 0..20_000u64 {
            let bytes = if mix(frame).is_multiple_of(5) { 64 } else { FRAME };
            t_ps += mix(frame ^ 1 << 40) % (2 * u64::from(bytes) * PS_PER_BYTE * 100 / load);
            let exact = pass(&fifo, &drain, t_ps, bytes);
            let slotted = pass(&slots, &drain, t_ps, bytes);
            worst = worst.max(exact.1.abs_diff(slotted.1));
            assert!(exact.0.abs_diff(slotted.0) <= 16 + exact.0 / 1000, "{load}: {exact:?} against {slotted:?}");
        }
        assert!(worst <= 2 * PS_PER_BYTE * u64::from(FRAME), "{load}: {worst} ps apart");
    }
}

#[test]
fn queued_frames_take_longer_on_a_slower_link() {
    let (fifo, mut port) = (<Fifo>::default(), port());
    let drain = port.drain(0);
    assert_eq!(pass(&fifo, &drain, 0, FRAME).1, 83_000);
    let before = port.states[0].ps_per_unit;
    let state = LinkState { rate_ppm: 500_000, ..LinkState::UP };
    port.set(RATE_BPS, &LinkChange { at_ps: 41_500, state });
    fifo.rescale(41_500, before, port.states[0].ps_per_unit);
    // Half of the frame remains, at half the rate.
    let (ahead, left_ps) = pass(&fifo, &port.drain(41_500), 41_500, FRAME);
    assert_eq!((ahead, left_ps), (2_075, 41_500 + 83_000 + 166_000));
}

/// After the last arrival the area under the queue is a triangle.
//= docs/specs/switch.md#SW-18 length of the queue over time
#[test]
fn the_area_after_a_time_is_that_of_the_remaining_bytes() {
    let (fifos, port) = (PortFifos::<Cell<u64>>::default(), port());
    pass(&fifos.total, &port.drain(0), 0, 1_000);
    let after = |t_ps| fifos.area_after(t_ps, port.states[0].ps_per_unit);
    assert_eq!([after(0), after(5_000), after(20_000), after(30_000)], [1_000 * 20_000, 750 * 15_000, 0, 0]);
}

/// Queued bytes stay while no data leaves, and their delay is counted in bytes times picoseconds.
#[test]
fn postponed_frames_leave_later_and_are_counted_longer() {
    let (fifos, counters) = (PortFifos::<Cell<u64>>::default(), PortCounters::<Cell<u64>>::default());
    let (port, drain) = (port(), port().drain(0));
    pass(&fifos.total, &drain, 0, 1_000);
    pass(&fifos.control, &drain, 0, 100);
    fifos.postpone(5_000, 50_000, port.states[0].ps_per_unit, &counters);
    assert_eq!([fifos.total.busy_until_ps(), fifos.control.busy_until_ps()], [70_000, 2_000]);
    // 750 of the 1,000 bytes remained, counted in halves of a byte.
    assert_eq!(counters.queue_area(), 2 * 750 * 50_000);
    fifos.postpone(80_000, 50_000, port.states[0].ps_per_unit, &counters);
    assert_eq!(counters.queue_area(), 2 * 750 * 50_000, "the queue is empty");
}
