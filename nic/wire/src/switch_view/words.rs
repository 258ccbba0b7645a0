//! Numbers at fixed offsets of a frame, in network byte order, or in memory order (`_ne`).
#![expect(clippy::indexing_slicing, reason = "offsets are sums of constants, so that no check remains")]

#[inline(always)]
pub(super) fn u8_at<const N: usize>(head: &[u8; N], at: usize) -> u8 {
    head[at]
}

#[inline(always)]
pub(super) fn u16_at<const N: usize>(head: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([head[at], head[at + 1]])
}

#[inline(always)]
pub(super) fn u32_at<const N: usize>(head: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

#[inline(always)]
pub(super) fn u64_at<const N: usize>(head: &[u8; N], at: usize) -> u64 {
    u64::from(u32_at(head, at)) << 32 | u64::from(u32_at(head, at + 4))
}

/// Reads eight bytes for hashing as little-endian: free on such machines, and the same on all.
#[inline(always)]
pub(super) fn u64_le<const N: usize>(head: &[u8; N], at: usize) -> u64 {
    u64_at(head, at).swap_bytes()
}

#[inline(always)]
pub(super) fn u32_ne<const N: usize>(head: &[u8; N], at: usize) -> u32 {
    u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

#[inline(always)]
pub(super) fn u64_ne<const N: usize>(head: &[u8; N], at: usize) -> u64 {
    u64_at(head, at).to_be()
}

/// Maps an IPv4 address in memory order into IPv6.
#[inline(always)]
pub(super) fn mapped_v4(address: u32) -> super::Address {
    let [a, b, c, d] = address.to_ne_bytes();
    [0, u64::from_ne_bytes([0, 0, 0xff, 0xff, a, b, c, d])]
}

#[inline(always)]
pub(super) fn put<const N: usize>(head: &mut [u8; N], at: usize, value: u16) {
    let [high, low] = value.to_be_bytes();
    head[at] = high;
    head[at + 1] = low;
}
