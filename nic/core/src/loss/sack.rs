//! The selective-ACK threshold: later arrivals prove losses (OFAN §4 "Loss recovery"; §8.2 has 6
//! for all-to-all, 32 for permutations).

use super::{ReorderWindow, RttEstimator, Scoreboard};
use crate::Time;
use crate::settings::settings;

settings! {
    /// The condition of a loss in addition to later arrivals.
    #[derive(Default)]
    pub enum SackRule {
        /// The longest recent round-trip time on any path has passed (TRN-35).
        #[default]
        Patient,
        /// None, as in OFAN's evaluation: all missing before the latest arrival is lost (TRN-39).
        Plain,
    }
}

/// The threshold and its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackGap {
    /// Later arrivals, or the distance of the latest (TRN-39); `None` declares no losses.
    pub packets: Option<u32>,
    /// The additional condition.
    pub rule: SackRule,
}

impl SackGap {
    /// Returns the oldest packet before the latest arrival, if the plain rule declares it lost.
    //= docs/specs/transport.md#TRN-39 plain gap rule
    #[inline]
    pub fn widest_gap(&self, scoreboard: &Scoreboard) -> Option<u64> {
        scoreboard.oldest_behind(u64::from(self.packets?)).filter(|_| self.rule == SackRule::Plain)
    }

    /// When a transmission is lost by the patient rule; `None` for too few `later` arrivals.
    #[inline]
    pub fn deadline(&self, later: u64, sent_at: Time, window: &ReorderWindow, rtt: &RttEstimator) -> Option<Time> {
        if later < u64::from(self.packets?) {
            return None;
        }
        match self.rule {
            //= docs/specs/transport.md#TRN-35 gap rule
            SackRule::Patient => window.time_ps(rtt).map(|wait_ps| sent_at.after(wait_ps)),
            SackRule::Plain => None,
        }
    }
}
