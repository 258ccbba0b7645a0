//! Compiles the XDP programs into `target/ebpf/`.

use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "bpfel-unknown-none";
const PROGRAMS: [&str; 2] = ["switch", "steer"];
/// Debian's compiler and its ready-made `core` for BPF.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_MINOR: u32 = 96;
/// Atomics need the third revision of the instruction set (kernels from 5.12).
const FLAGS: [&str; 4] = ["-Clinker=bpf-linker", "-Clink-arg=--btf", "-Cdebuginfo=2", "-Ctarget-cpu=v3"];

const ADVICE: &str = "building the XDP programs takes a rustc that knows bpfel-unknown-none. Either\n  \
    rustup toolchain install nightly --component rust-src\nor, on Debian and Ubuntu as root,\n  \
    apt-get install rustc-web libstd-rust-web-dev-bpf";
const LINKER_ADVICE: &str = "building the XDP programs takes bpf-linker. On Debian and Ubuntu, as root:\n  \
    apt-get install llvm-22-dev libpolly-22-dev libzstd-dev zlib1g-dev\n  \
    LLVM_PREFIX=/usr/lib/llvm-22 cargo install bpf-linker --no-default-features --features llvm-22";

/// Where a compiler for BPF comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// A rustup nightly with rust-src, which compiles its own `core`.
    Nightly,
    /// Debian's `rustc-web` with `libstd-rust-web-dev-bpf`.
    Debian,
}

/// Compiles both programs and returns the folder of the objects; says what to install when something is missing.
pub fn build(root: &Path) -> Result<PathBuf, String> {
    let compiler = compiler()?;
    if !runs(Command::new("bpf-linker").arg("--version")) {
        return Err(LINKER_ADVICE.to_owned());
    }
    let mut command = compiler.cargo();
    command.current_dir(root.join("ebpf")).args(["build", "--release", "--target", TARGET]);
    command.env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    // The calling cargo's own settings are for another target.
    for name in ["RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "RUSTC_WRAPPER"] {
        command.env_remove(name);
    }
    let status = command.status().map_err(|error| format!("cannot run cargo for the XDP programs: {error}"))?;
    if !status.success() {
        return Err(format!("compiling the XDP programs failed ({status}, {compiler:?} compiler)"));
    }
    publish(root)
}

/// The compiler that this machine has: a nightly with rust-src first.
///
/// # Errors
/// What to install, when there is none.
pub fn compiler() -> Result<Compiler, String> {
    if nightly_has_source() {
        return Ok(Compiler::Nightly);
    }
    let version = output(Command::new(DEBIAN_RUSTC).arg("--version"));
    let recent = version.as_deref().and_then(minor).is_some_and(|minor| minor >= DEBIAN_MINOR);
    let core = output(Command::new(DEBIAN_RUSTC).args(["--print", "sysroot"]))
        .is_some_and(|sysroot| Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).is_dir());
    if recent && core { Ok(Compiler::Debian) } else { Err(ADVICE.to_owned()) }
}

impl Compiler {
    fn cargo(self) -> Command {
        match self {
            Self::Nightly => {
                let mut command = Command::new("rustup");
                command.args(["run", "nightly", "cargo", "-Zbuild-std=core"]).env_remove("RUSTC").env_remove("CARGO");
                command.env_remove("RUSTUP_TOOLCHAIN");
                command
            }
            Self::Debian => {
                let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
                // The shared words are core_intrinsics, which a release compiler keeps behind this variable.
                command.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
                command
            }
        }
    }
}

/// Copies what changed to `target/ebpf`, which switch-emu's build script watches.
fn publish(root: &Path) -> Result<PathBuf, String> {
    let built = root.join("ebpf/target").join(TARGET).join("release");
    let objects = root.join("target/ebpf");
    let failed = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
    std::fs::create_dir_all(&objects).map_err(|error| failed(&objects, error))?;
    for program in PROGRAMS {
        let (from, to) = (built.join(program), objects.join(program).with_extension("o"));
        let new = std::fs::read(&from).map_err(|error| failed(&from, error))?;
        if std::fs::read(&to).is_ok_and(|old| old == new) {
            continue;
        }
        std::fs::write(&to, new).map_err(|error| failed(&to, error))?;
    }
    Ok(objects)
}

fn nightly_has_source() -> bool {
    let sysroot = output(Command::new("rustup").args(["run", "nightly", "rustc", "--print", "sysroot"]));
    sysroot.is_some_and(|root| Path::new(root.trim()).join("lib/rustlib/src/rust/library/core").is_dir())
}

/// The minor version in `rustc 1.96.0 (...)`.
fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("rustc 1.")?.split('.').next()?.parse().ok()
}

fn runs(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

#[cfg(test)]
mod tests {
    use super::minor;

    #[test]
    fn reads_the_minor_version() {
        assert_eq!(minor("rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)"), Some(96));
        assert_eq!(minor("rustc 1.98.0-nightly"), Some(98));
        assert_eq!(minor("clang 22"), None);
    }
}
