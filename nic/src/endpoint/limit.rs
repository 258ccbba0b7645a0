//! The rate limit of answers to frames without a valid cookie.

/// Most answers at once: enough for a whole table of peers to learn of a restart.
const BURST: u32 = 64;
/// Time between further answers: a millisecond.
const INTERVAL_PS: u64 = 1_000_000_000;

/// A token bucket.
#[derive(Debug)]
pub(crate) struct RateLimit {
    tokens: u32,
    refilled_ps: u64,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { tokens: BURST, refilled_ps: 0 }
    }
}

impl RateLimit {
    /// Whether an answer may go now. If so, it is counted.
    pub(crate) fn allow(&mut self, now_ps: u64) -> bool {
        let fresh = now_ps.saturating_sub(self.refilled_ps) / INTERVAL_PS;
        self.refilled_ps += fresh * INTERVAL_PS;
        self.tokens = (u64::from(self.tokens).saturating_add(fresh)).min(u64::from(BURST)) as u32;
        let allowed = self.tokens > 0;
        self.tokens -= u32::from(allowed);
        allowed
    }

    /// The time begins again at 0.
    pub(crate) fn restart_clock(&mut self) {
        self.refilled_ps = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_one_per_interval() {
        let mut limit = RateLimit::default();
        assert_eq!((0..1000).filter(|_| limit.allow(5)).count(), BURST as usize);
        assert!(!limit.allow(INTERVAL_PS - 1));
        assert!(limit.allow(INTERVAL_PS) && !limit.allow(INTERVAL_PS));
        assert_eq!((0..1000).filter(|_| limit.allow(1000 * INTERVAL_PS)).count(), BURST as usize);
    }
}
