//! From a fresh clone to a running `spray`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::setup::setup;
use crate::sh::{self, Failure, Outcome};
use crate::steps;

const WHY_ROOT: &str = "needs root, for network namespaces, links, XDP programs and AF_XDP sockets. \
    Run it as root (`sudo -E env \"PATH=$PATH\" cargo xtask ...`). Without root, `cargo xtask test` runs every test \
    that touches no kernel object, and `cargo build --release` builds `spray`, whose simulator needs no rights.";

/// `cargo xtask demo [ARGUMENTS OF spray demo]`: with a quick build, whose figures are the same, since the demo runs in virtual time.
pub fn demo(arguments: &[String]) -> Outcome {
    let arguments = [&["demo".to_string()], arguments].concat();
    run_spray("cargo xtask demo", || compile(sh::QUICK, &[], "tasks/spray"), &arguments)
}

/// `cargo xtask bench [ARGUMENTS OF spray bench veth]`: the microbenchmarks, then the figures over veth.
pub fn bench(arguments: &[String]) -> Outcome {
    sh::run(sh::cargo().args(["bench", "--package", "spray-benches"]))?;
    let arguments = [&["bench".to_string(), "veth".to_string()], arguments].concat();
    run_spray("spray bench veth", || compile(RELEASE, &[], OF_TASKS), &arguments)
}

/// `cargo xtask speed [ARGUMENTS OF spray bench speed]`: with the QUIC libraries, which nothing else needs.
pub fn speed(arguments: &[String]) -> Outcome {
    let file = sh::root().join("docs/results/speed.md").display().to_string();
    let arguments = [&["bench", "speed", "--out", &file].map(String::from), arguments].concat();
    run_spray("cargo xtask speed", || compile(RELEASE, &["--features", "quic"], OF_TASKS), &arguments)
}

/// Builds `spray` and runs it with `arguments`. When it fails, its own messages say why.
fn run_spray(what: &str, build: impl FnOnce() -> Outcome<PathBuf>, arguments: &[String]) -> Outcome {
    if !sh::is_root() {
        return Err(Failure::unable(format!("`{what}` {WHY_ROOT}")));
    }
    steps::timed(false, |steps| {
        steps.run("set-up", setup)?;
        let program = steps.run("build", build)?;
        steps.run("run", || sh::run(Command::new(program).args(arguments)))
    })
}

/// The features that `demo` is built without, as they take minutes.
pub const ALL_FEATURES: [&str; 2] = ["--features", "otlp"];

/// Sets the machine up and builds a release `spray` for a task that measures; returns its path.
pub fn build() -> Outcome<PathBuf> {
    setup()?;
    compile(RELEASE, &[], OF_TASKS)
}

/// As [`build`], with everything, into the place that tasks with fewer or other features leave alone.
pub fn build_all() -> Outcome<PathBuf> {
    setup()?;
    compile(RELEASE, &ALL_FEATURES, "spray")
}

const RELEASE: &str = "release";
/// The release `spray` of tasks, in [`target`].
const OF_TASKS: &str = "tasks/spray-release";

/// Builds `spray` in a profile and copies it to this place in [`target`], where builds with other features leave it alone; returns its
/// path.
fn compile(profile: &str, options: &[&str], place: &str) -> Outcome<PathBuf> {
    sh::run(sh::cargo().args(["build", "--profile", profile, "--package", "spray"]).args(options))?;
    let (built, kept) = (target().join(profile).join("spray"), target().join(place));
    let fresh = kept.with_extension("new");
    let folder = kept.parent().map_or(Ok(()), fs::create_dir_all);
    let replace = || folder.and_then(|()| fs::copy(&built, &fresh)).and_then(|_| fs::rename(&fresh, &kept));
    replace().map_err(|error| Failure::failed(format!("{} -> {}: {error}", built.display(), kept.display())))?;
    Ok(kept)
}

/// Builds an example of a package; returns its path.
pub fn example(package: &str, name: &str) -> Outcome<PathBuf> {
    sh::run(sh::cargo().args(["build", "--release", "--package", package, "--example", name]))?;
    Ok(target().join("release/examples").join(name))
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| sh::root().join("target"), Into::into)
}
