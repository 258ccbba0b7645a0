//! `spray bench`: performance, as ratios measured side by side in one run.

mod median;
mod sim;
#[cfg(feature = "xdp")]
mod switch;
#[cfg(target_os = "linux")]
mod transport;
#[cfg(feature = "xdp")]
pub mod variants;
#[cfg(feature = "xdp")]
mod veth;

use spray_tools::failure::Outcome;

use crate::lab::args::Bench;

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
