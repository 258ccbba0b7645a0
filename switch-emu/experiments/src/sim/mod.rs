//! Scenarios on the simulator.

mod reference;
mod run;

pub(crate) use reference::published;
pub use reference::{preset, reference};
pub use run::{FctEnd, Sim, Simulation};
pub use spray_sim::over_cores;
