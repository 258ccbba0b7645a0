//! Delivery rates of paths, for connections that learn their path.

use crate::Time;
use crate::now::Now;
use crate::path::AckInfo;

/// Delivery rates of the present path and of earlier ones, in bytes per 2^30 ps.
//= docs/specs/flowcut.md#FLC-17 comparison of paths
#[derive(Clone, Debug)]
pub(super) struct Rates {
    /// When the round began; [`Time::ZERO`] before its first ACK.
    round_at: Time,
    bytes: u32,
    /// Of paths that were left, the latest first; 0 if none.
    left: [u32; PATHS],
    /// Of the present path; 0 before its first round.
    present: u32,
    /// Rounds on the present path since it was drawn or one of `left` was forgotten.
    rounds: u16,
    /// Rounds after which one of `left` is forgotten.
    lasting: u16,
}

impl Rates {
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

    /// Starts a round that does not continue the previous one.
    pub(super) fn begin_round(&mut self) {
        (self.round_at, self.bytes) = (Time::ZERO, 0);
    }

    /// Records that another path replaces the present one.
    pub(super) fn begin_path(&mut self) {
        if self.present > 0 {
            // Slow ones do not displace the best, whose rate decays, in case all are slower.
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

    /// Records that the present path failed: it delivers next to nothing.
    pub(super) fn on_dead(&mut self) {
        self.present = 1;
    }

    /// Whether the present path has too few others to compare with.
    pub(super) fn is_alone(&self) -> bool {
        self.present > 0 && self.left[LAST] == 0
    }

    /// Whether another path delivered more than `ratio` times as much, in units of 2^-16.
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

/// Others tried before the present path counts as good. With one slow path of four, one connection
/// of 256 has then tried no other.
const PATHS: usize = 3;
const LAST: usize = PATHS - 1;
/// Packets to measure a path's rate.
const ROUND_PACKETS: u64 = 32;
/// Rounds before another path is tried again, multiplied by eight each time.
const FIRST_ROUNDS: u16 = 64;
const LONGEST_ROUNDS: u16 = 4_096;
