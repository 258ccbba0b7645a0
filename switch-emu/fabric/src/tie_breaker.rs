//! Order of simultaneous events.

use spray_pipeline::hash::mix;

/// Draws the order of simultaneous events from a seed, independently for each time.
//= docs/specs/emulation.md#EMU-9 ties
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TieBreaker {
    seed: u64,
}

impl TieBreaker {
    /// Creates the draws of a run with this seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed: mix(seed ^ SALT) }
    }

    /// Returns the sort key of the event `identity` at time `at`; the least key comes first.
    pub const fn draw(self, at: u64, identity: u64) -> u32 {
        let both = at.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(identity.wrapping_mul(0xd1b5_4a32_d192_ed03));
        (mix(self.seed.wrapping_add(both)) >> 32) as u32
    }
}

/// Makes these draws independent of others from the same seed.
const SALT: u64 = 0x7469_6573;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how often each of `count` comes first at times that are `step` apart.
    fn firsts(seed: u64, count: usize, step: u64) -> Vec<u32> {
        let ties = TieBreaker::new(seed);
        let mut firsts = vec![0; count];
        for time in 0..TIMES {
            let first = (0..count).min_by_key(|identity| ties.draw(time * step, *identity as u64)).unwrap();
            firsts[first] += 1;
        }
        firsts
    }

    const TIMES: u64 = 20_000;

    //= docs/specs/emulation.md#EMU-9 ties
    #[test]
    fn each_is_first_equally_often() {
        for (seed, count, step) in [(1, 2, 336_000), (2, 2, 1), (3, 3, 1 << 20), (4, 8, 83_040), (5, 15, 4)] {
            let fair = TIMES as f64 / count as f64;
            // Four standard deviations of a binomial count.
            let bound = 4.0 * (fair * (1.0 - 1.0 / count as f64)).sqrt();
            let found = firsts(seed, count, step);
            assert!(found.iter().all(|first| (f64::from(*first) - fair).abs() < bound), "{seed}: {found:?}");
        }
    }

    #[test]
    fn seeds_and_times_differ_and_a_seed_repeats() {
        let order = |seed, at| TieBreaker::new(seed).draw(at, 0) < TieBreaker::new(seed).draw(at, 1);
        let differ = |other: &dyn Fn(u64) -> bool| (0..1000).filter(|at| order(1, *at) != other(*at)).count();
        assert_eq!(differ(&|at| order(1, at)), 0);
        assert!((400..600).contains(&differ(&|at| order(2, at))));
        assert!((400..600).contains(&differ(&|at| order(1, at + 1))));
    }
}
