use spray_experiments::engine::Engine;
use spray_experiments::sim::Sim;
use spray_tools::failure::Outcome;

use crate::lab::args;

/// A run of the simulator uses at most `threads`.
pub fn engine(which: args::Engine, threads: usize) -> Outcome<Box<dyn Engine>> {
    match which {
        args::Engine::Sim => Ok(Box::new(Sim { threads })),
        #[cfg(feature = "xdp")]
        args::Engine::Xdp => Ok(Box::<spray_experiments::xdp::Xdp>::default()),
        #[cfg(not(feature = "xdp"))]
        args::Engine::Xdp => Err(spray_tools::failure::Failure::refused(
            "this build has no xdp engine: it was built without the feature `xdp`. Build with `--features xdp` on Linux, or \
            use `--engine sim`",
        )),
    }
}
