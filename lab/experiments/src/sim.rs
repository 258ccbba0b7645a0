//! Scenarios on the simulator.

mod reference;
mod run;

pub use crate::scenario::FctEnd;
pub use reference::{preset, reference};
pub(crate) use reference::{published, same_for_all_pairs};
pub use run::{Sim, Simulation};
pub use spray_sim::over_cores;
