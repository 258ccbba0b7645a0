//! `spray bench`: performance, as ratios measured side by side in one run.

mod median;
mod sim;
#[cfg(feature = "xdp")]
mod switch;
#[cfg(target_os = "linux")]
mod transport;
#[cfg(feature = "xdp")]
pub mod veth;

use spray_tools::failure::Outcome;

use crate::lab::args::Bench;

/// Fails with 2 when the machine does not allow it, 1 when a measurement failed, 130 after Ctrl-C.
pub fn bench(arguments: &Bench) -> Outcome {
    match arguments {
        #[cfg(feature = "xdp")]
        Bench::Veth(arguments) => veth::veth(arguments),
        Bench::Sim(arguments) => sim::sim(arguments),
        #[cfg(target_os = "linux")]
        Bench::Transport(arguments) => transport::transport(arguments),
        #[cfg(feature = "xdp")]
        Bench::Switch(arguments) => switch::switch(arguments),
    }
}
