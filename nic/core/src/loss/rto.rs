//! The retransmission timeout: floor (REPS §4.1), ceiling and exponential backoff (RFC 6298 §5).

use super::RttEstimator;

/// Bounds of the retransmission timeout, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// The timeout before the first round-trip time.
    pub initial_ps: u64,
    /// The floor: below the time through full queues, congestion would look like loss.
    pub min_ps: u64,
    /// The ceiling, with backoff.
    pub max_ps: u64,
}

impl RtoConfig {
    /// Returns the bounds for a path of unknown length with queues that each drain in one base RTT: a
    /// floor of 41.7 us at 8.337 us, a ceiling of 16 times that, and twice the floor at first,
    /// since a first burst fills queues before any sample.
    pub const fn for_path(base_rtt_ps: u64) -> Self {
        let min_ps = floor_ps(base_rtt_ps, base_rtt_ps, 0);
        Self { initial_ps: min_ps.saturating_mul(2), min_ps, max_ps: min_ps.saturating_mul(16) }
    }

    /// Returns these bounds, raised to those of a path with this base round-trip time.
    pub fn on_path(self, base_rtt_ps: u64) -> Self {
        let path = Self::for_path(base_rtt_ps);
        Self { min_ps: self.min_ps.max(path.min_ps), max_ps: self.max_ps.max(path.max_ps), ..self }
    }

    /// The timeout without backoff.
    #[inline]
    pub fn timeout_ps(&self, rtt: &RttEstimator) -> u64 {
        let timeout_ps = rtt.timeout_ps().unwrap_or(self.initial_ps);
        //= docs/specs/transport.md#TRN-31 bounds of the timeout
        timeout_ps.max(self.min_ps).min(self.max_ps.max(self.min_ps)).max(1)
    }

    /// The timeout of a transmission made after `backoff` consecutive timeouts.
    #[inline]
    pub fn backed_off_ps(&self, rtt: &RttEstimator, backoff: Backoff) -> u64 {
        let timeout_ps = self.timeout_ps(rtt);
        //= docs/specs/transport.md#TRN-32 backoff
        timeout_ps.saturating_mul(1 << backoff.min(MAX_BACKOFF)).min(self.max_ps.max(timeout_ps))
    }
}

/// Returns the least timeout over `switches` queues that drain in `drain_ps`, all of them full.
//= docs/specs/transport.md#TRN-31 bounds of the timeout
pub const fn floor_ps(base_rtt_ps: u64, drain_ps: u64, switches: u64) -> u64 {
    let queues = if switches > LEAST_QUEUES { switches } else { LEAST_QUEUES };
    base_rtt_ps.saturating_add(drain_ps.saturating_mul(queues))
}

/// Minimum number of queues, the published artifact's for any tiers. Two tiers have three.
const LEAST_QUEUES: u64 = 4;

/// The number of doublings of the timeout.
pub type Backoff = u8;

/// Maximum doublings: by then any sensible floor has reached the ceiling.
pub(crate) const MAX_BACKOFF: Backoff = 30;
