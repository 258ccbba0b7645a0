//! The Internet checksum (RFC 1071), whole and incremental (RFC 1624).
//!
//! Words are big-endian 16-bit fields. [`fold`] and the incremental functions have no loops and
//! cannot panic: the XDP program uses them.

/// Folds a sum of 16-bit words to 16 bits with end-around carries, without complementing it.
#[inline(always)]
pub const fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    sum as u16
}

/// Adds the 16-bit words of `bytes` to `sum`; an odd last byte is the high byte of a word.
#[inline(always)]
pub fn add(sum: u64, bytes: &[u8]) -> u64 {
    // Sums of 32-bit words fold to the same value, because 2^16 == 1 modulo 2^16 - 1, with half the
    // additions. Words are read in native order and the sum is swapped once (RFC 1071 §2 (B)).
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    let swapped =
        words.iter().fold(u64::from(u32::from_ne_bytes(last)), |sum, word| sum + u64::from(u32::from_ne_bytes(*word)));
    sum + u64::from(u16::from_be(fold(swapped)))
}

/// Returns a checksum after one 16-bit word under it changed (RFC 1624 eqn. 3).
#[inline(always)]
pub const fn update_u16(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(!checksum as u64 + !old as u64 + new as u64)
}

/// Returns a UDP checksum as transmitted: 0 means "none", so that a sum of 0 becomes 0xffff.
#[inline(always)]
pub const fn udp(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}
