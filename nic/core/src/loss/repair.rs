//! How a connection repairs losses.

use super::{Patience, RttEstimator};
use crate::Time;

/// How a connection repairs losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The lost packet is sent again.
    Resend,
    #[cfg(any(test, feature = "lab"))]
    /// A fresh packet of the ideal code is sent.
    IdealCode,
    /// Every packet from the lost one on is sent again.
    GoBack,
}

impl Repair {
    /// Whether one packet may settle all of a message.
    pub const fn settles_messages(self) -> bool {
        !matches!(self, Self::Resend | Self::GoBack)
    }

    /// How long a gap waits at first.
    //= docs/specs/erasure.md#ERA-4
    pub fn patience(self) -> Patience {
        match self {
            Self::Resend | Self::GoBack => Patience::default(),
            #[cfg(any(test, feature = "lab"))]
            Self::IdealCode => Patience::eager(),
        }
    }

    /// When a transmission made at `sent_at` is lost for its age alone; [`Time::NEVER`] without a code, and before any
    /// round-trip time is known.
    //= docs/specs/erasure.md#ERA-4
    #[inline]
    #[cfg_attr(not(any(test, feature = "lab")), expect(unused_variables, reason = "the code's"))]
    pub fn overdue(self, sent_at: Time, patience: &Patience, rtt: &RttEstimator) -> Time {
        match self {
            Self::Resend | Self::GoBack => Time::NEVER,
            #[cfg(any(test, feature = "lab"))]
            Self::IdealCode => patience.time_ps(rtt).map_or(Time::NEVER, |patience_ps| sent_at.after(patience_ps)),
        }
    }
}
