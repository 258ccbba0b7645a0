//! Boots Debian's kernels in QEMU, loads every program and sends real packets, also over zero-copy
//! sockets if the virtio driver supports them. Needs neither KVM nor root.

use std::path::{Path, PathBuf};

use crate::sh::{self, Failure, Outcome};
use crate::vm;
use crate::vm::boot::{Machine, VIRTIO};
use crate::vm::initrd::{self, Content};
use crate::vm::packages::{self, CLOUD, Kernel, Wanted};
use crate::vm::table::{Column, Row, table};
use crate::vm::tools::Tools;

/// Debian suites with kernels of different ages.
const SUITES: [&str; 8] =
    ["bullseye", "bookworm", "bookworm-backports", "trixie", "trixie-backports", "forky", "sid", "experimental"];
const COLUMNS: [Column; 3] = [("programs", "instructions verified"), ("demo", "demo"), ("zero_copy", "zero-copy")];
/// Time limits: 2 to 20 times the usual duration on two cores, in case a kernel hangs.
const SHORT_SECONDS: u32 = 180;
const DEMO_SECONDS: u32 = 1200;
/// Versions that are tried by default: the oldest that Debian has, its stable ones, the newest.
const DEBIANS: [&str; 6] = ["5.10", "6.1", "6.12", "6.18", "7.2", "7.3"];
/// The oldest supported kernel, as in `spray doctor`. Older ones reject pointer parameters.
const OLDEST: [u32; 2] = [5, 15];
const QEMU: [crate::setup::Package; 1] = [&["qemu-system-x86"]];
const IN_TESTS: &str = "6.1";
const ITS_SUITE: &str = "bookworm";

/// `cargo xtask kernels VERSION...`: tries each kernel and writes `docs/results/kernels.md`.
pub fn kernels(versions: &[String]) -> Outcome {
    let versions = if versions.is_empty() { DEBIANS.map(String::from).to_vec() } else { versions.to_vec() };
    vm::provide(&QEMU)?;
    let program = crate::demo::build()?;
    let lists = packages::update("apt", &SUITES)?;
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    for version in &versions {
        let folder = folder(version);
        match lists.fetch(wanted(version), &folder) {
            Ok(kernel) => rows.push(try_kernel(&kernel, &folder, &program, "demo", DEMO_SECONDS)?),
            Err(failure) => missing.push(failure.message),
        }
    }
    sh::fill("docs/results/kernels.md", "rows", &table("kernel", &COLUMNS, &rows))?;
    verdict(&rows)?;
    if missing.is_empty() { Ok(()) } else { Err(Failure::unable(missing.join("; "))) }
}

/// A short run on one other kernel. Fails with 2, a skip, if it is not possible here.
pub fn one_other() -> Outcome {
    let not_here = |failure: Failure| Failure::unable(failure.message);
    vm::provide(&QEMU).map_err(not_here)?;
    let program = crate::demo::build()?;
    let lists = packages::update("apt-tests", &[ITS_SUITE]).map_err(not_here)?;
    let folder = folder("tests");
    let kernel = lists.fetch(wanted(IN_TESTS), &folder).map_err(not_here)?;
    verdict(&[try_kernel(&kernel, &folder, &program, "short", SHORT_SECONDS)?])
}

fn folder(version: &str) -> PathBuf {
    sh::root().join("target/kernels").join(version)
}

/// Includes veth, and the virtio NIC with its dependencies.
fn wanted(version: &str) -> Wanted<'_> {
    Wanted { version, flavour: CLOUD, modules: &["veth", "failover", "net_failover", "virtio_net"] }
}

/// Boots a kernel with two NICs on a hub.
fn try_kernel(kernel: &Kernel, folder: &Path, program: &Path, run: &str, seconds: u32) -> Outcome<Row> {
    let (initrd, tools) = (folder.join("initrd"), Tools::default());
    // Stripped, because the initrd is unpacked into the memory of the virtual machine.
    let spray = vm::stripped(program, &folder.join("spray"))?;
    let (programs, files) = ([("bin/spray", spray)], [("scenario.toml", include_str!("kernels/scenario.toml"))]);
    let script = include_str!("kernels/guest.sh");
    initrd::write(&initrd, &Content { kernel, programs: &programs, tools: &tools, files: &files, script })?;
    let steps = COLUMNS.map(|(step, _)| step);
    let machine = Machine {
        tools: &tools,
        image: &kernel.image,
        initrd: &initrd,
        words: &format!("RUN={run} STEPS={}", steps.join(",")),
        nics: &(0..2).flat_map(nic).collect::<Vec<_>>(),
        wires: None,
        seconds,
    };
    let row = machine.boot(&kernel.release, &steps, &folder.join("console.txt"));
    let _ = std::fs::remove_dir_all(&kernel.folder);
    row
}

fn nic(number: usize) -> [String; 4] {
    let device = format!("virtio-net-pci,netdev=hub{number},mac=02:00:00:00:00:0{number},{VIRTIO}");
    ["-netdev".into(), format!("hubport,id=hub{number},hubid=0"), "-device".into(), device]
}

fn verdict(rows: &[Row]) -> Outcome {
    let supported = |row: &&Row| packages::numbers(&row.name).as_slice() >= OLDEST.as_slice();
    let bad = rows.iter().filter(supported).filter(|row| !row.is_good());
    let bad: Vec<&str> = bad.map(|row| row.name.as_str()).collect();
    if bad.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "these kernels reject a program, did not verify the payload or failed with zero-copy sockets: {}",
        bad.join(", ")
    )))
}
