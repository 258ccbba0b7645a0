//! Salts of switches, by which they choose independently of each other.

/// The salt of a switch's path hash.
pub fn salt(seed: u64, switch: usize) -> u32 {
    mix(seed ^ mix(switch as u64 + 1)) as u32
}

/// A bijection that spreads every input bit over the output, 0's included: a step of SplitMix64.
pub fn mix(value: u64) -> u64 {
    spray_pipeline::hash::mix(value.wrapping_add(0x9e37_79b9_7f4a_7c15))
}
