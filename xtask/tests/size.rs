//! The size of the project: lines of Rust without tests by crate, and words of Markdown, at most as `size.toml` states.
//!
//! Every line counts, comments and blank ones included. Not counted: items under `#[cfg(test)]`, `tests.rs`, and the folders `tests`, `benches` and
//! `examples` of a crate. Whoever raises a number states the reason in the commit message; a number that is too high by more than
//! [`SLACK`] is lowered.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use spray_test_support::root;
use walkdir::WalkDir;

/// Largest difference by which a number in `size.toml` may exceed the count, in lines, packages or tens of words.
const SLACK: i64 = 150;

/// Files with this extension that belong to the project, without those that a build makes.
fn files(extension: &str) -> Vec<PathBuf> {
    let made = |name: &str| name == "target" || name == "node_modules" || (name.starts_with('.') && name != ".github");
    let entries = WalkDir::new(root()).into_iter();
    let entries = entries.filter_entry(|entry| entry.depth() == 0 || !entry.file_name().to_str().is_none_or(made));
    let files = entries.map(|entry| entry.unwrap().into_path());
    files.filter(|file| file.extension().is_some_and(|of| of == extension)).collect()
}

/// The number of lines of a formatted file that are not under `#[cfg(test)]`. Such an item ends with its first line, or with the
/// next closing bracket that is as far to the right as its attribute.
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

/// The crate of a file, by its folder, and whether the file is not one of its tests.
fn crate_of(file: &Path) -> Option<String> {
    let folder = file.ancestors().skip(1).find(|folder| folder.join("Cargo.toml").exists())?;
    let inner = file.strip_prefix(folder).unwrap();
    let is_test = inner.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
        || inner.starts_with("benches")
        || inner.starts_with("examples");
    let name = folder.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
    (!is_test && name != "tests").then_some(name)
}

/// Compares what is counted with the section of `size.toml`, and returns what differs.
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
