//! The impairments of a memory network: what happens to a frame on its way.

use rand_core::RngCore;
use spray_wire::{
    DSCP_PAUSE, Ecn, Ports,
    switch_view::{Changes, Parsed, parse, write},
};

/// Probabilities and times that apply to each frame sent. The default does nothing.
///
/// Probabilities are in parts per million, from 0 (never) to 1,000,000 (always), drawn independently for each frame.
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
    /// Chance that an ECN-capable frame of ours, at the default ports, is marked as having met congestion.
    pub mark_ppm: u32,
    /// Chance that a data frame of ours, at the default ports, is trimmed to its headers, as a full switch would.
    pub trim_ppm: u32,
}

impl Impairments {
    /// Every frame takes this time, and nothing else happens to it.
    #[must_use]
    pub fn delay(delay_ps: u64) -> Self {
        Self { delay_ps, ..Self::default() }
    }
}

/// Whether an event with a probability of `ppm` in a million happens.
pub(super) fn chance(rng: &mut impl RngCore, ppm: u32) -> bool {
    // A probability of zero draws nothing, so it does not shift the draws of other impairments.
    ppm > 0 && (u64::from(rng.next_u32()) * 1_000_000) >> 32 < u64::from(ppm)
}

/// Draws uniformly from `0..=most`. The bias is below one in 2^32 for any time under an hour.
pub(super) fn up_to(rng: &mut impl RngCore, most: u64) -> u64 {
    if most == 0 { 0 } else { ((u128::from(rng.next_u64()) * (u128::from(most) + 1)) >> 64) as u64 }
}

/// Changes one to four bytes. Each one changes, because the difference is never zero.
pub(super) fn corrupt(rng: &mut impl RngCore, frame: &mut [u8]) {
    if frame.is_empty() {
        return;
    }
    // The places are distinct: two changes of one byte could undo each other.
    let count = (1 + up_to(rng, 3)).min(frame.len() as u64);
    let first = up_to(rng, frame.len() as u64 - 1) as usize;
    let stride = (frame.len() / count as usize).max(1);
    for step in 0..count as usize {
        let at = (first + step * stride) % frame.len();
        frame[at] ^= 1 + up_to(rng, 254) as u8;
    }
}

/// Marks a frame of ours that is ECN-capable and unmarked, as a switch would. Returns whether it did.
pub(super) fn mark(frame: &mut [u8]) -> bool {
    let Parsed::Ours(headers) = parse(frame, Ports::DEFAULT) else { return false };
    let ecn = Ecn::Ce as u8;
    let is_markable = headers.ecn != Ecn::NotEct as u8 && headers.ecn != ecn;
    let pause = headers.dscp == DSCP_PAUSE;
    is_markable && write(frame, headers.v6, &Changes { ttl: headers.ttl, ecn, pause }).is_some()
}
