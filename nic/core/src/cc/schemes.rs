//! The settings of every congestion control that has parameters by name.

use super::{DcqcnConfig, EqdsConfig, FixedWindowConfig, MSwiftConfig, NsccConfig};
use crate::params::settings;

settings! {
    /// The settings of each congestion control, under its name; `fixed-window.window_bytes` is a parameter's full name.
    pub struct CcSchemes {
        /// See [`Eqds`](super::Eqds).
        eqds "eqds": EqdsConfig;
        /// See [`FixedWindow`](super::FixedWindow).
        fixed_window "fixed-window": FixedWindowConfig;
        /// See [`MSwift`](super::MSwift).
        mswift "mswift": MSwiftConfig;
        /// See [`Nscc`](super::Nscc).
        nscc "nscc": NsccConfig;
        /// See [`Dcqcn`](super::Dcqcn).
        dcqcn "dcqcn": DcqcnConfig;
    }
}
