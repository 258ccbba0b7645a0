//! The tests named in `docs/results/field.md` exist.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;

use spray_test_support::root;

#[test]
fn each_report_has_its_test() {
    let text = fs::read_to_string(root().join("docs/results/field.md")).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ") && line.contains('#')).collect();
    assert!(rows.len() >= 70, "{} reports", rows.len());
    let mut reports = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [report, _, _, _, test] = cells[..] else { panic!("five cells: {row}") };
        let number =
            report.split_once('#').map(|(project, number)| (project.split('/').count(), number.parse::<u32>()));
        assert!(matches!(number, Some((2, Ok(_)))), "owner/name#number: {report}");
        assert!(reports.insert(report), "{report} occurs twice");
        let [_, file, _, name, _] = test.split('`').collect::<Vec<_>>()[..] else { panic!("`file`: `test`: {test}") };
        let source = fs::read_to_string(root().join(file)).unwrap_or_default();
        assert!(source.contains(&format!("fn {name}(")), "{report}: no test {name} in {file}");
    }
}
