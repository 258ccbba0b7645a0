//! Building and running `spray` from a fresh clone.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::setup::setup;
use crate::sh::{self, Failure, Outcome};
use crate::steps;

const WHY_ROOT: &str = "needs root, for network namespaces, links, XDP programs and AF_XDP sockets. \
    Run it as root (`sudo -E env \"PATH=$PATH\" cargo xtask ...`). Without root, `cargo xtask test` runs every test \
    that touches no kernel object, and `cargo build --release` builds `spray`, whose simulator needs no rights.";

/// `cargo xtask demo [ARGUMENTS OF spray demo]`: a quick build gives the same results.
pub fn demo(arguments: &[String]) -> Outcome {
    if !sh::is_root() {
        return Err(Failure::unable(format!("`cargo xtask demo` {WHY_ROOT}")));
    }
    steps::timed(false, |steps| {
        steps.run("set-up", setup)?;
        let program = steps.run("build", || compile(sh::QUICK, "tasks/spray"))?;
        steps.run("run", || sh::run(Command::new(program).arg("demo").args(arguments)))
    })
}

/// `cargo xtask bench`: the microbenchmarks, those of the command, and those of `benches/peers`.
pub fn bench() -> Outcome {
    sh::run(sh::cargo().args(["bench", "--package", "spray-benches"]))?;
    let spray = build()?;
    for arguments in ["transport", "veth", "switch", "sim --hosts 65536"] {
        sh::run(Command::new(&spray).arg("bench").args(arguments.split(' ')))?;
    }
    sh::run(sh::cargo().args(["run", "--release", "--manifest-path", PEERS]))
}

/// A separate workspace, because only it needs the QUIC libraries.
pub const PEERS: &str = "benches/peers/Cargo.toml";

/// Sets up the machine and builds a release `spray`; returns its path.
pub fn build() -> Outcome<PathBuf> {
    setup()?;
    compile("release", "spray")
}

/// Builds `spray` and copies it to `place` in [`target`], safe from other builds.
fn compile(profile: &str, place: &str) -> Outcome<PathBuf> {
    sh::run(sh::cargo().args(["build", "--profile", profile, "--package", "spray"]))?;
    let (built, kept) = (target().join(profile).join("spray"), target().join(place));
    let fresh = kept.with_extension("new");
    let folder = kept.parent().map_or(Ok(()), fs::create_dir_all);
    let replace = || folder.and_then(|()| fs::copy(&built, &fresh)).and_then(|_| fs::rename(&fresh, &kept));
    replace().map_err(|error| Failure::failed(format!("{} -> {}: {error}", built.display(), kept.display())))?;
    Ok(kept)
}

pub fn example(package: &str, name: &str) -> Outcome<PathBuf> {
    sh::run(sh::cargo().args(["build", "--release", "--package", package, "--example", name]))?;
    Ok(target().join("release/examples").join(name))
}

pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| sh::root().join("target"), Into::into)
}
