//! Emulated fabric: topology, scenario, testbed in namespaces, results and report.

pub mod fabric;
pub mod report;
pub mod results;
pub mod scenario;
pub mod topology;
pub mod workload;
