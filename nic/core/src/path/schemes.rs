//! The settings of every balancer that has parameters by name.

use crate::params::settings;

settings! {
    /// The settings of each balancer, under the balancer's name; `flowcut.rtt_ratio` is a parameter's full name.
    pub struct Schemes {
    }
}
