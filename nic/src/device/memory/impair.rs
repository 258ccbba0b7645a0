//! The impairments of a memory network: what happens to a frame on its way.

use rand_core::RngCore;
use spray_wire::{
    checksum::update_u16,
    offsets::{ETHERTYPE, ETHERTYPE_V4, ETHERTYPE_V6, v4, v6},
    peek_virtual_time, set_virtual_time,
};

/// Probabilities and times that apply to each frame sent. The default does nothing.
///
/// Probabilities are in parts per million, from 0 (never) to 1,000,000 (always), drawn independently for each frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Impairments {
    /// Time on the way, in picoseconds.
    pub delay_ps: u64,
    /// Added to the virtual time of emulated frames, in picoseconds: the latency of a link without a queue. Emulated
    /// frames are those of ours whose virtual time is not 0.
    pub virtual_latency_ps: u64,
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

/// Shortest frames that hold an IP header without options or extensions.
const V4_LEN: usize = v4::UDP;
const V6_LEN: usize = v6::UDP;
/// ECN codepoint "congestion experienced" (RFC 3168 §5).
const CE: u8 = 0b11;

/// Marks an IPv4 or IPv6 packet that is ECN-capable and unmarked. Returns whether it did.
pub(super) fn mark(frame: &mut [u8]) -> bool {
    let Some(&[high, low]) = frame.get(ETHERTYPE..ETHERTYPE + 2) else { return false };
    match u16::from_be_bytes([high, low]) {
        ETHERTYPE_V4 if frame.len() >= V4_LEN => mark_v4(frame),
        ETHERTYPE_V6 if frame.len() >= V6_LEN => mark_v6(frame),
        _ => false,
    }
}

fn is_markable(ecn: u8) -> bool {
    ecn != 0 && ecn != CE
}

fn mark_v4(frame: &mut [u8]) -> bool {
    if !is_markable(frame[v4::TOS] & CE) {
        return false;
    }
    let word = |frame: &[u8], at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let before = word(frame, v4::VERSION_IHL);
    frame[v4::TOS] |= CE;
    let checksum = update_u16(word(frame, v4::CHECKSUM), before, word(frame, v4::VERSION_IHL));
    frame[v4::CHECKSUM..v4::CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

fn mark_v6(frame: &mut [u8]) -> bool {
    // The class straddles two bytes, and its two ECN bits are in the middle of the second.
    let class = &mut frame[v6::VERSION_CLASS + 1];
    let markable = is_markable(*class >> 4 & CE);
    if markable {
        *class |= CE << 4;
    }
    markable
}

/// Trims a data frame of ours to its headers. Returns whether it did.
pub(super) fn trim(frame: &mut Vec<u8>) -> bool {
    let trimmed = spray_wire::switch_view::trim(frame);
    if let Some(len) = trimmed {
        frame.truncate(len);
    }
    trimmed.is_some()
}

/// Adds to the virtual time of a frame of ours that is emulated.
pub(super) fn delay_virtually(frame: &mut [u8], latency_ps: u64) {
    if latency_ps == 0 {
        return;
    }
    if let Some(time_ps) = peek_virtual_time(frame).filter(|&time_ps| time_ps != 0) {
        set_virtual_time(frame, time_ps.saturating_add(latency_ps));
    }
}
