//! The received frames of a connection: a sliding window over their numbers (RFC 6479).
#![expect(clippy::indexing_slicing, reason = "places are modulo the number of words")]

const BITS: u64 = u64::BITS as u64;
/// Words of the window, a power of two.
const WORDS: u64 = 256;

/// The received numbers, back to 16,320 before the highest: more than a connection has in flight. 2
/// KiB.
#[derive(Debug)]
pub(super) struct Replays {
    /// One past the highest number received.
    end: u64,
    /// One bit per number, in a ring of words.
    words: Box<[u64; WORDS as usize]>,
}

impl Default for Replays {
    fn default() -> Self {
        Self { end: 0, words: Box::new([0; WORDS as usize]) }
    }
}

impl Replays {
    /// Returns whether a number was not received, as far as the window reaches.
    pub(super) fn is_fresh(&self, number: u64) -> bool {
        if number >= self.end {
            return number < u64::MAX;
        }
        // The word of the highest number is one of the window's.
        let words_back = (self.end - 1) / BITS - number / BITS;
        words_back < WORDS && self.words[place(number)] & bit(number) == 0
    }

    /// Records a fresh number.
    pub(super) fn mark(&mut self, number: u64) {
        if number >= self.end {
            let first = if self.end == 0 { 0 } else { (self.end - 1) / BITS + 1 };
            let last = number / BITS;
            // Words enter the window empty. A jump beyond the whole window empties each once.
            for word in first.max(last.saturating_sub(WORDS - 1))..=last {
                self.words[(word % WORDS) as usize] = 0;
            }
            self.end = number + 1;
        }
        self.words[place(number)] |= bit(number);
    }
}

fn place(number: u64) -> usize {
    (number / BITS % WORDS) as usize
}

fn bit(number: u64) -> u64 {
    1 << (number % BITS)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// Generates steps near the window's edges, and far jumps.
    fn step() -> impl Strategy<Value = i64> {
        let edge = (WORDS * BITS) as i64;
        prop_oneof![4 => -80i64..80, 2 => -edge - 80..-edge + 160, 2 => edge - 160..edge + 80, 1 => -3 * edge..3 * edge]
    }

    proptest! {
        //= docs/specs/wire.md#WIRE-19 numbers and keys
        #[test]
        fn each_number_passes_once(start in prop_oneof![Just(0u64), 0..100_000u64, Just(1 << 40)], steps in prop::collection::vec(step(), 1..400)) {
            let (mut replays, mut received, mut highest) = (Replays::default(), HashSet::new(), None::<u64>);
            let mut number = start;
            for step in steps {
                number = number.saturating_add_signed(step);
                let is_fresh = replays.is_fresh(number);
                let back = highest.map_or(0, |highest| highest.saturating_sub(number));
                if received.contains(&number) {
                    prop_assert!(!is_fresh, "{number} was received before");
                } else if back <= (WORDS - 1) * BITS {
                    prop_assert!(is_fresh, "{number} is new");
                } else if back >= WORDS * BITS {
                    prop_assert!(!is_fresh, "{number} is older than the window");
                }
                if is_fresh {
                    replays.mark(number);
                    received.insert(number);
                    highest = highest.max(Some(number));
                    prop_assert!(!replays.is_fresh(number));
                }
            }
        }
    }

    #[test]
    fn the_last_number_is_rejected() {
        let mut replays = Replays::default();
        assert!(replays.is_fresh(u64::MAX - 1) && !replays.is_fresh(u64::MAX));
        replays.mark(u64::MAX - 1);
        assert!(!replays.is_fresh(u64::MAX - 1) && replays.is_fresh(u64::MAX - 2));
    }
}
