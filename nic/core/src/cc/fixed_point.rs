//! Fixed-point numbers: windows in 2^-16 bytes, shares in 2^-16, times in ticks.

use crate::Time;
use crate::link::PS_PER_S;
use crate::units::Ratio;

//= docs/specs/mswift.md#MSW-10 integers
//= docs/specs/nscc.md#NSC-11 factors in 2^-16
pub(super) const FRACTION_BITS: u32 = 16;

/// Maximum window. A terabyte leaves room for the fraction, and for growth, in 64 bits.
pub(super) const MAX_WINDOW_BYTES: u64 = 1 << 40;

/// Maximum bytes of one acknowledgement. More would overflow the growth, and cannot be genuine.
pub(super) const MAX_ACKED_BYTES: u64 = u32::MAX as u64;

pub(super) const ONE: u64 = 1 << FRACTION_BITS;

/// Converts a time to units of 2^10 ps, about a nanosecond, at most 4.4 ms.
pub(super) fn ticks(ps: u64) -> u32 {
    u32::try_from(ps >> 10).unwrap_or(u32::MAX)
}

pub(super) fn share(ratio: Ratio) -> u64 {
    ratio.of(ONE)
}

pub(super) fn times(value: u64, share: u64) -> u64 {
    ((u128::from(value) * u128::from(share)) >> FRACTION_BITS) as u64
}

/// `bytes` in 2^-16 bytes, at least a packet and at most the largest window.
pub(super) fn window(bytes: u64, packet_bytes: u64) -> u64 {
    bytes.clamp(packet_bytes, MAX_WINDOW_BYTES) << FRACTION_BITS
}

/// `bytes * per / window` in 2^-16 bytes, as is `window`. The dividend rarely exceeds 64 bits.
pub(super) fn per_window(bytes: u64, per: u64, window: u64) -> u64 {
    let (dividend, window) = (u128::from(bytes * per) << (2 * FRACTION_BITS), window.max(1));
    match u64::try_from(dividend) {
        Ok(dividend) => dividend / window,
        Err(_) => u64::try_from(dividend / u128::from(window)).unwrap_or(u64::MAX),
    }
}

/// Returns when the next packet is due. A late sender catches up by at most `catch_up_packets`.
pub(super) fn after_gap(due: Time, now: Time, gap_ps: u64, catch_up_packets: u64) -> Time {
    let earliest = now.before(gap_ps.saturating_mul(catch_up_packets));
    due.max(earliest).after(gap_ps)
}

const STEP: u64 = Time::STEP_PS << FRACTION_BITS;

/// Gaps of whole steps of [`Time`], at most 281 s, at a constant rate. Remainders add up.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    /// Time of one byte in units of 2^-16 ps.
    byte_time: u64,
    /// In 2^-16 ps, less than a step.
    rest: u32,
}

impl Gaps {
    /// Creates the gaps of a rate in bits per second; 0 counts as 1.
    pub(super) fn new(rate_bps: u64) -> Self {
        Self { byte_time: ((8 * PS_PER_S) << FRACTION_BITS) / rate_bps.max(1), rest: 0 }
    }

    pub(super) fn gap_ps(&mut self, bytes: u64) -> u64 {
        let gap = bytes.saturating_mul(self.byte_time).saturating_add(self.rest.into());
        self.rest = (gap % STEP) as u32;
        gap / STEP * Time::STEP_PS
    }

    /// Drops the remainder, since a pause precedes the next packet.
    pub(super) fn restart(&mut self) {
        self.rest = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_whole_steps_and_carry_the_remainder() {
        for rate_bps in [1_000_000, 7_777_777_777, 30_000_000_000, 400_000_000_000, 800_000_000_000] {
            let mut gaps = Gaps::new(rate_bps);
            let (mut sum_ps, mut bytes) = (0, 0);
            for packet in 0..10_000 {
                bytes += packet % 97;
                let gap_ps = gaps.gap_ps(packet % 97);
                assert!(gap_ps.is_multiple_of(Time::STEP_PS));
                sum_ps += gap_ps;
                // Less than 2^-16 ps is lost per byte, and in total less than one step is still
                // pending.
                let exact_ps = (u128::from(bytes) * 8 * u128::from(PS_PER_S) / u128::from(rate_bps)) as u64;
                let late_ps = exact_ps - sum_ps;
                assert!(late_ps <= Time::STEP_PS + (bytes >> FRACTION_BITS), "{rate_bps}: {late_ps}");
            }
            gaps.restart();
            assert_eq!(gaps.gap_ps(0), 0);
        }
    }

    #[test]
    fn the_longest_gap_is_281_seconds() {
        for (rate_bps, bytes) in [(0, u64::MAX), (1, 36), (1, 1 << 40), (1_000_000_000_000_000, u64::MAX)] {
            assert_eq!(Gaps::new(rate_bps).gap_ps(bytes) / PS_PER_S, 281, "{bytes} at {rate_bps}");
        }
        assert_eq!(Gaps::new(1).gap_ps(35), 280 * PS_PER_S);
    }
}
