//! Checks what must be on the machine. As root on Debian and Ubuntu it installs what is missing, elsewhere it names it.

use std::path::Path;
use std::process::Command;

use crate::sh::{self, Failure, Outcome};

/// Oldest compiler that builds the workspace; also in the root `Cargo.toml`.
const RUSTC: (u32, u32) = (1, 88);
/// Alternatives: any of them will do. The first one that apt knows is installed.
pub type Package = &'static [&'static str];
/// For the C libraries under the AF_XDP sockets and the loader (libxdp, libbpf), and their bindings.
const FOR_BUILDING: [Package; 9] = [
    &["gcc"],
    &["g++"],
    &["make"],
    &["pkg-config", "pkgconf"],
    &["m4"],
    &["clang"],
    &["libclang-14-dev", "libclang-dev"],
    &["libelf-dev"],
    &["zlib1g-dev"],
];
/// A compiler with a ready-made `core` for BPF, and the LLVM that `bpf-linker` is built with.
const FOR_KERNEL_PROGRAMS: [Package; 5] =
    [&["rustc-web"], &["libstd-rust-web-dev-bpf"], &["llvm-22-dev"], &["libpolly-22-dev"], &["libzstd-dev"]];
const BPF_LINKER_VERSION: &str = "0.13.0";
const LLVM_PREFIX: &str = "/usr/lib/llvm-22";

/// What the machine can do after [`setup`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Whether the XDP programs can be built here.
    pub kernel_programs: bool,
}

/// Checks everything and installs what is missing, where it may.
///
/// Without the means for the kernel programs it still succeeds if `programs` is false.
pub fn setup(programs: bool) -> Outcome<Ready> {
    check_rustc()?;
    provide(&FOR_BUILDING)?;
    let kernel_programs = match kernel_tools() {
        Ok(()) => true,
        Err(failure) if programs => return Err(failure),
        Err(failure) => {
            eprintln!("warning: {}", failure.message);
            false
        }
    };
    Ok(Ready { kernel_programs })
}

fn check_rustc() -> Outcome {
    let found = sh::rustc_version("rustc");
    if found.is_some_and(|found| found >= RUSTC) {
        return Ok(());
    }
    let (major, minor) = RUSTC;
    let found = found.map_or_else(|| "none".into(), |(major, minor)| format!("{major}.{minor}"));
    Err(Failure::unable(format!(
        "this needs rustc {major}.{minor} or later, found {found}. Run `rustup update stable`, or install rustup: https://rustup.rs"
    )))
}

fn kernel_tools() -> Outcome {
    if !crate::ebpf::has_nightly() {
        provide(&FOR_KERNEL_PROGRAMS)?;
    }
    if has_bpf_linker() {
        return Ok(());
    }
    if Path::new(LLVM_PREFIX).exists() {
        let mut install = sh::cargo();
        install.args(["install", "bpf-linker", "--locked", "--version", BPF_LINKER_VERSION]);
        install.args(["--no-default-features", "--features", "llvm-22"]).env("LLVM_PREFIX", LLVM_PREFIX);
        return sh::run(&mut install);
    }
    sh::run(sh::cargo().args(["install", "bpf-linker", "--locked", "--version", BPF_LINKER_VERSION]))
}

fn has_bpf_linker() -> bool {
    let in_cargo_home = std::env::var_os("CARGO_HOME")
        .map(Into::into)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
        .map(|home: std::path::PathBuf| home.join("bin/bpf-linker"));
    let candidates = in_cargo_home.into_iter().chain(["bpf-linker".into()]);
    candidates.into_iter().any(|path| sh::capture(path, &["--version"]).is_some())
}

/// Makes sure that one alternative of each package is installed.
pub fn provide(packages: &[Package]) -> Outcome {
    if sh::capture("dpkg-query", &["--version"]).is_none() {
        return if built_elsewhere() { Ok(()) } else { Err(other_system(packages)) };
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
    let chosen: Option<Vec<&str>> =
        missing.iter().map(|package| package.iter().copied().find(|p| available(p))).collect();
    let Some(chosen) = chosen else { return Err(not_in_apt(&missing)) };
    apt_get(&[&["install", "-y", "--no-install-recommends"], chosen.as_slice()].concat())
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

/// Other distributions' packages have other names: look for the programs instead.
fn built_elsewhere() -> bool {
    ["cc", "make", "m4", "clang"].iter().all(|program| sh::capture(program, &["--version"]).is_some())
        && sh::capture("pkg-config", &["--exists", "libelf", "zlib"]).is_some()
}

fn other_system(packages: &[Package]) -> Failure {
    let names = packages.iter().map(|package| package[0]).collect::<Vec<_>>().join(", ");
    Failure::unable(format!("this system has no apt, so install by hand what Debian calls {names}. {NIGHTLY_WAY}"))
}

fn not_in_apt(missing: &[Package]) -> Failure {
    let names = missing.iter().filter(|p| !p.iter().any(|p| available(p))).map(|p| p[0]).collect::<Vec<_>>().join(", ");
    Failure::unable(format!("apt does not know {names}. {NIGHTLY_WAY}"))
}

const NIGHTLY_WAY: &str = "To build the XDP programs without Debian's compiler packages: \
    `rustup toolchain install nightly --component rust-src` and `cargo install bpf-linker`.";
