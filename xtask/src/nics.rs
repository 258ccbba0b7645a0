//! Emulated NICs: virtual machines that run `spray` on real drivers, with two NICs of a kind each.

mod rows;

use std::path::{Path, PathBuf};

use crate::sh::{self, Failure, Outcome};
use crate::vm::boot::Machine;
use crate::vm::initrd::{self, Content};
use crate::vm::packages::{self, FULL, Wanted};
use crate::vm::table::{Column, Row, table};
use crate::vm::tools::Tools;
use crate::{demo, vm};
use rows::{Kind, ROWS};

/// The oldest kernel with zero-copy for igb and virtio.
const KERNEL: Wanted<'_> = Wanted {
    version: "6.18",
    flavour: FULL,
    // Dependencies of the drivers come first.
    modules: &["dca", "i2c-algo-bit", "igb", "e1000e", "vmxnet3", "failover", "net_failover", "virtio_net", "veth"],
};
/// Suites with that kernel, with a QEMU that emulates igb, and with its dependencies.
const SUITES: [&str; 3] = ["bookworm", "bookworm-backports", "trixie-backports"];
const QEMU_SUITE: &str = "bookworm-backports";
const UNPACKED: [&str; 3] = ["qemu-system-x86", "ipxe-qemu", "ethtool"];
/// In the order of the steps in the script.
const COLUMNS: [Column; 13] = [
    ("doctor", "doctor"),
    ("first", "first contact"),
    ("copy", "copy"),
    ("zero_copy", "zero-copy"),
    ("busy", "busy polling"),
    ("perf", "perf"),
    ("down_here", "sender's link down"),
    ("down_there", "receiver's link down"),
    ("mtu", "MTU 3800"),
    ("second", "second process"),
    ("switch", "switch"),
    ("boxes", "boxes"),
    ("bare", "of bare frames"),
];
/// Rows and columns in `cargo xtask ci`.
const IN_TESTS: [&str; 2] = ["igb", "virtio-net 2 rss"];
const STEPS_IN_TESTS: [&str; 4] = ["doctor", "copy", "zero_copy", "switch"];
/// More than the sum of the time limits of all steps.
const SECONDS: u32 = 420;

/// `cargo xtask nics [NAME..]`: tries the rows with these prefixes, or all. The document gets the
/// last results of all rows from saved consoles.
pub fn nics(names: &[String]) -> Outcome {
    let chosen = |row: &&Kind| names.is_empty() || names.iter().any(|name| row.name.starts_with(name.as_str()));
    let kinds: Vec<&Kind> = ROWS.iter().filter(chosen).collect();
    if kinds.is_empty() {
        return Err(Failure::unable(format!("no such row; allowed: {}", ROWS.map(|row| row.name).join(", "))));
    }
    let rig = Rig::new(true)?;
    let (steps, consoles) = (COLUMNS.map(|(step, _)| step), folder().join("consoles"));
    kinds.iter().try_for_each(|kind| rig.try_kind(kind, &steps, &consoles).map(|_| ()))?;
    let rows: Vec<Row> = ROWS.iter().filter_map(|kind| kept(kind, &steps, &consoles)).collect();
    sh::fill("docs/results/nics.md", "rows", &format!("On Linux {}:\n\n{}", rig.release, table("NIC", &COLUMNS, &rows)))
}

/// Sends files over two drivers. Fails with 2, a skip, if it is not possible here.
pub fn two() -> Outcome {
    let rig = Rig::new(false).map_err(|failure| Failure::unable(failure.message))?;
    let kinds = ROWS.iter().filter(|row| IN_TESTS.contains(&row.name));
    let consoles = folder().join("tests");
    let rows: Vec<Row> = kinds.map(|kind| rig.try_kind(kind, &STEPS_IN_TESTS, &consoles)).collect::<Outcome<_>>()?;
    let bad: Vec<String> = rows.iter().filter(|row| !row.is_good()).map(Row::to_string).collect();
    if bad.is_empty() { Ok(()) } else { Err(Failure::failed(bad.join("\n"))) }
}

