//! Experiments: scenarios, workloads, both engines, results and reports.

pub mod bound;
pub mod check;
pub mod engine;
pub mod figures;
mod flowcut_memory;
mod memory;
mod report;
pub mod results;
pub mod scenario;
pub mod sim;
pub mod specs;
pub mod watch;
pub mod workload;
#[cfg(feature = "xdp")]
pub mod xdp;

#[cfg(feature = "xdp")]
pub use spray_switch as switch;
