//! Rate limits of what strangers can have an endpoint do.

use spray_core::Time;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

/// A token bucket: at most `BURST` at once, and then one each `INTERVAL_PS`.
#[derive(Debug)]
pub(crate) struct RateLimit<const BURST: u32, const INTERVAL_PS: u64> {
    tokens: u32,
    refilled_at: Time,
}

/// Of answers to frames without a valid cookie: at once enough for a whole table of peers to learn of a restart, then one a millisecond.
pub(crate) type Answers = RateLimit<64, 1_000_000_000>;

impl<const BURST: u32, const INTERVAL_PS: u64> Default for RateLimit<BURST, INTERVAL_PS> {
    fn default() -> Self {
        Self { tokens: BURST, refilled_at: Time::ZERO }
    }
}

impl<const BURST: u32, const INTERVAL_PS: u64> RateLimit<BURST, INTERVAL_PS> {
    /// Whether it may happen now. If so, it is counted.
    pub(crate) fn allow(&mut self, now: Time) -> bool {
        let fresh = now.since(self.refilled_at) / INTERVAL_PS;
        // A full bucket counts from now.
        let full = fresh >= u64::from(BURST);
        self.refilled_at = if full { now } else { self.refilled_at.after(fresh * INTERVAL_PS) };
        self.tokens = (u64::from(self.tokens).saturating_add(fresh)).min(u64::from(BURST)) as u32;
        let allowed = self.tokens > 0;
        self.tokens -= u32::from(allowed);
        allowed
    }
}

/// Sources whose key exchanges are counted apart, as far as their addresses' hashes differ.
const SOURCES: usize = 256;

/// The limit of key exchanges, each of which costs a server some 90 us: 1,000 a second in all, a tenth of a core, and 10 a second from
/// one address after 16 at once.
#[derive(Debug)]
pub(crate) struct Exchanges {
    all: RateLimit<64, 1_000_000_000>,
    sources: Vec<RateLimit<16, 100_000_000_000>>,
    hash: RandomState,
}

impl Default for Exchanges {
    fn default() -> Self {
        let sources = (0..SOURCES).map(|_| RateLimit::default()).collect();
        Self { all: RateLimit::default(), sources, hash: RandomState::new() }
    }
}

impl Exchanges {
    /// Whether a client at `source` may have keys exchanged now. If so, it is counted.
    pub(crate) fn allow(&mut self, now: Time, source: IpAddr) -> bool {
        let place = self.hash.hash_one(source) as usize % SOURCES;
        self.sources[place].allow(now) && self.all.allow(now)
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
        assert!(limit.allow(at(INTERVAL_PS)) && !limit.allow(at(INTERVAL_PS)));
        assert_eq!((0..1000).filter(|_| limit.allow(at(1000 * INTERVAL_PS))).count(), 64);
    }

    #[test]
    fn one_source_does_not_use_up_the_exchanges_of_others() {
        let mut exchanges = Exchanges::default();
        let second_ps = 1_000 * INTERVAL_PS;
        let source = |host: u8| IpAddr::from([10, 0, 0, host]);
        let mut allowed = 0;
        for tick in 0..100_000 {
            allowed += u32::from(exchanges.allow(Time::from_ps(tick * second_ps / 100_000), source(1)));
        }
        assert!((24..=26).contains(&allowed), "{allowed}");
        let others = (2..40).filter(|&host| exchanges.allow(Time::from_ps(second_ps), source(host))).count();
        assert!(others >= 30, "{others} of 38: a few may share the first one's hash");
    }
}
