//! The settings of `reps-plus`. `whole_acks`, `even_exploring`, `known_paths`, `remember` and `early_losses` each turn one difference from REPS
//! off.

use crate::settings::settings;

settings! {
    /// The settings of [`RepsPlus`](crate::path::RepsPlus).
    pub struct RepsPlusConfig {
        /// Entropy values that the buffer holds.
        #[schemars(range(min = 1, max = 16))]
        pub buffer: u8 = 16,
        /// Recycle the entropy values of all packets that an acknowledgement covers, not only that of the packet that
        /// triggered it.
        pub whole_acks: bool = true,
        /// Explore in an even sequence. Otherwise exploring draws at random.
        pub even_exploring: bool = true,
        /// Explore the paths in turn where the connection is told which there are.
        pub known_paths: bool = true,
        /// Begin with what the last connection to the same host had learned.
        pub remember: bool = true,
        /// Find losses before the retransmission timer: by later packets that arrive, and by trailers that ask for the oldest one.
        pub early_losses: bool = true,
    }
}
