//! Builds the XDP programs in `ebpf/` and puts the objects where `switch-emu`'s build script embeds them.

use std::fs;
use std::path::Path;

use crate::sh::{self, Failure, Outcome};

const TARGET: &str = "bpfel-unknown-none";
const PROGRAMS: [&str; 2] = ["switch", "steer"];
/// Debian's `rustc-web`: with `libstd-rust-web-dev-bpf` it has a ready-made `core` for BPF.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
/// BTF for the maps, and atomics that return nothing.
const FLAGS: &str = "-Clinker=bpf-linker\u{1f}-Clink-arg=--btf\u{1f}-Cdebuginfo=2\u{1f}-Ctarget-cpu=v3";

/// `cargo xtask build-ebpf`: release objects in `target/ebpf/`.
pub fn build() -> Outcome {
    let workspace = sh::root().join("ebpf");
    let mut cargo = sh::cargo();
    cargo.args(["build", "--release", "--target", TARGET]).current_dir(&workspace);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", FLAGS).env("RUSTC_BOOTSTRAP", "1").env_remove("CARGO_TARGET_DIR");
    if has_debian_core() {
        cargo.env("RUSTC", DEBIAN_RUSTC);
    } else {
        cargo = std::process::Command::new("rustup");
        cargo.args(["run", "nightly", "cargo", "build", "--release", "--target", TARGET, "-Zbuild-std=core"]);
        cargo.current_dir(&workspace).env("CARGO_ENCODED_RUSTFLAGS", FLAGS).env_remove("CARGO_TARGET_DIR");
    }
    sh::run(&mut cargo)?;
    PROGRAMS.iter().try_for_each(|name| install(&workspace, name))
}

fn has_debian_core() -> bool {
    let Some(sysroot) = sh::capture(DEBIAN_RUSTC, &["--print", "sysroot"]) else { return false };
    Path::new(&sysroot).join("lib/rustlib").join(TARGET).is_dir()
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
