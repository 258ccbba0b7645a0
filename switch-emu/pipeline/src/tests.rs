use crate::config::{MAX_CHANGES, OUTSIDE, PortConfig, Thresholds};
use crate::link::{LinkChange, LinkState};
use std::{assert, assert_eq};

const THRESHOLDS: Thresholds =
    Thresholds { limit_bytes: 100, mark_min_bytes: 20, mark_max_bytes: 80, control_limit_bytes: 50, trim: true };

#[test]
fn a_slot_holds_about_three_frames() {
    for gbps in [1, 10, 25, 100, 400, 800] {
        for frame in [1_500u32, 3_114, 4_150] {
            let port = PortConfig::new(gbps * 1_000_000_000, 0, &THRESHOLDS, OUTSIDE, frame);
            let frames_x100 = u64::from(port.states[0].slot_units) * 100 / 256 / u64::from(frame);
            assert!((200..=430).contains(&frames_x100), "{gbps} Gb/s, {frame} B: {frames_x100}");
        }
    }
}

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
