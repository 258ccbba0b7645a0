//! Rate limits for requests of unauthenticated peers.

use spray_core::Time;

/// A token bucket: `BURST` at once, then one each `INTERVAL_PS`.
#[derive(Debug)]
pub(crate) struct RateLimit<const BURST: u32, const INTERVAL_PS: u64> {
    tokens: u32,
    refilled_at: Time,
}

/// Answers to frames without a valid cookie: enough for a full table of peers after a restart, then
/// one per millisecond.
pub(crate) type Answers = RateLimit<64, 1_000_000_000>;

impl<const BURST: u32, const INTERVAL_PS: u64> Default for RateLimit<BURST, INTERVAL_PS> {
    fn default() -> Self {
        Self { tokens: BURST, refilled_at: Time::ZERO }
    }
}

impl<const BURST: u32, const INTERVAL_PS: u64> RateLimit<BURST, INTERVAL_PS> {
    /// Returns whether the bucket has a token, and takes it.
    pub(crate) fn allow(&mut self, now: Time) -> bool {
        let fresh = now.since(self.refilled_at) / INTERVAL_PS;
        // A full bucket fills from now on.
        let full = fresh >= u64::from(BURST);
        self.refilled_at = if full { now } else { self.refilled_at.after(fresh * INTERVAL_PS) };
        self.tokens = (u64::from(self.tokens).saturating_add(fresh)).min(u64::from(BURST)) as u32;
        let allowed = self.tokens > 0;
        self.tokens -= u32::from(allowed);
        allowed
    }

    /// Returns when the bucket has a token.
    pub(crate) fn next_at(&self) -> Time {
        if self.tokens > 0 { self.refilled_at } else { self.refilled_at.after(INTERVAL_PS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL_PS: u64 = 1_000_000_000;

    #[test]
    fn a_burst_and_then_one_per_interval() {
        let (mut limit, at) = (Answers::default(), Time::from_ps);
        assert_eq!((0..1000).filter(|_| limit.allow(at(5_000))).count(), 64);
        assert!(!limit.allow(at(INTERVAL_PS).before(Time::STEP_PS)));
        assert_eq!(limit.next_at(), at(INTERVAL_PS));
        assert!(limit.allow(at(INTERVAL_PS)) && !limit.allow(at(INTERVAL_PS)));
        assert_eq!((0..1000).filter(|_| limit.allow(at(1000 * INTERVAL_PS))).count(), 64);
    }
}
