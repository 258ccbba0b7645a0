//! The smaller rows of the reference stay within their tolerances. `cargo xtask fidelity` runs all of them.

use spray_experiments::fidelity::{Comparison, ROWS};

#[test]
fn the_smaller_rows_are_within_tolerance() {
    for row in ROWS.iter().filter(|row| row.small) {
        for contender in row.contenders() {
            let comparison = Comparison::run(row, *contender, 2);
            assert!(comparison.holds(), "{} {contender}: {:?}", row.scenario, comparison.differences());
        }
    }
}
