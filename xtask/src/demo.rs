//! From a fresh clone to a running `spray`.

use std::path::PathBuf;
use std::process::Command;

use crate::setup::setup;
use crate::sh::{self, Failure, Outcome};

const WHY_ROOT: &str = "needs root, for network namespaces, links, XDP programs and AF_XDP sockets. \
    Run it as root (`sudo -E env \"PATH=$PATH\" cargo xtask ...`). Without root, `cargo xtask test` runs every test \
    that touches no kernel object, and `cargo build --release` builds everything but the XDP programs.";

/// `cargo xtask demo [ARGUMENTS OF spray demo]`
pub fn demo(arguments: &[String]) -> Outcome {
    spray("cargo xtask demo", &[&["demo".to_string()], arguments].concat())
}

/// `cargo xtask bench [ARGUMENTS OF spray bench veth]`: the microbenchmarks, then the figures over veth.
pub fn bench(arguments: &[String]) -> Outcome {
    sh::run(sh::cargo().args(["bench", "--package", "spray-benches"]))?;
    spray("spray bench veth", &[&["bench".to_string(), "veth".to_string()], arguments].concat())
}

/// `cargo xtask speed [ARGUMENTS OF spray bench speed]`: with the QUIC libraries, which nothing else needs.
pub fn speed(arguments: &[String]) -> Outcome {
    let file = sh::root().join("docs/results/speed.md").display().to_string();
    let first = ["bench", "speed", "--out", &file].map(String::from);
    spray_with("cargo xtask speed", &["--features", "quic"], &[&first[..], arguments].concat())
}

/// Builds everything and runs the binary with `arguments`. When it fails, its own messages say why.
fn spray(what: &str, arguments: &[String]) -> Outcome {
    spray_with(what, &[], arguments)
}

/// As [`spray`], built with further `options` of cargo.
fn spray_with(what: &str, options: &[&str], arguments: &[String]) -> Outcome {
    if !sh::is_root() {
        return Err(Failure::unable(format!("`{what}` {WHY_ROOT}")));
    }
    let program = build_with(options)?;
    sh::run(Command::new(program).args(arguments))
}

/// Sets the machine up, builds the XDP programs and a release `spray` that carries them; returns its path.
pub fn build() -> Outcome<PathBuf> {
    build_with(&[])
}

fn build_with(options: &[&str]) -> Outcome<PathBuf> {
    setup(true)?;
    crate::ebpf::build()?;
    sh::run(sh::cargo().args(["build", "--release", "--package", "spray"]).args(options))?;
    Ok(target().join("release/spray"))
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| sh::root().join("target"), Into::into)
}
