//! Emulated fabric: topology, scenario, testbed in namespaces, results and report.
