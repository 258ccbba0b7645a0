//! Every `//= docs/specs/FILE.md#CLAUSE words` names a clause that exists, and quotes words that stand in it. Every clause is cited by code and by a
//! test.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use spray_test_support::root;

/// What begins a citation; the path of the specification follows.
const MARK: &str = "//= ";
/// Folders with code that cites.
const CODE: [&str; 9] = ["benches", "cli", "ebpf/src", "lab", "nic", "switch-emu", "tests", "xtask", "deploy"];

/// The clauses of a specification by name, each as lower-case words.
fn clauses(text: &str) -> HashMap<String, String> {
    let mut clauses = HashMap::new();
    let mut current: Option<(String, String)> = None;
    for line in text.lines() {
        let begun = line.trim_start_matches("- ").strip_prefix("**").map(name).filter(|name| name.contains('-'));
        if begun.is_some() || line.starts_with('#') {
            clauses.extend(current.take());
        }
        if let Some(name) = begun {
            current = Some((name.into(), String::new()));
        }
        if let Some((_, words)) = &mut current {
            words.push_str(&plain(line));
            words.push(' ');
        }
    }
    clauses.extend(current);
    clauses
}

/// The clause's name at the start of `text`: `TRN-3` of `TRN-3 Bytes in flight.** A packet ...`.
fn name(text: &str) -> &str {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or_default()
}

fn plain(text: &str) -> String {
    let text: String = text.chars().filter(|c| !"*`_".contains(*c)).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// All Rust files under `folder`, without those that cargo built.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// What is wrong with the citation in `line`, if it has one.
fn fault(line: &str, specifications: &mut HashMap<String, HashMap<String, String>>) -> Option<String> {
    let (target, words) =
        line.trim_start().strip_prefix(MARK)?.split_once(' ').unwrap_or((line.trim_start().strip_prefix(MARK)?, ""));
    let Some((file, clause)) = target.split_once('#') else { return Some(format!("`{target}` names no clause")) };
    let specification = specifications
        .entry(file.into())
        .or_insert_with(|| clauses(&fs::read_to_string(root().join(file)).unwrap_or_default()));
    let Some(text) = specification.get(clause) else { return Some(format!("there is no {clause} in {file}")) };
    (!text.contains(&plain(words))).then(|| format!("{clause} does not say `{words}`"))
}

/// Whether all of a file is test: one that lies in a folder `tests`, or whose name is `tests.rs` or ends in `_tests.rs`.
fn is_test(file: &Path) -> bool {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    stem == "tests" || stem.ends_with("_tests") || file.components().any(|part| part.as_os_str() == "tests")
}

/// All citations: where they stand, whether that is test, which is also what follows `mod tests {`, and their lines.
fn citations() -> Vec<(String, bool, String)> {
    let (mut files, mut found) = (vec![], vec![]);
    CODE.iter().for_each(|folder| sources(&root().join(folder), &mut files));
    for file in files {
        let (text, file) = (fs::read_to_string(&file).unwrap(), file.strip_prefix(root()).unwrap());
        let mut test = is_test(file);
        for (number, line) in text.lines().map(str::trim).enumerate() {
            test |= line == "mod tests {";
            if line.starts_with(MARK) {
                found.push((format!("{}:{}", file.display(), number + 1), test, line.to_owned()));
            }
        }
    }
    found
}

#[test]
fn citations_name_clauses_and_quote_them() {
    let (citations, mut specifications) = (citations(), HashMap::new());
    let faults =
        citations.iter().filter_map(|(place, _, line)| Some(format!("{place}: {}", fault(line, &mut specifications)?)));
    let faults: Vec<_> = faults.collect();
    assert!(citations.len() > 500, "only {} citations", citations.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Clauses that no code cites.
const WITHOUT_CODE: &[(&str, &str)] = &[
    ("CWV-22", "follows from CWV-12 to CWV-19"),
    ("END-11", "follows from END-1, END-9, END-10 and TRN-9"),
    ("FCM-4", "compares FCM-1 with the paper"),
    ("FCS-10", "follows from FCS-1 to FCS-9"),
    ("FLC-5", "follows from FLC-1 to FLC-4"),
    ("FLC-26", "says what nobody can prevent"),
    ("FLC-45", "follows from FLC-40 to FLC-44"),
    ("IRN-7", "says that TRN-36 holds"),
    ("ORC-24", "is why ORC-20 to ORC-22 are right"),
    ("REPS-20", "says what nothing checks"),
    ("REPS-23", "is of all balancers"),
    ("SWC-26", "follows from SWC-23 to SWC-25"),
    ("SWC-40", "is a theorem about the network"),
];
/// Clauses that no test cites.
const WITHOUT_TEST: &[(&str, &str)] = &[
    ("FLC-26", "says what nobody can prevent"),
    ("REPS-20", "says what nothing checks"),
    ("SW-16", "only a program that is attached finds no interface, and set-up leaves none out"),
];

#[test]
fn every_clause_is_cited_by_code_and_by_a_test() {
    let files = fs::read_dir(root().join("docs/specs")).unwrap().map(|file| file.unwrap().path());
    let all: BTreeSet<String> =
        files.flat_map(|file| clauses(&fs::read_to_string(file).unwrap()).into_keys()).collect();
    let citations = citations();
    let clause = |line: &str| line.split_once('#').map(|(_, rest)| name(rest).to_owned());
    for (of_test, exceptions) in [(false, WITHOUT_CODE), (true, WITHOUT_TEST)] {
        let cited =
            citations.iter().filter(|(_, test, _)| *test == of_test).filter_map(|(_, _, line)| clause(line)).collect();
        let found: BTreeSet<&str> = all.difference(&cited).map(String::as_str).collect();
        let listed: BTreeSet<&str> = exceptions.iter().map(|(clause, _)| *clause).collect();
        let by = if of_test { "a test" } else { "code" };
        let (missing, stale): (Vec<_>, Vec<_>) =
            (found.difference(&listed).collect(), listed.difference(&found).collect());
        assert!(missing.is_empty(), "to be cited by {by}: {missing:?}");
        assert!(stale.is_empty(), "cited by {by}, or no clause, so no exception: {stale:?}");
    }
}

#[test]
fn a_clause_ends_where_the_next_begins() {
    let clauses =
        clauses("- **A-1 One.** `This`\n  and *that*.\n- **A-2** More.\n\n## Else\nNothing\n**B-1a, b** Last.\n");
    assert_eq!(clauses["A-1"], "- a-1 one. this and that. ");
    assert_eq!(clauses["A-2"], "- a-2 more.  ");
    assert!(clauses["B-1a"].contains("last") && clauses.len() == 3);
}
