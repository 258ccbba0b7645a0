//! Hash salts, which make the choices of switches independent.

/// Returns the salt of a switch's path hash.
pub fn salt(seed: u64, switch: usize) -> u32 {
    mix(seed ^ mix(switch as u64 + 1)) as u32
}

/// A bijection that mixes all input bits, also of 0: a step of SplitMix64.
pub fn mix(value: u64) -> u64 {
    spray_pipeline::hash::mix(value.wrapping_add(0x9e37_79b9_7f4a_7c15))
}
