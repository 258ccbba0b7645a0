//! How much paths deliver, where nobody told what they take.

use crate::Time;
use crate::now::Now;
use crate::path::AckInfo;

/// What the present path delivers, and what those before it did, in bytes per 2^30 ps.
//= docs/specs/flowcut.md#FLC-17 comparison of paths
#[derive(Clone, Debug)]
pub(super) struct Rates {
    /// When the round began; [`Time::ZERO`] before its first ACK.
    round_at: Time,
    /// Wire bytes that were acknowledged since the round began.
    bytes: u32,
    /// Of paths that were left, the latest first; 0 where there was none.
    left: [u32; PATHS],
    /// Of the present path; 0 before its first round.
    present: u32,
    /// Rounds on the present path since it was drawn or, later, one of `left` was forgotten.
    rounds: u16,
    /// After so many one of `left` is forgotten.
    lasting: u16,
}

impl Rates {
    /// Takes an acknowledgement of the present path.
    pub(super) fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo) {
        if self.round_at == Time::ZERO {
            self.round_at = now.time.max(Time::ZERO.next());
            return;
        }
        self.bytes = self.bytes.saturating_add(u32::try_from(ack.bytes).unwrap_or(u32::MAX));
        let elapsed_ps = now.since(self.round_at);
        if u64::from(self.bytes) >= ROUND_PACKETS * u64::from(ack.packet_bytes) && elapsed_ps >= ack.rtt_ps.max(1) {
            self.end_round(now, elapsed_ps);
        }
    }

    /// What comes next does not follow on what came before.
    pub(super) fn begin_round(&mut self) {
        (self.round_at, self.bytes) = (Time::ZERO, 0);
    }

    /// Another path takes the place of the present one.
    pub(super) fn begin_path(&mut self) {
        if self.present > 0 {
            // The best is not forgotten for slow ones, but it counts less each time, should all have become slower.
            if self.left[LAST] > self.left[0].max(self.left[1]) {
                self.left[LAST] -= self.left[LAST] / 8;
                self.left.swap(1, LAST);
            }
            self.left.rotate_right(1);
            self.left[0] = self.present;
        }
        (self.present, self.rounds) = (0, 0);
        self.begin_round();
    }

    /// The present path is dead: it delivers next to nothing.
    pub(super) fn on_dead(&mut self) {
        self.present = 1;
    }

    /// The present path is known, but too few others to compare it with.
    pub(super) fn is_alone(&self) -> bool {
        self.present > 0 && self.left[LAST] == 0
    }

    /// Another path delivered more than `ratio` times as much, in units of 2^-16.
    pub(super) fn is_behind(&self, ratio: u32) -> bool {
        let most = self.left.iter().copied().max().unwrap_or(0);
        self.present > 0 && u64::from(most) << 16 > u64::from(self.present) * u64::from(ratio)
    }

    #[inline(never)]
    fn end_round(&mut self, now: Now<'_>, elapsed_ps: u64) {
        let rate = ((u128::from(self.bytes) << 30) / u128::from(elapsed_ps.max(1))).clamp(1, u32::MAX.into()) as u32;
        self.present = if self.present == 0 { rate } else { self.present / 2 + rate.div_ceil(2) };
        (self.round_at, self.bytes) = (now.time, 0);
        self.rounds += 1;
        if self.rounds >= self.lasting {
            (self.rounds, self.left[LAST]) = (0, 0);
            self.lasting = (self.lasting * 8).min(LONGEST_ROUNDS);
        }
    }
}

impl Default for Rates {
    fn default() -> Self {
        Self { round_at: Time::ZERO, bytes: 0, left: [0; PATHS], present: 0, rounds: 0, lasting: FIRST_ROUNDS }
    }
}

/// So many others are tried before the present path is taken to be no worse than any. With one slow path of four, one connection
/// of 256 has then met no other.
const PATHS: usize = 3;
const LAST: usize = PATHS - 1;
/// Packets that tell what a path delivers.
const ROUND_PACKETS: u64 = 32;
/// Another path is tried again after so many rounds, then after eight times as many each time.
const FIRST_ROUNDS: u16 = 64;
const LONGEST_ROUNDS: u16 = 4_096;