struct Rig {
    tools: Tools,
    image: PathBuf,
    initrd: PathBuf,
    release: String,
}

impl Rig {
    fn new(bare: bool) -> Outcome<Self> {
        vm::provide(&[&["iproute2"]])?;
        try_wires()?;
        let lists = packages::update("apt-nics", &SUITES)?;
        let folder = folder();
        let tools = Tools::fetch(&lists, QEMU_SUITE, &UNPACKED, &folder.join("tools"))?;
        let kernel = lists.fetch(KERNEL, &folder)?;
        let (initrd, image) = (folder.join("initrd"), folder.join("vmlinuz"));
        let script = include_str!("nics/guest.sh");
        let (programs, files) = (programs(&tools, &folder, bare)?, [("switch.toml", include_str!("nics/switch.toml"))]);
        let content = Content { kernel: &kernel, programs: &programs, tools: &tools, files: &files, script };
        initrd::write(&initrd, &content)?;
        std::fs::copy(&kernel.image, &image).map_err(|error| Failure::of_file(&image, &error))?;
        let _ = std::fs::remove_dir_all(&kernel.folder);
        Ok(Self { tools, image, initrd, release: kernel.release })
    }

    fn try_kind(&self, kind: &Kind, steps: &[&str], consoles: &Path) -> Outcome<Row> {
        let machine = Machine {
            tools: &self.tools,
            image: &self.image,
            initrd: &self.initrd,
            words: &format!("QUEUES={} STEPS={}", kind.queues, steps.join(",")),
            nics: &kind.arguments(),
            wires: Some(&kind.wires()),
            seconds: SECONDS,
        };
        machine.boot(kind.name, steps, &log(kind, consoles))
    }
}

/// Returns the result of an earlier run, if its console was saved.
fn kept(kind: &Kind, steps: &[&str], consoles: &Path) -> Option<Row> {
    let console = std::fs::read_to_string(log(kind, consoles)).ok()?;
    Some(Row::read(kind.name, steps, &console.lines().map(String::from).collect::<Vec<_>>()))
}

fn log(kind: &Kind, consoles: &Path) -> PathBuf {
    consoles.join(format!("{}.txt", kind.name.replace(' ', "-")))
}

fn folder() -> PathBuf {
    sh::root().join("target/nics")
}

fn programs(tools: &Tools, folder: &Path, bare: bool) -> Outcome<Vec<(&'static str, PathBuf)>> {
    let mut programs = vec![("sbin/ip", tools.program("ip")), ("sbin/ethtool", tools.program("ethtool"))];
    // Stripped, because the initrd is unpacked into the memory of the virtual machine.
    programs.push(("bin/spray", vm::stripped(&demo::build()?, &folder.join("spray"))?));
    if bare {
        let built = demo::example("spray-benches", "bare_nics")?;
        programs.push(("bin/bare", vm::stripped(&built, &folder.join("bare"))?));
    }
    Ok(programs)
}

/// Checks that this machine can create the devices that the NICs are attached to.
fn try_wires() -> Outcome {
    let wires = sh::capture("unshare", &["--net", "sh", "-ec", &rows::wires("multi_queue")]);
    wires.map(|_| ()).ok_or_else(|| Failure::unable("TAP devices and a bridge cannot be created here: this takes root"))
}

#[cfg(test)]
mod tests {
    use super::COLUMNS;

    #[test]
    fn the_script_and_the_page_have_every_column() {
        let page = include_str!("../../docs/results/nics.md");
        for (step, heading) in COLUMNS {
            assert!(include_str!("nics/guest.sh").contains(&format!("\nstep_{step}() {{")), "{step}");
            assert!(page.contains(&format!("\n| {heading} | ")), "{heading}");
        }
    }
}
