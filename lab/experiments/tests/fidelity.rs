//! The smaller rows of the references stay within their tolerances. `cargo xtask fidelity` runs all of them.

use spray_experiments::fidelity::{Comparison, REFERENCES};

#[test]
#[ignore = "cargo xtask ci runs it"]
fn the_smaller_rows_are_within_tolerance() {
    for comparison in REFERENCES.iter().flat_map(|reference| Comparison::all(reference, |row| row.small, 2)) {
        let Comparison { row, chooser, .. } = &comparison;
        assert!(comparison.holds(), "{} {chooser}: {:?}", row.scenario, comparison.differences());
    }
}
