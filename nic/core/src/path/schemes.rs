//! The settings of every balancer that has parameters by name.

use super::RepsConfig;
use crate::params::settings;

settings! {
    /// The settings of each balancer, under the balancer's name; `flowcut.rtt_ratio` is a parameter's full name.
    pub struct Schemes {
        /// One path at a time, changed only when nothing is in flight.
        flowcut "flowcut": super::FlowcutConfig;
        /// See [`Reps`](super::Reps); those of `reps-no-freezing` and `reps-probing` too.
        reps "reps": RepsConfig;
        /// Paths in turn.
        host_dr "host-dr": super::HostDrConfig;
        /// REPS with three changes.
        reps_plus "reps-plus": super::RepsPlusConfig;
        /// Subflows with a window each.
        mptcp "mptcp": super::MptcpConfig;
        /// Labels in turn.
        subflow "subflow": super::SubflowConfig;
        /// Subflows in order, the worst of which moves.
        ordered_chaos "ordered-chaos": super::OrderedChaosConfig;
        /// The better of two labels.
        power_of_two "power-of-two": super::PowerOfTwoConfig;
        /// Labels that were not marked lately.
        least_recently_marked "least-recently-marked": super::LeastRecentlyMarkedConfig;
        /// One path for as long as it is not congested.
        plb "plb": super::PlbConfig;
        /// A new path after a gap.
        flowlet "flowlet": super::FlowletConfig;
        /// A new path every so many bytes.
        flowcell "flowcell": super::FlowcellConfig;
        /// The path of the last acknowledgement.
        mprdma "mprdma": super::MprdmaConfig;
        /// A penalty for each entropy value.
        bitmap "bitmap": super::BitmapConfig;
    }
}
