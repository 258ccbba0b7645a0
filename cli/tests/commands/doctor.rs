//! `spray doctor` loads every program.

use spray_test_support::{has_root, text};

use super::spray;

#[test]
fn every_program_is_loaded() {
    if !has_root() {
        return;
    }
    let says = text(&spray(&["doctor"]).stdout);
    let line = says.lines().find(|line| line.contains("XDP programs")).expect("a line on the programs");
    let built = !line.contains("is missing");
    for part in ["ok  ", "steer ", " switch ", "bench_switch ", "bench_redirect "] {
        assert!(!built || line.contains(part), "{line}");
    }
}
