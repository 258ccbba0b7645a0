//! Virtual machines without KVM, disk and network: Debian's kernels in QEMU. Packages are
//! downloaded with a private configuration of apt, and unpacked without installation.

pub mod boot;
pub mod initrd;
pub mod packages;
pub mod table;
pub mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::setup;
use crate::sh::{self, Failure, Outcome};

/// Installs what every machine needs: QEMU or what unpacks it, a static shell, and decompressors.
pub fn provide(more: &[setup::Package]) -> Outcome {
    const TOOLS: [setup::Package; 4] = [&["busybox-static", "busybox"], &["xz-utils"], &["dpkg"], &["util-linux"]];
    if !cfg!(target_arch = "x86_64") {
        return Err(Failure::unable("kernels in QEMU require x86-64"));
    }
    if sh::capture("apt-get", &["--version"]).is_none() {
        return Err(Failure::unable("kernels are Debian packages, which require apt"));
    }
    setup::provide(&[&TOOLS, more].concat())
}

/// Strips debugging information from a copy of a program.
pub fn stripped(program: &Path, into: &Path) -> Outcome<PathBuf> {
    sh::run(Command::new("strip").arg("--strip-debug").arg(program).arg("-o").arg(into))?;
    Ok(into.into())
}

pub fn fresh(folder: &Path) -> Outcome<PathBuf> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|error| Failure::of_file(folder, &error))?;
    Ok(folder.into())
}
