//! Checks with tools outside of Rust's stable toolchain.

use std::process::Command;

use crate::setup;
use crate::sh::{self, Failure, Outcome};

/// Packages, with filters for tests that Miri runs within minutes: no exhaustive ones or transfers.
const MIRI: [(&str, &str); 2] = [
    (
        "spray-wire",
        "--skip exhaustive --skip etherparse --skip flipped --skip bit --skip _length --skip sixty_four --skip cut_anywhere",
    ),
    ("spray-core", "units:: link:: loss::bits event:: rng:: --skip six_decimals"),
];

/// `cargo xtask miri`: checks the safe crates and their dependencies for undefined behaviour.
pub fn miri() -> Outcome {
    MIRI.into_iter().try_for_each(|(package, filters)| miri_of(package, filters, "4"))
}

/// As [`miri`] for the codec only, with one case per property. Takes minutes.
pub fn miri_codec() -> Outcome {
    let [(package, filters), ..] = MIRI;
    miri_of(package, filters, "1")
}

fn miri_of(package: &str, filters: &str, cases: &str) -> Outcome {
    if sh::capture("rustup", &["run", "nightly", "cargo", "miri", "--version"]).is_none() {
        return Err(Failure::unable(
            "Miri is missing: rustup toolchain install nightly --component miri --component rust-src",
        ));
    }
    let mut cargo = sh::nightly_cargo();
    cargo.args(["miri", "test", "--package", package, "--lib", "--"]).args(filters.split(' '));
    // Few `cases`, because Miri is a thousand times slower; no isolation, for regression files.
    cargo.env("PROPTEST_CASES", cases).env("MIRIFLAGS", "-Zmiri-disable-isolation");
    cargo.env("CARGO_TARGET_DIR", sh::root().join("target/miri"));
    sh::run(&mut cargo)
}

/// Checks spelling, as `.codespellrc` says.
pub fn spelling() -> Outcome {
    setup::provide(&[&["codespell"]])?;
    sh::run(&mut Command::new("codespell"))
}

/// `cargo xtask deny`: the rules in `deny.toml`, and advisories.
pub fn deny() -> Outcome {
    if sh::capture("cargo", &["deny", "--version"]).is_none() {
        return Err(Failure::unable("cargo-deny is missing: cargo install --locked cargo-deny"));
    }
    sh::run(sh::cargo().args(["deny", "--all-features", "check", "licenses", "bans", "sources"]))?;
    if sh::run(sh::cargo().args(["deny", "fetch", "db"])).is_err() {
        return Err(Failure::unable("advisories are not checked: the database cannot be fetched here"));
    }
    sh::run(sh::cargo().args(["deny", "--all-features", "check", "advisories"]))
}
