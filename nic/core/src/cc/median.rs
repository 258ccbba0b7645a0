//! The median of the latest few values, kept sorted.

pub(super) const MAX_SAMPLES: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct Median {
    /// The latest `count` values by age. When full, the oldest is at `next`.
    latest: [u32; MAX_SAMPLES],
    sorted: [u32; MAX_SAMPLES],
    count: u8,
    next: u8,
    window: u8,
}

impl Median {
    /// Creates a median of the latest `window` values, 1 to [`MAX_SAMPLES`].
    pub(super) fn new(window: u8) -> Self {
        let window = window.clamp(1, MAX_SAMPLES as u8);
        Self { latest: [0; MAX_SAMPLES], sorted: [u32::MAX; MAX_SAMPLES], count: 0, next: 0, window }
    }

    /// Takes a value and returns the (lower) median of the latest ones.
    pub(super) fn push(&mut self, value: u32) -> u32 {
        let at = usize::from(self.next) % MAX_SAMPLES;
        let mut hole = usize::from(self.count);
        if self.count == self.window {
            let oldest = self.latest[at];
            hole = self.sorted.iter().position(|&kept| kept == oldest).unwrap_or(0);
        } else {
            self.count += 1;
        }
        self.latest[at] = value;
        self.next = (self.next + 1) % self.window;
        self.insert(hole, value);
        self.sorted[usize::from(self.count - 1) / 2]
    }

    /// Inserts `value` in order, and moves the values between its place and `hole`.
    fn insert(&mut self, mut hole: usize, value: u32) {
        let last = usize::from(self.count - 1);
        while hole > 0 && self.sorted[hole - 1] > value {
            self.sorted[hole] = self.sorted[hole - 1];
            hole -= 1;
        }
        while hole < last && self.sorted[hole + 1] < value {
            self.sorted[hole] = self.sorted[hole + 1];
            hole += 1;
        }
        self.sorted[hole] = value;
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn median_is_the_middle_of_the_latest_samples(
            window in 0u8..20,
            values in prop::collection::vec(prop_oneof![0u32..6, any::<u32>()], 1..200),
        ) {
            let mut median = Median::new(window);
            let kept = window.clamp(1, 16) as usize;
            for end in 1..=values.len() {
                let mut latest: Vec<u32> = values[end.saturating_sub(kept)..end].to_vec();
                latest.sort_unstable();
                prop_assert_eq!(median.push(values[end - 1]), latest[(latest.len() - 1) / 2]);
            }
        }
    }
}
