//! The settings of `reps-plus`.

use crate::settings::settings;

settings! {
    /// The settings of [`RepsPlus`](crate::path::RepsPlus).
    pub struct RepsPlusConfig {
        /// Entropy values that the buffer holds.
        #[schemars(range(min = 1, max = 16))]
        pub buffer: u8 = 16,
        /// Explore the paths in turn if the engine provides them.
        pub known_paths: bool = true,
        /// Begin with the knowledge of the last connection to the same host.
        pub remember: bool = true,
    }
}
