use std::collections::BTreeSet;

use super::*;

/// A small deterministic generator.
fn step(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Against an ordered set: inserts that are near, equal, in the present cell, and beyond reach.
#[test]
fn takes_in_order_of_keys_then_numbers() {
    for seed in 1..200u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut calendar = Calendar::new((seed % 9) as u32, 8);
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
            oracle.insert((now + ahead, number));
            while step(&mut state).is_multiple_of(2) && !oracle.is_empty() {
                let taken = calendar.pop();
                assert_eq!(taken, oracle.pop_first(), "seed {seed}");
                now = taken.unwrap().0;
            }
        }
        while let Some(expected) = oracle.pop_first() {
            assert_eq!(calendar.pop(), Some(expected), "seed {seed}");
        }
        assert_eq!(calendar.pop(), None);
    }
}

#[test]
fn what_comes_next_is_known_within_a_cell() {
    let mut calendar = Calendar::new(4, 8);
    [(3, 7), (1, 5), (2, 6), (40, 8)].into_iter().for_each(|(key, number)| calendar.insert(key + 16, number));
    assert_eq!(calendar.pop(), Some((17, 5)));
    assert!(calendar.upcoming(9).eq([6, 7]));
    assert!(calendar.upcoming(1).eq([6]));
}
