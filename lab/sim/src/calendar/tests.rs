use std::collections::BTreeSet;

use super::*;

/// A small deterministic random number generator.
fn step(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Sort order of an entry: equal arrivals by draw, others by number.
fn place(ties: TieBreaker, key: u64, number: u32) -> (u64, u32, u32) {
    (key, if is_arrival(key) { ties.draw(key, number.into()) } else { 0 }, number)
}

/// Compares with an ordered set: inserts that are near, equal, in the current cell, and beyond the
/// range.
#[test]
fn events_are_sorted_by_key_then_by_draw_or_number() {
    for seed in 1..200u64 {
        let ties = TieBreaker::new(seed);
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut calendar = Calendar::new((seed % 9) as u32, 8, ties);
        let mut oracle = BTreeSet::new();
        let mut now = 0;
        for number in 0..3_000u32 {
            let ahead = match step(&mut state) % 8 {
                0 => 0,
                1..=4 => step(&mut state) % 64,
                5 | 6 => step(&mut state) % 5_000,
                _ => step(&mut state) % 2_000_000,
            };
            calendar.insert(now + ahead, number);
            oracle.insert(place(ties, now + ahead, number));
            while step(&mut state).is_multiple_of(2) && !oracle.is_empty() {
                let taken = calendar.pop_before(u64::MAX);
                assert_eq!(taken, oracle.pop_first().map(|(key, _, number)| (key, number)), "seed {seed}");
                now = taken.unwrap().0;
            }
        }
        while let Some((key, _, number)) = oracle.pop_first() {
            assert_eq!(calendar.pop_before(u64::MAX), Some((key, number)), "seed {seed}");
        }
        assert_eq!(calendar.pop_before(u64::MAX), None);
    }
}

#[test]
fn the_next_event_is_known_within_a_cell() {
    let mut calendar = Calendar::new(4, 8, TieBreaker::new(0));
    [(3, 7), (1, 5), (2, 6), (40, 8)].into_iter().for_each(|(key, number)| calendar.insert(key + 16, number));
    assert_eq!(calendar.pop_before(u64::MAX), Some((17, 5)));
    assert!(calendar.upcoming(9).eq([6, 7]));
    assert!(calendar.upcoming(1).eq([6]));
}

/// Compares with an ordered set: windows, between which events arrive that are not below the end of
/// the last one.
#[test]
fn events_before_the_end_of_a_window_are_taken() {
    for seed in 1..200u64 {
        let ties = TieBreaker::new(seed);
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut calendar = Calendar::new((seed % 9) as u32, 8, ties);
        let mut oracle = BTreeSet::new();
        let (mut number, mut end) = (0, 0);
        for _ in 0..400 {
            for _ in 0..step(&mut state) % 20 {
                let key = end + step(&mut state) % [10, 100, 100_000][(step(&mut state) % 3) as usize];
                calendar.insert(key, number);
                oracle.insert(place(ties, key, number));
                number += 1;
            }
            let first = oracle.first().map(|(key, ..)| *key);
            assert!(calendar.bound() <= first && calendar.bound().is_some() == first.is_some(), "seed {seed}");
            end += step(&mut state) % 200;
            while let Some(taken) = calendar.pop_before(end) {
                assert_eq!(Some(taken), oracle.pop_first().map(|(key, _, number)| (key, number)), "seed {seed}");
                if step(&mut state).is_multiple_of(3) {
                    let key = taken.0 + step(&mut state) % 300;
                    calendar.insert(key, number);
                    oracle.insert(place(ties, key, number));
                    number += 1;
                }
            }
            assert!(oracle.first().is_none_or(|(key, ..)| *key >= end), "seed {seed}");
        }
    }
}
