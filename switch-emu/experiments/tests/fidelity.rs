//! The smaller rows of the reference stay within their tolerances. `cargo xtask fidelity` runs all of them.

use spray_experiments::fidelity::{Comparison, ROWS};

#[test]
#[ignore = "cargo xtask ci runs it"]
fn the_smaller_rows_are_within_tolerance() {
    for row in ROWS.iter().filter(|row| row.small) {
        for chooser in row.choosers() {
            let comparison = Comparison::run(row, *chooser, 2);
            assert!(comparison.holds(), "{} {chooser}: {:?}", row.scenario, comparison.differences());
        }
    }
}
