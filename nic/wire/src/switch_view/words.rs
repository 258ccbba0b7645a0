//! Numbers at fixed places of a frame, in network byte order unless the name says otherwise.
#![expect(clippy::indexing_slicing, reason = "places are sums of constants, so that no check is left of them")]

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

/// Reads four bytes in memory order.
#[inline(always)]
pub(super) fn u32_ne<const N: usize>(head: &[u8; N], at: usize) -> u32 {
    u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

/// Reads eight bytes in memory order.
#[inline(always)]
pub(super) fn u64_ne<const N: usize>(head: &[u8; N], at: usize) -> u64 {
    u64_at(head, at).to_be()
}

#[inline(always)]
pub(super) fn put<const N: usize>(head: &mut [u8; N], at: usize, value: u16) {
    let [high, low] = value.to_be_bytes();
    head[at] = high;
    head[at + 1] = low;
}
