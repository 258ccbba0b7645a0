//! The size of the project is within `size.toml`: lines of Rust by crate, words of Markdown,
//! packages.
//!
//! Every line counts, including comments and blank lines, except items under `#[cfg(test)]`,
//! `tests.rs`, and the folders `tests`, `benches` and `examples` of a crate. Raising a number
//! requires a reason in the commit message; a number that is too high by more than [`SLACK`] must
//! be lowered.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod files;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use files::files;
use spray_test_support::root;

/// Maximum excess of a number in `size.toml`, in lines, packages or tens of words.
const SLACK: i64 = 150;

/// Returns the number of lines of a formatted file that are not under `#[cfg(test)]`. Such an item
/// ends with its first line, or with the next closing bracket at the indentation of its attribute.
fn lines_without_tests(text: &str) -> usize {
    let (mut count, mut lines) = (0, text.lines());
    while let Some(line) = lines.next() {
        let item = line.trim_start();
        if !item.starts_with("#[cfg(test)]") && !item.starts_with("#[cfg(all(test") {
            count += 1;
            continue;
        }
        let indent = line.len() - item.len();
        let mut first = item.split_once(']').map_or("", |(_, rest)| rest.trim());
        while first.is_empty() || first.starts_with("#[") || first.starts_with("//") {
            let Some(line) = lines.next() else { return count };
            first = line.trim();
        }
        if !first.ends_with(['{', '(', '[', '=']) {
            continue;
        }
        let closes = |line: &str| {
            line.len() > indent && line[..indent].trim().is_empty() && line[indent..].starts_with(['}', ')', ']'])
        };
        lines.by_ref().find(|line| closes(line));
    }
    count
}

/// Returns the folder of a file's crate; `None` for tests.
fn crate_of(file: &Path) -> Option<String> {
    let folder = file.ancestors().skip(1).find(|folder| folder.join("Cargo.toml").exists())?;
    let inner = file.strip_prefix(folder).unwrap();
    let is_test = inner.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
        || inner.starts_with("benches")
        || inner.starts_with("examples");
    let name = folder.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
    (!is_test && name != "tests").then_some(name)
}

/// Compares counts with a section of `size.toml`, and returns the differences.
fn differences(section: &str, counts: &BTreeMap<String, i64>, unit: i64) -> Vec<String> {
    let text = fs::read_to_string(root().join("xtask/tests/size.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let stated = table[section].as_table().unwrap();
    let mut found = vec![];
    for (name, count) in counts {
        let limit = stated.get(name).and_then(toml::Value::as_integer).unwrap_or_default();
        if *count > limit {
            found.push(format!(
                "{section}: {name} has {count}, and may have {limit}: shorten it, or raise the number and state why"
            ));
        } else if limit - count > SLACK * unit {
            found.push(format!("{section}: {name} has {count}, and may have {limit}: lower the number"));
        }
    }
    found.extend(stated.keys().filter(|name| !counts.contains_key(*name)).map(|name| format!("{section}: no {name}")));
    found
}

#[test]
fn each_crate_is_within_its_budget() {
    let mut counts = BTreeMap::new();
    for file in files("rs") {
        if let Some(name) = crate_of(&file) {
            *counts.entry(name).or_default() += lines_without_tests(&fs::read_to_string(&file).unwrap()) as i64;
        }
    }
    println!("{counts:#?}, {} in all", counts.values().sum::<i64>());
    let found = differences("lines", &counts, 1);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn documents_and_packages_are_within_their_budget() {
    let words =
        files("md").iter().map(|file| fs::read_to_string(file).unwrap().split_whitespace().count() as i64).sum();
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let packages = lock.lines().filter(|line| *line == "[[package]]").count() as i64;
    let mut found = differences("words", &BTreeMap::from([("markdown".into(), words)]), 10);
    found.extend(differences("packages", &BTreeMap::from([("Cargo.lock".into(), packages)]), 1));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn items_of_tests_do_not_count() {
    let text = "use a;\n#[cfg(test)]\nmod tests;\n\n#[cfg(test)]\nmod tests {\n    fn f() {\n    }\n}\nfn g() {\n    #[cfg(test)]\n    f();\n}\n#[cfg(test)]\nfn one() {}\n";
    assert_eq!(lines_without_tests(text), 4);
}
