//! The retransmission timeout: floor, ceiling and exponential backoff (RFC 6298 §5; the floor is REPS's, §4.1).

use super::RttEstimator;

/// Bounds of the retransmission timeout, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// The timeout before the first round-trip time is known.
    pub initial_ps: u64,
    /// The floor. Below the time that a packet takes through full queues, congestion looks like loss.
    pub min_ps: u64,
    /// The ceiling, with backoff.
    pub max_ps: u64,
}

impl RtoConfig {
    /// The reference's floor: the base round-trip time and the time in which four queues drain. A queue holds one
    /// bandwidth-delay product, so it drains in one base RTT (REPS §4.1). At 8.337 us that makes 41.7 us.
    ///
    /// The first timeout is twice that, since a first burst fills queues before any sample. The ceiling is 16 times
    /// that.
    pub const fn for_path(base_rtt_ps: u64) -> Self {
        let min_ps = base_rtt_ps.saturating_mul(5);
        Self { initial_ps: min_ps.saturating_mul(2), min_ps, max_ps: min_ps.saturating_mul(16) }
    }

    /// The timeout without backoff.
    #[inline]
    pub fn timeout_ps(&self, rtt: &RttEstimator) -> u64 {
        let timeout_ps = rtt.timeout_ps().unwrap_or(self.initial_ps);
        //= docs/specs/transport.md#TRN-31 bounds of the timeout
        timeout_ps.max(self.min_ps).min(self.max_ps.max(self.min_ps)).max(1)
    }

    /// The timeout of a transmission made after `backoff` timeouts in a row.
    #[inline]
    pub fn backed_off_ps(&self, rtt: &RttEstimator, backoff: Backoff) -> u64 {
        let timeout_ps = self.timeout_ps(rtt);
        //= docs/specs/transport.md#TRN-32 backoff
        timeout_ps.saturating_mul(1 << backoff.min(MAX_BACKOFF)).min(self.max_ps.max(timeout_ps))
    }
}

/// How many times the timeout has doubled.
pub type Backoff = u8;

/// Most doublings. More change nothing: any sensible floor has reached the ceiling by then.
pub(crate) const MAX_BACKOFF: Backoff = 30;
