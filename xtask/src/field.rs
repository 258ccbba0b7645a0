//! The public reports that are tried here, in `docs/results/field.md`: runs the test of each row and prints how it ended.

use std::collections::BTreeMap;
use std::fs;

use crate::sh::{self, Failure, Outcome};
use crate::test::{SKIPPED, with_profile};

const PAGE: &str = "docs/results/field.md";

/// A row of the page's table.
#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    /// `owner/name#number`.
    report: &'a str,
    file: &'a str,
    test: &'a str,
}

impl<'a> Row<'a> {
    /// Reads the first cell and the last, which is a file and a test; `None` where a line has no such cells.
    fn read(line: &'a str) -> Option<Self> {
        let (report, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
        let mut names = rest.rsplit('`').skip(1).step_by(2);
        let (test, file) = (names.next()?, names.next()?);
        report.contains('#').then_some(Self { report, file, test })
    }

    /// The name of the package that the file is part of.
    fn package(&self) -> Outcome<String> {
        let file = sh::root().join(self.file);
        let manifests = file.ancestors().map(|folder| folder.join("Cargo.toml"));
        let text = manifests.skip(1).find_map(|manifest| fs::read_to_string(manifest).ok()).unwrap_or_default();
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        name.map(str::to_string).ok_or_else(|| Failure::failed(format!("{}: of no package", self.file)))
    }
}

/// How the tests of a package ended, by their names without modules.
#[derive(Debug, Default)]
struct Ends(BTreeMap<String, &'static str>);

impl Ends {
    /// Adds `test a::b ... ok` and `SKIPPED a::b: why`, which the harness may have begun with the name of another test.
    fn add(&mut self, line: &str) {
        let name = |path: &str| path.rsplit("::").next().unwrap_or_default().to_string();
        if let Some((path, _)) = line.split_once(SKIPPED).and_then(|(_, skipped)| skipped.split_once(": ")) {
            self.0.insert(name(path), "skipped");
        } else if let Some((path, end)) = line.strip_prefix("test ").and_then(|line| line.split_once(" ... ")) {
            if end != "ok" {
                self.0.insert(name(path), "failed");
            } else {
                self.0.entry(name(path)).or_insert("passed");
            }
        }
    }

    fn of(&self, test: &str) -> &'static str {
        self.0.get(test).copied().unwrap_or("not run")
    }
}

/// `cargo xtask field [REPORT]..`: `cargo test` once a package, with the tests of all rows or of those whose reports begin so.
pub fn field(arguments: &[String]) -> Outcome {
    let page = sh::root().join(PAGE);
    let text = fs::read_to_string(&page).map_err(|error| Failure::of_file(&page, &error))?;
    let mut packages = BTreeMap::<String, Vec<Row<'_>>>::new();
    for row in text.lines().filter_map(Row::read) {
        if arguments.is_empty() || arguments.iter().any(|start| row.report.starts_with(start)) {
            packages.entry(row.package()?).or_default().push(row);
        }
    }
    if packages.is_empty() {
        return Err(Failure::unable(format!("no report of {PAGE} begins with `{}`", arguments.join("` or `"))));
    }
    let mut ended = Vec::new();
    for (package, rows) in packages {
        let mut cargo = with_profile(&["--package", &package, "--tests", "--no-fail-fast", "--"]);
        let mut ends = Ends::default();
        // What fails is seen by the rows, and what does not build has no ends.
        sh::run_lines(cargo.args(rows.iter().map(|row| row.test)), |line| ends.add(line))?;
        ended.extend(rows.into_iter().map(|row| (ends.of(row.test), row)));
    }
    ended.iter().for_each(|(end, row)| println!("{end:8} {:40} {}", row.report, row.test));
    let count = |of: &str| ended.iter().filter(|(end, _)| *end == of).count();
    let [passed, skipped] = ["passed", "skipped"].map(count);
    println!("{} reports: {passed} passed, {skipped} skipped", ended.len());
    match ended.len() - passed - skipped {
        0 => Ok(()),
        others => Err(Failure::failed(format!("{others} failed or were not run, named above"))),
    }
}

#[cfg(test)]
mod tests {
    use super::{Ends, Row};

    #[test]
    fn a_row_has_a_report_a_file_and_a_test() {
        let row = Row { report: "a/b#7", file: "nic/src/lib.rs", test: "it_works" };
        assert_eq!(Row::read("| a/b#7 | `x` fails | tried | passes | `nic/src/lib.rs`: `it_works` |"), Some(row));
        let others = ["| report | symptom there | how | what | test |", "|---|---|", "Text with `a`: `b`."];
        assert!(others.into_iter().all(|line| Row::read(line).is_none()));
    }

    #[test]
    fn a_test_that_skips_has_not_passed() {
        let mut ends = Ends::default();
        let lines = ["test a::one ... ok", "test b::two ... SKIPPED a::three: needs root", "test a::three ... ok"];
        lines.into_iter().chain(["test four ... FAILED"]).for_each(|line| ends.add(line));
        assert_eq!(
            ["one", "two", "three", "four"].map(|test| ends.of(test)),
            ["passed", "not run", "skipped", "failed"]
        );
    }
}
