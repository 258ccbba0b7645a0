use crate::config::{Condition, MAX_CHANGES, OUTSIDE, PortConfig, SwitchConfig, Thresholds};
use crate::hash::{mix, pick};
use std::{assert, assert_eq, vec};

/// Chi-square of counts against a uniform spread.
fn chi_square(counts: &[u64]) -> u64 {
    let mean = counts.iter().sum::<u64>() / counts.len() as u64;
    counts.iter().map(|count| count.abs_diff(mean).pow(2)).sum::<u64>() / mean
}

/// The digest of a five-tuple as the parser computes it for consecutive source ports.
fn flow(port: u64) -> u64 {
    mix(0x0a00_0001_0a00_0002u64.wrapping_mul(0x6a09_e667_f3bc_c909)
        ^ (port << 16 | 4793).wrapping_mul(0x510e_527f_ade6_82d1))
}

#[test]
fn source_ports_spread_evenly() {
    // SW-5: 16,384 consecutive ports over n uplinks; chi-square stays below its 99.9 % point
    for (uplinks, limit) in [(4, 17), (7, 23), (16, 38), (64, 104)] {
        let salt = SwitchConfig::new(uplinks).salt;
        let mut counts = vec![0; uplinks as usize];
        (49_152..65_536).for_each(|port| counts[pick((mix(flow(port) ^ salt) >> 32) as u32, uplinks) as usize] += 1);
        assert!(chi_square(&counts) < limit, "{uplinks} uplinks: {}", chi_square(&counts));
    }
}

#[test]
fn switches_choose_independently() {
    // every pair of choices of two switches with neighbouring salts is equally likely
    let salts = [SwitchConfig::new(1).salt, SwitchConfig::new(2).salt];
    let mut counts = vec![0; 64];
    for port in 1..65_536 {
        let [a, b] = salts.map(|salt| pick((mix(flow(port) ^ salt) >> 32) as u32, 8));
        counts[(a * 8 + b) as usize] += 1;
    }
    assert!(chi_square(&counts) < 104, "{}", chi_square(&counts));
}

const THRESHOLDS: Thresholds = Thresholds { limit: 100, mark_min: 20, mark_max: 80, control_limit: 50, trim: true };

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
    let slow = |at_ps, rate_ppm| Condition { at_ps, rate_ppm, ..Condition::healthy() };
    assert!(port.push(100_000_000_000, &slow(1_000_000, 500_000)));
    assert!(port.push(100_000_000_000, &slow(2_000_000, 1_000_000)));
    let delay = |at_ps| port.drain(at_ps).delay_ps(0, 100);
    assert_eq!([delay(0), delay(999_999), delay(1_000_000), delay(1_999_999)], [8_000, 8_000, 16_000, 16_000]);
    assert_eq!(delay(2_000_000), 8_000);
    let mut full = port;
    assert!((2..MAX_CHANGES as u64).all(|i| full.push(1, &slow(i * 2_000_000, 1))));
    assert!(!full.push(1, &slow(u64::MAX - 1, 1)));
}
