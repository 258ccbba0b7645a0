//! The time that a gap waits before it counts as a loss, adapted to reordering (as RFC 8985 §6.2).

use super::RttEstimator;
use crate::Time;

/// The waiting time of the gap rule, which grows with each spurious loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReorderWindow {
    /// Extra time, in quarters of the smoothed round-trip time, and its least value.
    quarters: u8,
    least: u8,
    /// Confirmed losses since the last mistake.
    right: u8,
    raised_at: Time,
}

impl Default for ReorderWindow {
    fn default() -> Self {
        Self { quarters: LEAST_QUARTERS, least: LEAST_QUARTERS, right: 0, raised_at: Time::ZERO }
    }
}

impl ReorderWindow {
    /// Starts with no extra time: for the ideal erasure code, where a mistake costs only a packet.
    //= docs/specs/erasure.md#ERA-4
    pub fn eager() -> Self {
        Self { quarters: EAGER_QUARTERS, least: EAGER_QUARTERS, ..Self::default() }
    }

    /// Starts with less extra time, for schemes that tolerate mistakes.
    //= docs/specs/transport.md#TRN-40 quick gap rule
    pub fn quick() -> Self {
        Self { quarters: QUICK_QUARTERS, least: QUICK_QUARTERS, ..Self::default() }
    }

    /// Takes a spurious loss: the packet had arrived. Those of one round trip count once.
    pub fn on_spurious_loss(&mut self, now: Time, rtt: &RttEstimator) {
        self.right = 0;
        if self.quarters == self.least || now.since(self.raised_at) >= rtt.smoothed_ps() {
            self.quarters = (self.quarters + 1).min(MAX_QUARTERS);
            self.raised_at = now;
        }
    }

    pub fn on_confirmed_loss(&mut self) {
        self.right += 1;
        if self.right == CONFIRMATIONS {
            self.right = 0;
            self.quarters = self.quarters.saturating_sub(1).max(self.least);
        }
    }

    /// Minimum time between a transmission and its loss by the gap rule; `None` before any sample.
    #[inline]
    pub fn time_ps(&self, rtt: &RttEstimator) -> Option<u64> {
        //= docs/specs/transport.md#TRN-35 gap rule
        let smoothed_ps = rtt.smoothed_ps();
        let extra_ps = smoothed_ps / 4 * u64::from(self.quarters);
        let seen_ps = rtt.recent_max_ps().max(smoothed_ps + smoothed_ps / 8);
        (smoothed_ps != 0).then(|| seen_ps.saturating_add(extra_ps))
    }
}

/// One and a half round trips: a queue of one bandwidth-delay product drains in one, at half rate
/// in two. Measured over four paths, one of them slow (`flow/tests/fabric.rs`): with 0 quarters 10
/// packets of 4,100 were spurious losses, for which REPS froze and took 530 us instead of 417; with
/// 2 it had none. With 6 OPS, too, has one or two in place of 19.
const LEAST_QUARTERS: u8 = 6;

/// Nothing beyond the recent times: OFAN's sender declares lost every packet before its last
/// bandwidth-delay product. With an eighth of a round trip less it sent 2 % of its packets twice.
const EAGER_QUARTERS: u8 = 0;

/// With two, a slow uplink and an ACK for eight packets made it send 2 of 128,000 packets twice.
const QUICK_QUARTERS: u8 = 3;

/// Four round trips: the timeout expires by then.
const MAX_QUARTERS: u8 = 16;

/// Recoveries after which reordering counts as past (RFC 8985).
const CONFIRMATIONS: u8 = 16;
