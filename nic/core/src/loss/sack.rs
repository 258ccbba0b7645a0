//! The selective-ACK threshold: a packet is lost when enough packets sent after it have arrived (OFAN §4 "Loss
//! recovery"; §8.2 has 6 for all-to-all, 32 for permutations). It is lost at once, or after a time.

use super::{Patience, RttEstimator};
use crate::settings::settings;

settings! {
    /// What declares a packet lost besides enough later arrivals.
    #[derive(Default)]
    pub enum SackRule {
        /// A time in which every path seen lately would have answered (TRN-35).
        #[default]
        Patient,
        /// Nothing else, as in OFAN's evaluation.
        Plain,
    }
}

/// The threshold and its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackGap {
    /// Later transmissions that must have arrived; `None` never declares a loss.
    pub packets: Option<u32>,
    /// What must hold besides.
    pub rule: SackRule,
}

impl SackGap {
    /// When a transmission made at `sent_ps` counts as lost, if `arrived_after` later ones have arrived. `None`: they
    /// are too few to declare it lost.
    #[inline]
    pub fn deadline_ps(
        &self,
        arrived_after: u64,
        sent_ps: u64,
        patience: &Patience,
        rtt: &RttEstimator,
    ) -> Option<u64> {
        if arrived_after < u64::from(self.packets?) {
            return None;
        }
        match self.rule {
            //= docs/specs/transport.md#TRN-35 gap rule
            SackRule::Patient => patience.time_ps(rtt).map(|patience_ps| sent_ps.saturating_add(patience_ps)),
            //= docs/specs/transport.md#TRN-39 plain gap rule
            SackRule::Plain => Some(sent_ps),
        }
    }
}
