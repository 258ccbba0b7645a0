//! The settings of `reps-plus`. `whole_acks`, `even_exploring` and `futile_losses` each turn one difference from REPS
//! off.

use crate::settings::settings;
use crate::units::{Micros, Ratio};

settings! {
    /// The settings of [`RepsPlus`](crate::path::RepsPlus).
    pub struct RepsPlusConfig {
        /// Entropy values that the buffer holds.
        #[schemars(range(min = 1, max = 20))]
        pub buffer: u8 = 20,
        /// Least time spent frozen. After a freeze that did not help, the connection does not freeze for as long.
        #[schemars(range(min = 1, max = 2_000_000))]
        pub freezing_timeout_us: Micros = Micros::new(10_000),
        /// Without trimming, a loss after an RTT of at least this many base RTTs is congestion, not a failure.
        #[schemars(range(min = 1, max = 100))]
        pub congestion_rtt: Ratio = Ratio::permille(1_650),
        /// Recycle the entropy values of all packets that an acknowledgement covers, not only that of the packet that
        /// triggered it.
        pub whole_acks: bool = true,
        /// Explore in an even sequence. Otherwise exploring draws at random.
        pub even_exploring: bool = true,
        /// So many losses in a row despite freezing end it. 0 is never.
        pub futile_losses: u8 = 1,
    }
}
