//! Experiments: scenarios, workloads, both engines, results, reports and comparisons.

pub mod comparison;
pub mod fidelity;
pub mod report;
pub mod results;
pub mod scenario;
pub mod schemes;
pub mod sim;
pub mod testbed;
pub mod workload;
