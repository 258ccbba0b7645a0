//! What is built in has a licence that `deny.toml` allows, and comes from a registry: of what is built on Linux, with all features. cargo-deny, where it is
//! installed, also compares the texts of licences and looks at other systems and at advisories.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::process::Command;

use serde_json::Value;
use spray_test_support::root;

#[test]
fn every_dependency_has_an_allowed_licence_and_is_of_a_registry() {
    let deny: toml::Table = std::fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap();
    let allow: Vec<&str> =
        deny["licenses"]["allow"].as_array().unwrap().iter().map(|licence| licence.as_str().unwrap()).collect();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root()).args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
    let output = cargo.args(["--filter-platform", "x86_64-unknown-linux-gnu"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 200, "only {} packages", packages.len());
    let wrong = |package: &&Value| {
        let (licence, source) = (package["license"].as_str().unwrap_or_default(), package["source"].as_str());
        !is_allowed(licence, &allow) || source.is_some_and(|source| !source.starts_with("registry+"))
    };
    let told = |package: &Value| format!("{} {} {}", package["id"], package["license"], package["source"]);
    let wrong: Vec<String> = packages.iter().filter(wrong).map(told).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether an SPDX expression can be met by the licences in `allow`. `/` is an old form of `OR`, and `AND` binds closer.
fn is_allowed(expression: &str, allow: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ").replace(" WITH ", "+WITH+");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut words = words.as_slice();
    !words.is_empty() && any(&mut words, allow) && words.is_empty()
}

fn any(words: &mut &[&str], allow: &[&str]) -> bool {
    let mut met = all(words, allow);
    while let Some(rest) = words.strip_prefix(&["OR"]) {
        *words = rest;
        met |= all(words, allow);
    }
    met
}

fn all(words: &mut &[&str], allow: &[&str]) -> bool {
    let mut met = one(words, allow);
    while let Some(rest) = words.strip_prefix(&["AND"]) {
        *words = rest;
        met &= one(words, allow);
    }
    met
}

fn one(words: &mut &[&str], allow: &[&str]) -> bool {
    let Some((word, rest)) = words.split_first() else { return false };
    *words = rest;
    if *word != "(" {
        return allow.contains(&word.replace("+WITH+", " WITH ").as_str());
    }
    let met = any(words, allow);
    let Some(rest) = words.strip_prefix(&[")"]) else { return false };
    *words = rest;
    met
}

#[test]
fn an_expression_is_met_by_one_of_its_sides_or_by_both() {
    let allow = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"];
    for met in [
        "MIT",
        "GPL-3.0 OR MIT",
        "GPL-3.0/MIT",
        "MIT AND (GPL-3.0 OR ISC)",
        "Apache-2.0 WITH LLVM-exception",
        "GPL-3.0 AND ISC OR MIT",
    ] {
        assert!(is_allowed(met, &allow), "{met}");
    }
    for not in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT", "MIT)", "MIT ISC", "Apache-2.0", "(MIT OR ISC) AND GPL-3.0"] {
        assert!(!is_allowed(not, &allow), "{not}");
    }
}
