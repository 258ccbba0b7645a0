//! The settings of `reps-plus`; the switches take one change each back to REPS.

use crate::params::parameters;

parameters! {
    /// The settings of [`RepsPlus`](crate::path::RepsPlus).
    pub struct RepsPlusConfig {
        /// Entropy values that the buffer holds.
        buffer: Count, 1, 20, 20;
        /// Least time spent frozen, and time without freezing after it was of no use.
        freezing_timeout: Microseconds, 1_000_000, 2_000_000_000_000, 10_000_000_000;
        /// Without trimming, a loss after an RTT of so many base RTTs is congestion, not a failure.
        congestion_rtt: Ratio, 1_000, 100_000, 1_650;
        /// Recycle the entropy values of all packets that an acknowledgement stands for, not only of the one that triggered it.
        whole_acks: Flag, 0, 1, 1;
        /// Explore in an even sequence; otherwise at random.
        even_exploring: Flag, 0, 1, 1;
        /// Losses in turn despite freezing that end it; 0 is never.
        futile_losses: Count, 0, 255, 1;
    }
}
