//! Virtual machines without KVM, disk and a way out: Debian's kernels in QEMU, with a file system that is made here.
//!
//! Packages are downloaded with a private configuration of apt, and unpacked, not installed.

pub mod boot;
pub mod initrd;
pub mod packages;
pub mod table;
pub mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::setup;
use crate::sh::{self, Failure, Outcome};

/// What every machine takes: QEMU or what QEMU is unpacked with, a static shell, and what unpacks modules.
pub fn provide(more: &[setup::Package]) -> Outcome {
    const TOOLS: [setup::Package; 4] = [&["busybox-static", "busybox"], &["xz-utils"], &["dpkg"], &["util-linux"]];
    if !cfg!(target_arch = "x86_64") {
        return Err(Failure::unable("other kernels are booted for x86-64 only, which this machine is not"));
    }
    if sh::capture("apt-get", &["--version"]).is_none() {
        return Err(Failure::unable("other kernels are Debian's packages: this takes apt"));
    }
    setup::provide(&[&TOOLS, more].concat())
}

/// A copy of a program without what only debuggers read; returns its path.
pub fn stripped(program: &Path, into: &Path) -> Outcome<PathBuf> {
    sh::run(Command::new("strip").arg("--strip-debug").arg(program).arg("-o").arg(into))?;
    Ok(into.into())
}

/// Makes an empty folder.
pub fn fresh(folder: &Path) -> Outcome<PathBuf> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|error| Failure::of_file(folder, &error))?;
    Ok(folder.into())
}
