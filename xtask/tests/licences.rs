//! Dependencies have a licence that `deny.toml` allows, and come from a registry; checked for the
//! Linux build with all features. cargo-deny, if installed, also compares the texts of licences and
//! checks other systems and advisories.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::process::Command;

use serde_json::Value;
use spdx::{Expression, ParseMode};
use spray_test_support::root;

#[test]
fn every_dependency_has_an_allowed_licence_and_a_registry() {
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
    let described = |package: &Value| format!("{} {} {}", package["id"], package["license"], package["source"]);
    let wrong: Vec<String> = packages.iter().filter(wrong).map(described).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// For old manifests: `/` for `OR`, and `GPL-3.0`.
const MODE: ParseMode = ParseMode { allow_slash_as_or_operator: true, allow_deprecated: true, ..ParseMode::STRICT };

/// Returns whether an SPDX expression is satisfied by the licences in `allow`.
fn is_allowed(expression: &str, allow: &[&str]) -> bool {
    let parsed = Expression::parse_mode(expression, MODE);
    parsed.is_ok_and(|parsed| parsed.evaluate(|licence| allow.contains(&licence.to_string().as_str())))
}

#[test]
fn an_expression_is_satisfied_by_one_or_both_sides() {
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
