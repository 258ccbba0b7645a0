//! Emulated fabric: topology, scenario, testbed in namespaces, results and report.

pub mod report;
pub mod results;
