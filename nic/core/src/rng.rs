//! Random numbers from one root seed, so that a run can be repeated.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// The generator that balancers and senders draw from.
pub type Rng = Xoshiro256PlusPlus;

/// Creates the generator of one `stream` (a connection, a host, a switch) of a run with root `seed`.
/// Streams of one seed, and equal streams of different seeds, are independent.
///
/// ```
/// use rand_core::RngCore;
/// let mut first = spray_core::rng::stream(7, 0);
/// assert_eq!(first.next_u64(), spray_core::rng::stream(7, 0).next_u64());
/// assert_ne!(first.next_u64(), spray_core::rng::stream(7, 1).next_u64());
/// ```
pub fn stream(seed: u64, stream: u64) -> Rng {
    let root = SplitMix64::seed_from_u64(seed).next_u64();
    let mixed = SplitMix64::seed_from_u64(root.wrapping_add(stream)).next_u64();
    Rng::seed_from_u64(mixed)
}

/// Draws uniformly from `0..bound`, by multiplication, not remainder. `bound` is below 2^32.
#[inline]
pub fn below(bound: usize, rng: &mut Rng) -> usize {
    ((u64::from(rng.next_u32()) * bound as u64) >> 32) as usize
}
