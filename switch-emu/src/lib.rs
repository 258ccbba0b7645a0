//! Emulated fabric: topology, scenario, testbed in namespaces, results and report.

/// Baselines for `spray bench veth`.
pub mod bench;
pub mod comparison;
pub mod fabric;
pub mod fidelity;
pub mod program;
pub mod report;
pub mod results;
pub mod scenario;
pub mod schemes;
pub mod sim;
pub mod testbed;
pub mod topology;
pub mod workload;
