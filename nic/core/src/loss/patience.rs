//! How long a gap waits before it counts as a loss: longer where reordering was mistaken for loss (as RFC 8985 §6.2).

use super::RttEstimator;

/// The time rule of gap detection, which learns from its mistakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Extra patience, in quarters of the least round-trip time, and the least of it.
    quarters: u8,
    least: u8,
    /// Losses in a row that were none of its mistakes.
    right: u8,
    raised_ps: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { quarters: LEAST_QUARTERS, least: LEAST_QUARTERS, right: 0, raised_ps: 0 }
    }
}

impl Patience {
    /// One that begins with little, for where a mistake costs no more than a packet (ideal erasure code).
    //= docs/specs/erasure.md#ERA-4
    pub fn eager() -> Self {
        Self { quarters: EAGER_QUARTERS, least: EAGER_QUARTERS, ..Self::default() }
    }

    /// Takes the news at `now_ps` that a packet declared lost for a gap was not; counts once a round trip.
    pub fn on_mistake(&mut self, now_ps: u64, rtt: &RttEstimator) {
        self.right = 0;
        if self.quarters == self.least || now_ps.saturating_sub(self.raised_ps) >= rtt.smoothed_ps() {
            self.quarters = (self.quarters + 1).min(MAX_QUARTERS);
            self.raised_ps = now_ps;
        }
    }

    /// Takes the news that a packet declared lost for a gap was.
    pub fn on_confirmation(&mut self) {
        self.right += 1;
        if self.right == CONFIRMATIONS {
            self.right = 0;
            self.quarters = (self.quarters - 1).max(self.least);
        }
    }

    /// How long after its transmission a packet may be declared lost for a gap; `None` before any sample.
    #[inline]
    pub fn time_ps(&self, rtt: &RttEstimator) -> Option<u64> {
        //= docs/specs/transport.md#TRN-35 gap rule
        let smoothed_ps = rtt.smoothed_ps();
        let extra_ps = rtt.min_ps() / 4 * u64::from(self.quarters);
        let seen_ps = rtt.recent_max_ps().max(smoothed_ps + smoothed_ps / 8);
        (smoothed_ps != 0).then(|| seen_ps.saturating_add(extra_ps))
    }
}

/// One and a half round trips: a queue of one bandwidth-delay product drains in one, at half rate in two. Measured over
/// four modelled paths (`flow/tests/fabric.rs`), of which one slowed down: with 0 quarters 10 packets of 4,100 were
/// mistaken for lost and REPS, which froze for them, took 530 us instead of 417; with 2 it was none, with 6 OPS too has one
/// or two in place of 19.
const LEAST_QUARTERS: u8 = 6;

/// A quarter of a round trip beyond what was seen lately: OFAN's sender counts on what it sent in the last bandwidth-delay product and
/// on nothing before.
const EAGER_QUARTERS: u8 = 1;

/// Four round trips: by then the timeout is due anyway.
const MAX_QUARTERS: u8 = 16;

/// RFC 8985's count of recoveries after which reordering counts as past.
const CONFIRMATIONS: u8 = 16;
