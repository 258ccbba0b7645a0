//! The selective-ACK threshold: a packet is lost when enough packets sent after it have arrived (OFAN §4 "Loss recovery" and
//! §8.2: 6 for all-to-all, 32 for permutations), at once or when time has told too.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Patience, RttEstimator};

/// What it takes besides enough later arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum SackRule {
    /// The time in which every path seen lately would have answered (TRN-35).
    #[default]
    Patient,
    /// Nothing more, as in OFAN's evaluation.
    Plain,
}

/// The threshold and its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackGap {
    /// Later transmissions that must have arrived; `None` never declares a loss.
    pub packets: Option<u32>,
    /// What else it takes.
    pub rule: SackRule,
}

impl SackGap {
    /// When a transmission made at `sent_ps` counts as lost, `arrived_after` later ones having arrived; `None` is not on their
    /// account.
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
