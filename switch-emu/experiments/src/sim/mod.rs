//! Scenarios on the simulator.

mod engine;
mod reference;
mod run;

pub use engine::Sim;
pub use reference::{preset, reference};
pub use run::{FctEnd, SimOptions, Simulation};
pub use spray_sim::{SimError, over_cores};
