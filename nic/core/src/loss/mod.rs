//! Loss detection: round-trip time, retransmission timeout, and the scoreboard of what is in flight.

mod bits;
mod patience;
mod record;
mod rto;
mod rtt;
mod scoreboard;
mod subflow;

#[cfg(test)]
mod tests;

pub(crate) use self::bits::Bits;
pub use self::patience::Patience;
pub use self::record::Record;
pub use self::rto::{Backoff, RtoConfig};
pub use self::rtt::{MAX_SAMPLE_PS, RttEstimator};
pub use self::scoreboard::{Lost, Scoreboard, Settled};
pub(crate) use self::subflow::{Arrived, Evidence, SectionWatch};
