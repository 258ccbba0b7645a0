//! Builds the XDP programs in `ebpf/` and puts the objects where the build scripts of `spray-nic` and `spray-testbed` embed them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::sh::{self, Failure, Outcome};

const TARGET: &str = "bpfel-unknown-none";
const PROGRAMS: [&str; 3] = ["switch", "steer", "router"];
/// Debian's compiler and its ready-made `core` for BPF.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_VERSION: (u32, u32) = (1, 96);
/// Atomics need the third revision of the instruction set (kernels from 5.12). Header fields are not aligned: loading
/// them byte by byte would need more stack than the kernel grants.
const FLAGS: [&str; 5] = [
    "-Clinker=bpf-linker",
    "-Clink-arg=--btf",
    "-Clink-arg=--cpu-features=+allows-misaligned-mem-access",
    "-Cdebuginfo=2",
    "-Ctarget-cpu=v3",
];

const ADVICE: &str = "building the XDP programs takes a rustc that knows bpfel-unknown-none. Either\n  \
    rustup toolchain install nightly --component rust-src\nor, on Debian and Ubuntu as root,\n  \
    apt-get install rustc-web libstd-rust-web-dev-bpf";
const LINKER_ADVICE: &str = "building the XDP programs takes bpf-linker. On Debian and Ubuntu, as root:\n  \
    apt-get install llvm-22-dev libpolly-22-dev libzstd-dev zlib1g-dev\n  \
    LLVM_PREFIX=/usr/lib/llvm-22 cargo install bpf-linker --no-default-features --features llvm-22";

/// Where a compiler for BPF comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compiler {
    /// A rustup nightly with rust-src, which compiles its own `core`.
    Nightly,
    /// Debian's `rustc-web` with `libstd-rust-web-dev-bpf`.
    Debian,
}

/// `cargo xtask build-ebpf`: release objects in `target/ebpf/`; says what to install when something is missing.
pub fn build() -> Outcome {
    let compiler = compiler()?;
    if sh::capture("bpf-linker", &["--version"]).is_none() {
        return Err(Failure::unable(LINKER_ADVICE));
    }
    let workspace = sh::root().join("ebpf");
    let mut cargo = compiler.cargo();
    cargo.current_dir(&workspace).args(["build", "--release", "--target", TARGET]);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    // The settings of the calling cargo are for another target.
    for name in ["RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "RUSTC_WRAPPER"] {
        cargo.env_remove(name);
    }
    sh::run(&mut cargo)?;
    PROGRAMS.iter().try_for_each(|name| install(&workspace, name))
}

/// Whether a rustup nightly can build `core` itself, the way that works on any distribution.
pub fn has_nightly() -> bool {
    let source = |root: String| Path::new(&root).join("lib/rustlib/src/rust/library/core").is_dir();
    sh::capture("rustup", &["run", "nightly", "rustc", "--print", "sysroot"]).is_some_and(source)
}

/// The compiler that this machine has: a nightly with rust-src first.
fn compiler() -> Outcome<Compiler> {
    if has_nightly() {
        return Ok(Compiler::Nightly);
    }
    let core = |root: String| Path::new(&root).join("lib/rustlib").join(TARGET).is_dir();
    let debian = sh::rustc_version(DEBIAN_RUSTC).is_some_and(|version| version >= DEBIAN_VERSION)
        && sh::capture(DEBIAN_RUSTC, &["--print", "sysroot"]).is_some_and(core);
    if debian { Ok(Compiler::Debian) } else { Err(Failure::unable(ADVICE)) }
}

impl Compiler {
    fn cargo(self) -> Command {
        match self {
            Self::Nightly => {
                let mut command = Command::new("rustup");
                command.args(["run", "nightly", "cargo", "-Zbuild-std=core"]);
                for name in ["RUSTC", "CARGO", "RUSTUP_TOOLCHAIN"] {
                    command.env_remove(name);
                }
                command
            }
            Self::Debian => {
                let mut command = sh::cargo();
                // The atomics are core_intrinsics; a release compiler allows them only with this variable.
                command.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
                command
            }
        }
    }
}

/// Replaces the object only when it changed, so that nothing is rebuilt for the same bytes.
fn install(workspace: &Path, name: &str) -> Outcome {
    let built = workspace.join("target").join(TARGET).join("release").join(name);
    let kept = sh::root().join("target/ebpf").join(name).with_extension("o");
    let copy = || {
        let bytes = fs::read(&built)?;
        if fs::read(&kept).is_ok_and(|old| old == bytes) {
            return Ok(());
        }
        fs::create_dir_all(sh::root().join("target/ebpf"))?;
        fs::write(&kept, bytes)
    };
    copy()
        .map_err(|error: std::io::Error| Failure::failed(format!("{} -> {}: {error}", built.display(), kept.display())))
}
