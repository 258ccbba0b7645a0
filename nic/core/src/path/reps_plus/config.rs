//! The settings of `reps-plus`.

use crate::settings::settings;

settings! {
    /// The settings of [`RepsPlus`](crate::path::RepsPlus).
    pub struct RepsPlusConfig {
        /// Entropy values that the buffer holds.
        #[schemars(range(min = 1, max = 16))]
        pub buffer: u8 = 16,
        /// Explore the paths in turn where the connection is told which there are.
        pub known_paths: bool = true,
        /// Begin with what the last connection to the same host had learned.
        pub remember: bool = true,
    }
}
