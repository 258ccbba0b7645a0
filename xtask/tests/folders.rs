//! Crates depend only on crates of the same top-level folder and of earlier ones (ADR 13).
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use spray_test_support::root;
use walkdir::WalkDir;

/// Top-level folders with crates, dependencies first.
const FOLDERS: [&str; 9] = ["nic", "switch-emu", "ebpf", "lab", "benches", "cli", "tests", "fuzz", "xtask"];

/// Returns the name of a crate, and those of its dependencies in the project, without
/// dev-dependencies.
fn read(manifest: &Path) -> Option<(String, Vec<String>)> {
    let text = fs::read_to_string(manifest).unwrap();
    let (mut section, mut name, mut needs) = ("", None, vec![]);
    for line in text.lines() {
        if line.starts_with('[') {
            section = line;
        } else if section == "[package]" && line.starts_with("name = ") {
            name = line.split('"').nth(1).map(String::from);
        } else if section.ends_with("dependencies]") && section != "[dev-dependencies]" && line.starts_with("spray") {
            needs.extend(line.split([' ', '.']).next().map(String::from));
        }
    }
    Some((name?, needs))
}

#[test]
fn no_folder_depends_on_a_later_one() {
    let mut crates = BTreeMap::new();
    for (rank, folder) in FOLDERS.iter().enumerate() {
        let entries = WalkDir::new(root().join(folder)).into_iter().filter_entry(|entry| entry.file_name() != "target");
        for entry in entries.map(Result::unwrap).filter(|entry| entry.file_name() == "Cargo.toml") {
            let (name, needs) = read(entry.path()).unwrap_or_else(|| panic!("{}: no name", entry.path().display()));
            crates.insert(name, (rank, needs));
        }
    }
    let mut found = vec![];
    for (name, (rank, needs)) in &crates {
        for need in needs {
            let (below, _) =
                crates.get(need).unwrap_or_else(|| panic!("{name} depends on {need}, which is in no folder"));
            found.extend(
                (below > rank).then(|| format!("{name} in {} needs {need} in {}", FOLDERS[*rank], FOLDERS[*below])),
            );
        }
    }
    assert!(crates.len() > 19, "{crates:?}");
    assert!(found.is_empty(), "{}", found.join("\n"));
}
