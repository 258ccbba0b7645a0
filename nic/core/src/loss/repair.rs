//! How a connection repairs losses.

use super::{ReorderWindow, RttEstimator};
use crate::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    Selective,
    #[cfg(any(test, feature = "lab"))]
    ErasureCode,
    GoBackN,
}

impl Repair {
    /// Whether one packet may settle a whole message.
    pub const fn settles_messages(self) -> bool {
        !matches!(self, Self::Selective | Self::GoBackN)
    }

    //= docs/specs/erasure.md#ERA-4
    pub fn reorder_window(self) -> ReorderWindow {
        match self {
            Self::Selective | Self::GoBackN => ReorderWindow::default(),
            #[cfg(any(test, feature = "lab"))]
            Self::ErasureCode => ReorderWindow::eager(),
        }
    }

    /// When a transmission is lost by age alone; [`Time::NEVER`] without code or round-trip time.
    //= docs/specs/erasure.md#ERA-4
    #[inline]
    #[cfg_attr(not(any(test, feature = "lab")), expect(unused_variables, reason = "the code's"))]
    pub fn overdue(self, sent_at: Time, reorder_window: &ReorderWindow, rtt: &RttEstimator) -> Time {
        match self {
            Self::Selective | Self::GoBackN => Time::NEVER,
            #[cfg(any(test, feature = "lab"))]
            Self::ErasureCode => reorder_window.time_ps(rtt).map_or(Time::NEVER, |wait_ps| sent_at.after(wait_ps)),
        }
    }
}
