//! The selective-ACK threshold: a packet is lost when enough packets sent after it have arrived (OFAN §4 "Loss recovery" and
//! §8.2: 6 for all-to-all, 32 for permutations), at once or when time has told too.

use super::{Patience, RttEstimator};

/// What it takes besides enough later arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SackRule {
    /// Time: every path seen lately would have answered (TRN-35).
    #[default]
    Patient,
    /// Nothing, as in OFAN's evaluation.
    Plain,
}

impl SackRule {
    /// The names that scenario files and commands use, in the order of the variants.
    pub const NAMES: &'static [&'static str] = &["patient", "plain"];

    /// The rule of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "patient" => Some(Self::Patient),
            "plain" => Some(Self::Plain),
            _ => None,
        }
    }
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
            //= docs/specs/transport.md#TRN-35
            SackRule::Patient => patience.time_ps(rtt).map(|patience_ps| sent_ps.saturating_add(patience_ps)),
            //= docs/specs/transport.md#TRN-39
            SackRule::Plain => Some(sent_ps),
        }
    }
}
