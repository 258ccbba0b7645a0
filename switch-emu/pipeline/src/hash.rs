//! Mixing functions for path choice and repeatable random decisions.

/// Returns the ideal digest of a [`Key`](crate::flow_hash::Key)'s addresses and ports or label.
//= docs/specs/switch.md#SW-5 the choice within a group
#[inline(always)]
pub const fn flow(addresses: u64, entropy: u32) -> u64 {
    mix(addresses.wrapping_mul(0x6a09_e667_f3bc_c909) ^ (entropy as u64).wrapping_mul(0x510e_527f_ade6_82d1))
}

/// The finaliser of SplitMix64: an input bit changes each output bit with probability 1/2.
#[inline(always)]
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Maps 32 random bits onto `0..count` without a division.
#[inline(always)]
pub const fn pick(bits: u32, count: u32) -> u32 {
    ((bits as u64 * count as u64) >> 32) as u32
}
