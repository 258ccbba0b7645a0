//! The settings of every balancer that has parameters by name.

use super::RepsConfig;
use crate::params::settings;

settings! {
    /// The settings of each balancer, under the balancer's name; `flowcut.rtt_ratio` is a parameter's full name.
    pub struct Schemes {
        /// See [`Reps`](super::Reps); those of `reps-no-freezing` and `reps-probing` too.
        reps "reps": RepsConfig;
    }
}
