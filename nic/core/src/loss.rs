//! Loss recovery, one file per scheme. Round-trip times and the scoreboard serve all of them.

mod bits;
#[cfg(any(test, feature = "lab"))]
mod erasure;
mod go_back_n;
mod histogram;
mod irn;
mod receivers;
mod record;
mod reorder_window;
mod repair;
mod rto;
mod rtt;
mod sack;
mod scoreboard;
mod section_loss;

#[cfg(test)]
mod tests;

pub(crate) use self::bits::Bits;
#[cfg(any(test, feature = "lab"))]
pub(crate) use self::erasure::Span;
pub(crate) use self::go_back_n::GoBackN;
pub use self::go_back_n::GoBackNConfig;
pub use self::histogram::RttHistogram;
pub(crate) use self::irn::Irn;
pub use self::irn::IrnConfig;
pub use self::receivers::{ReceiverConfig, ReceiverKind, Receivers};
pub(crate) use self::record::Record;
pub(crate) use self::reorder_window::ReorderWindow;
pub(crate) use self::repair::Repair;
pub(crate) use self::rto::{Backoff, MAX_BACKOFF};
pub use self::rto::{RtoConfig, floor_ps};
pub(crate) use self::rtt::MAX_SAMPLE_PS;
pub use self::rtt::RttEstimator;
pub use self::sack::{SackGap, SackRule};
pub(crate) use self::scoreboard::{Lost, Scoreboard, Settled};
pub(crate) use self::section_loss::{Evidence, GapDetector, Received};
