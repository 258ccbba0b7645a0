//! Other kernels: boots Debian's in QEMU under software emulation, loads every program there and sends real packets, also over
//! zero-copy sockets where the kernel's virtio driver has them.
//!
//! The machine needs no KVM and no root: packages are downloaded with a private configuration of apt, and unpacked, not
//! installed.

pub mod boot;
pub mod initrd;
pub mod packages;
mod report;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::setup;
use crate::sh::{self, Failure, Outcome};
use boot::Machine;
use packages::{Flavour, Kernel};
use report::Row;

/// What is tried when no version is named: the oldest that Debian still has, its stable ones, the newest.
const DEBIANS: [&str; 6] = ["5.10", "6.1", "6.12", "6.18", "7.2", "7.3"];
/// The oldest kernel that must take the programs, as in `spray doctor`. Older ones refuse pointers as parameters of functions.
const OLDEST: [u32; 2] = [5, 15];
/// The kernel that `cargo xtask ci` boots beside the machine's own.
const IN_TESTS: &str = "6.1";
/// Where that one is.
const ITS_SUITE: &str = "bookworm";

/// veth pairs, and a NIC of the virtual machine with what it rests on.
pub const MODULES: [&str; 4] = ["veth.ko", "failover.ko", "net_failover.ko", "virtio_net.ko"];

/// What runs in the virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// One condition under one balancer, four hosts.
    Short,
    /// The demo: nine runs of eight hosts, with slow and silent uplinks.
    Demo,
}

/// `cargo xtask kernels VERSION...`: tries each kernel and writes `docs/results/kernels.md`.
pub fn kernels(versions: &[String]) -> Outcome {
    let versions = if versions.is_empty() { DEBIANS.map(String::from).to_vec() } else { versions.to_vec() };
    tools()?;
    let program = crate::demo::build()?;
    let lists = packages::update("apt", &packages::SUITES)?;
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    for version in &versions {
        let folder = folder(version);
        match lists.fetch(version, Flavour::Cloud, &MODULES, &folder) {
            Ok(kernel) => rows.push(try_kernel(&kernel, &folder, &program, Extent::Demo)?),
            Err(failure) => missing.push(failure.message),
        }
    }
    let file = sh::root().join("docs/results/kernels.md");
    let text = report::document(&rows);
    std::fs::write(&file, &text).map_err(|error| Failure::failed(format!("{}: {error}", file.display())))?;
    print!("{text}");
    println!("{}", file.display());
    verdict(&rows)?;
    if missing.is_empty() { Ok(()) } else { Err(Failure::unable(missing.join("; "))) }
}

/// The part of `cargo xtask ci`: one kernel that is not the machine's, a short run.
///
/// # Errors
/// With code 2 it could not be tried here, which the caller reports as skipped.
pub fn one_other() -> Outcome {
    let not_here = |failure: Failure| Failure::unable(failure.message);
    tools().map_err(not_here)?;
    let program = crate::demo::build()?;
    let lists = packages::update("apt-tests", &[ITS_SUITE]).map_err(not_here)?;
    let folder = folder("tests");
    let kernel = lists.fetch(IN_TESTS, Flavour::Cloud, &MODULES, &folder).map_err(not_here)?;
    verdict(&[try_kernel(&kernel, &folder, &program, Extent::Short)?])
}

fn folder(version: &str) -> PathBuf {
    sh::root().join("target/kernels").join(version)
}

/// QEMU, a static shell for the initrd, and what unpacks modules.
pub fn tools() -> Outcome {
    const TOOLS: [setup::Package; 4] = [&["qemu-system-x86"], &["busybox-static", "busybox"], &["xz-utils"], &["dpkg"]];
    if !cfg!(target_arch = "x86_64") {
        return Err(Failure::unable("the other kernels are booted for x86-64 only, which this machine is not"));
    }
    if sh::capture("apt-get", &["--version"]).is_none() {
        return Err(Failure::unable("the other kernels are Debian's packages: this takes apt"));
    }
    setup::provide(&TOOLS)
}

fn try_kernel(kernel: &Kernel, folder: &Path, program: &Path, extent: Extent) -> Outcome<Row> {
    let (initrd, stripped) = (folder.join("initrd"), stripped(program, folder)?);
    initrd::write(&initrd, kernel, &stripped, &initrd::tries(command(extent)))?;
    let seconds = if extent == Extent::Short { 180 } else { 1200 };
    let machine = Machine { qemu: vec!["qemu-system-x86_64".into()], nic: boot::VIRTIO, seconds };
    let console = boot::boot(&machine, &kernel.image, &initrd)?;
    // Some hundred megabytes.
    let _ = std::fs::remove_dir_all(kernel.folder());
    let log = folder.join("console.txt");
    std::fs::write(&log, console.join("\n")).map_err(|error| Failure::failed(format!("{}: {error}", log.display())))?;
    let row = Row::read(&kernel.release, &console);
    println!("{row}\n  its console is in {}", log.display());
    Ok(row)
}

/// A copy of `spray` without what debuggers want: the initrd is unpacked into the virtual machine's memory.
pub fn stripped(program: &Path, folder: &Path) -> Outcome<PathBuf> {
    let stripped = folder.join("spray");
    sh::run(Command::new("strip").arg("--strip-debug").arg(program).arg("-o").arg(&stripped))?;
    Ok(stripped)
}

/// What the virtual machine runs.
fn command(extent: Extent) -> &'static str {
    match extent {
        Extent::Short => "spray run /scenario.toml --out /tmp/run",
        Extent::Demo => "spray demo --bytes 4000000 --out /tmp/run",
    }
}

fn verdict(rows: &[Row]) -> Outcome {
    let supported = |row: &&Row| packages::numbers(&row.release).as_slice() >= OLDEST.as_slice();
    let bad = rows.iter().filter(supported).filter(|row| !row.is_good());
    let bad: Vec<&str> = bad.map(|row| row.release.as_str()).collect();
    if bad.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "these kernels refuse a program, did not verify the payload or failed over zero-copy sockets: {}",
        bad.join(", ")
    )))
}

/// Makes an empty folder.
pub fn fresh(folder: &Path) -> Outcome<PathBuf> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|error| Failure::failed(format!("{}: {error}", folder.display())))?;
    Ok(folder.into())
}
