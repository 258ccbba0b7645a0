//! Random numbers: engines draw them here and hand them in, so that one root seed repeats a run.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// The generator that engines give to balancers and senders.
pub type Rng = Xoshiro256PlusPlus;

/// Makes the generator of one `stream` (a connection, a host, a switch) of a run with root `seed`.
///
/// Streams of one seed, and equal streams of different seeds, are unrelated.
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

/// Draws a number uniformly from `0..bound`, which is below 2^32. It multiplies in place of taking a remainder.
#[inline]
pub fn below(bound: usize, rng: &mut Rng) -> usize {
    ((u64::from(rng.next_u32()) * bound as u64) >> 32) as usize
}
