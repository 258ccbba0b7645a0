//! Checks required packages. As root on Debian and Ubuntu installs missing ones.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sh::{self, Failure, Outcome};

/// Minimum version of the compiler; also in the root `Cargo.toml`.
const RUSTC: (u32, u32) = (1, 88);
/// Alternatives, of which one is sufficient. The first one that apt has is installed.
pub type Package = &'static [&'static str];
/// For libbpf, the C library that loads programs.
const FOR_BUILDING: [Package; 6] =
    [&["gcc"], &["g++"], &["make"], &["pkg-config", "pkgconf"], &["libelf-dev"], &["zlib1g-dev"]];
const FOR_BUILDING_ELSEWHERE: &str =
    "this system has no apt, and lacks a C compiler, a library or a tool. Install, as root,
  on Fedora: dnf install gcc gcc-c++ make pkgconf-pkg-config elfutils-libelf-devel zlib-devel
  on Arch:   pacman -S --needed gcc make pkgconf libelf zlib
  elsewhere: what these hold; Debian calls them gcc g++ make pkg-config libelf-dev zlib1g-dev";
/// A compiler with a prebuilt `core` for BPF, and the LLVM for `bpf-linker`.
const FOR_KERNEL_PROGRAMS: [Package; 5] =
    [&["rustc-web"], &["libstd-rust-web-dev-bpf"], &["llvm-22-dev"], &["libpolly-22-dev"], &["libzstd-dev"]];
const BPF_LINKER_VERSION: &str = "0.13.0";
/// Debian's folder of that LLVM.
pub const LLVM_PREFIX: &str = "/usr/lib/llvm-22";
/// Third-party programs in tests: Wireshark, libfabric's programs and headers.
const FOR_TESTS: [Package; 3] = [&["tshark"], &["libfabric-bin"], &["libfabric-dev"]];
/// The same, with half a gigabyte. Ubuntu has chromium only as a snap.
const LARGE_FOR_TESTS: [Package; 4] = [&["chromium"], &["prometheus"], &["python3-venv"], &["systemd"]];

pub fn setup() -> Outcome {
    check_rustc()?;
    if has_apt() {
        return provide(&FOR_BUILDING);
    }
    if built_elsewhere() { Ok(()) } else { Err(Failure::unable(FOR_BUILDING_ELSEWHERE)) }
}

/// As [`setup`], for building the XDP programs.
pub fn for_kernel_programs() -> Outcome {
    let advise = |failure: Failure| Failure { message: format!("{}. {NIGHTLY_WAY}", failure.message), ..failure };
    check_rustc()?;
    if !sh::has_nightly() {
        provide(&FOR_KERNEL_PROGRAMS).map_err(advise)?;
    }
    let candidates = [cargo_home().join("bin/bpf-linker"), "bpf-linker".into()];
    if candidates.into_iter().any(|path| sh::capture(path, &["--version"]).is_some()) {
        return Ok(());
    }
    let mut install = sh::cargo();
    install.args(["install", "bpf-linker", "--locked", "--version", BPF_LINKER_VERSION]);
    if Path::new(LLVM_PREFIX).exists() {
        install.args(["--no-default-features", "--features", "llvm-22"]).env("LLVM_PREFIX", LLVM_PREFIX);
    }
    sh::run(&mut install).map_err(advise)
}

/// Installs third-party programs for tests, which skip without them; with `all` also large ones.
pub fn for_tests(all: bool) {
    let large: &[Package] = if all { &LARGE_FOR_TESTS } else { &[] };
    for package in FOR_TESTS.iter().chain(large) {
        if let Err(failure) = provide(&[package]) {
            eprintln!("warning: tests that need {} will be skipped: {}", package[0], failure.message);
        }
    }
    if let (true, Err(failure)) = (all, polars()) {
        eprintln!("warning: tests that need polars will be skipped: {}", failure.message);
    }
}

/// Installs polars, which Debian does not package, in a virtual environment.
fn polars() -> Outcome {
    let has_polars = |python: &Path| sh::capture(python, &["-c", "import polars"]).is_some();
    let own = python();
    if has_polars(Path::new("python3")) || has_polars(&own.join("python3")) {
        return Ok(());
    }
    sh::run(Command::new("python3").args(["-m", "venv"]).arg(own.parent().unwrap_or(&own)))?;
    sh::run(Command::new(own.join("python3")).args(["-m", "pip", "install", "--quiet", "polars"]))
}

fn python() -> PathBuf {
    sh::root().join("target/python/bin")
}

/// Returns `PATH` with the virtual environment first.
pub fn path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(python()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).unwrap_or(path)
}

fn check_rustc() -> Outcome {
    let found = sh::rustc_version("rustc");
    if found.is_some_and(|found| found >= RUSTC) {
        return Ok(());
    }
    let (major, minor) = RUSTC;
    let found = found.map_or_else(|| "none".into(), |(major, minor)| format!("{major}.{minor}"));
    Err(Failure::unable(format!(
        "rustc {major}.{minor} or later is required, found {found}. Run `rustup update stable`, or install rustup: https://rustup.rs"
    )))
}

pub fn cargo_home() -> PathBuf {
    let home = || std::env::home_dir().unwrap_or_default().join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

/// Ensures that one alternative of each package is installed.
pub fn provide(packages: &[Package]) -> Outcome {
    if !has_apt() {
        let names = packages.iter().map(|package| package[0]).collect::<Vec<_>>().join(", ");
        return Err(Failure::unable(format!("this system has no apt; install the equivalents of Debian's {names}")));
    }
    let missing: Vec<Package> =
        packages.iter().copied().filter(|package| !package.iter().any(|p| installed(p))).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.iter().map(|package| package[0]).collect::<Vec<_>>().join(" ");
    if !sh::is_root() {
        return Err(Failure::unable(format!(
            "packages are missing. As root: apt-get update && apt-get install {names}"
        )));
    }
    apt_get(&["update"])?;
    let (mut install, mut unknown) = (vec!["install", "-y", "--no-install-recommends"], Vec::new());
    for package in missing {
        match package.iter().copied().find(|alternative| available(alternative)) {
            Some(chosen) => install.push(chosen),
            None => unknown.push(package[0]),
        }
    }
    if unknown.is_empty() {
        apt_get(&install)
    } else {
        Err(Failure::unable(format!("apt has no {}", unknown.join(", "))))
    }
}

fn has_apt() -> bool {
    sh::capture("dpkg-query", &["--version"]).is_some() && sh::capture("apt-get", &["--version"]).is_some()
}

fn apt_get(arguments: &[&str]) -> Outcome {
    sh::run(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}

fn installed(package: &str) -> bool {
    sh::capture("dpkg-query", &["-W", "-f", "${db:Status-Status}", package]).as_deref() == Some("installed")
}

fn available(package: &str) -> bool {
    sh::capture("apt-cache", &["show", "--no-all-versions", package]).is_some_and(|text| !text.is_empty())
}

/// Checks for the programs, because packages of other distributions have other names.
fn built_elsewhere() -> bool {
    ["cc", "c++", "make"].iter().all(|program| sh::capture(program, &["--version"]).is_some())
        && sh::capture("pkg-config", &["--exists", "libelf", "zlib"]).is_some()
}

pub const NIGHTLY_WAY: &str = "On any system, build the XDP programs with `rustup toolchain install nightly --component rust-src`, \
    `cargo install bpf-linker`, and llvm-strip of LLVM 20 or later";
