//! What a memory network does to a frame on its way.

use rand_core::RngCore;

/// Chances and times that apply to each frame sent. The default does nothing.
///
/// Chances are in parts per million, from 0 (never) to 1,000,000 (always), drawn independently per frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Impairments {
    /// Time on the way, in picoseconds.
    pub delay_ps: u64,
    /// Most additional time on the way in picoseconds, drawn evenly per frame: frames overtake each other.
    pub jitter_ps: u64,
    /// Chance that a frame vanishes.
    pub loss_ppm: u32,
    /// Chance that a frame arrives twice, each with a jitter of its own.
    pub duplicate_ppm: u32,
    /// Chance that one to four bytes of a frame are changed, anywhere in it.
    pub corrupt_ppm: u32,
    /// Chance that an ECN-capable IP packet is marked as having met congestion.
    pub mark_ppm: u32,
    /// Chance that a data frame of ours is trimmed to its headers, as a full switch would.
    pub trim_ppm: u32,
}

impl Impairments {
    /// Frames that all arrive after the same time.
    #[must_use]
    pub fn delay(delay_ps: u64) -> Self {
        Self { delay_ps, ..Self::default() }
    }
}

/// Whether something with a chance of `ppm` in a million happens.
pub(super) fn chance(rng: &mut impl RngCore, ppm: u32) -> bool {
    // No draw when there is nothing to decide, so that one impairment's draws do not depend on another's being switched on at zero.
    ppm > 0 && (u64::from(rng.next_u32()) * 1_000_000) >> 32 < u64::from(ppm)
}

/// An even draw from `0..=most`; the bias of the remainder is below one in 2^32 for any time under an hour.
pub(super) fn up_to(rng: &mut impl RngCore, most: u64) -> u64 {
    if most == 0 { 0 } else { ((u128::from(rng.next_u64()) * (u128::from(most) + 1)) >> 64) as u64 }
}

/// Changes one to four bytes; each for certain, as the difference is never zero.
pub(super) fn corrupt(rng: &mut impl RngCore, frame: &mut [u8]) {
    if frame.is_empty() {
        return;
    }
    // Distinct places: two changes of one byte could undo each other.
    let count = (1 + up_to(rng, 3)).min(frame.len() as u64);
    let first = up_to(rng, frame.len() as u64 - 1) as usize;
    let stride = (frame.len() / count as usize).max(1);
    for step in 0..count as usize {
        let at = (first + step * stride) % frame.len();
        frame[at] ^= 1 + up_to(rng, 254) as u8;
    }
}

const ETHERTYPE: usize = 12;
const IP: usize = 14;

/// Marks an IPv4 or IPv6 packet that is ECN-capable (RFC 3168 §5); says whether it did.
pub(super) fn mark(frame: &mut [u8]) -> bool {
    match frame.get(ETHERTYPE..IP) {
        Some([0x08, 0x00]) if frame.len() >= IP + 20 => mark_v4(frame),
        Some([0x86, 0xdd]) if frame.len() >= IP + 40 => mark_v6(frame),
        _ => false,
    }
}

fn mark_v4(frame: &mut [u8]) -> bool {
    let before = u16::from_be_bytes([frame[IP], frame[IP + 1]]);
    if before & 0b11 == 0 || before & 0b11 == 0b11 {
        return false;
    }
    let after = before | 0b11;
    frame[IP + 1] = after as u8;
    // RFC 1624 equation 3: HC' = ~(~HC + ~m + m').
    let sum = u16::from_be_bytes([frame[IP + 10], frame[IP + 11]]);
    let mut total = u32::from(!sum) + u32::from(!before) + u32::from(after);
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    frame[IP + 10..IP + 12].copy_from_slice(&(!(total as u16)).to_be_bytes());
    true
}

fn mark_v6(frame: &mut [u8]) -> bool {
    let ecn = (frame[IP + 1] >> 4) & 0b11;
    if ecn == 0 || ecn == 0b11 {
        return false;
    }
    frame[IP + 1] |= 0b11 << 4;
    true
}
