//! Scenarios on the simulator.

mod reference;
mod run;

pub use crate::scenario::FctEnd;
pub use reference::{preset, published, reference, same_for_all_pairs};
pub use run::{Sim, Simulation};
pub use spray_sim::run_parallel;
