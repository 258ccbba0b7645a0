//! Emulated NICs: boots a kernel in QEMU for each driver, and sends files from one of two NICs to the other: copied, by zero-copy, while the
//! receiver's link goes down and up, with an MTU that some drivers refuse XDP for, and beside another process.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::kernels::boot::{self, Machine};
use crate::kernels::packages::{self, Flavour};
use crate::kernels::{self, MODULES, initrd};
use crate::sh::{self, Failure, Outcome};

/// The oldest of Debian's kernels in which igb and virtio-net have zero-copy.
const KERNEL: &str = "6.18";
/// Where that one and a QEMU with igb are.
const SUITES: [&str; 2] = ["bookworm-backports", "trixie-backports"];
const QEMU: [&str; 3] = ["qemu-system-x86", "qemu-system-common", "qemu-system-data"];

/// A driver, and the device of QEMU that it drives.
struct Nic {
    driver: &'static str,
    device: &'static str,
}

const NICS: [Nic; 4] = [
    Nic { driver: "igb", device: "igb" },
    Nic { driver: "virtio_net", device: boot::VIRTIO },
    Nic { driver: "vmxnet3", device: "vmxnet3" },
    Nic { driver: "e1000e", device: "e1000e" },
];

/// Modules of the drivers, after those that every machine gets.
const DRIVERS: [&str; 5] = ["i2c-algo-bit.ko", "dca.ko", "igb.ko", "vmxnet3.ko", "e1000e.ko"];

/// The parts of the script: the mark before each, and the column's name.
const PARTS: [(&str, &str); 5] = [
    ("@@ copy", "copied"),
    ("@@ zero-copy", "zero-copy"),
    ("@@ down", "down and up"),
    ("@@ mtu", "MTU 3,400"),
    ("@@ second", "second process"),
];

const SCRIPT: &str = r#"
transfer() {
  rm -f /tmp/file /tmp/.spray*
  on spray recv --insecure --interface eth1 --out /tmp --timeout 20 "$@" > /tmp/recv.txt 2>&1 &
  receiver=$!
  sleep 3
  spray send /file --insecure --interface eth0 --to 10.0.0.2 --timeout 20 "$@" > /tmp/send.txt 2>&1
  code=$?
  kill $receiver 2> /dev/null
  cat /tmp/recv.txt /tmp/send.txt
  echo "exit $code"
}
arrived() { du -k /tmp/.spray* 2> /dev/null | awk '{ sum += $1 } END { print sum + 0 }'; }
head -c 8000000 /dev/urandom > /file
echo '@@ copy'
transfer --copy
echo '@@ zero-copy'
transfer --zero-copy
echo '@@ down'
( while [ "$(arrived)" -lt 2000 ]; do sleep 0.1; done; on ip link set eth1 down; sleep 1; on ip link set eth1 up; echo 'was down' ) &
watcher=$!
head -c 24000000 /dev/urandom > /file
transfer
kill $watcher 2> /dev/null
head -c 2000000 /dev/urandom > /file
echo '@@ mtu'
ip link set eth0 mtu 3400
on ip link set eth1 mtu 3400
transfer
ip link set eth0 mtu 1500
on ip link set eth1 mtu 1500
echo '@@ second'
spray serve --insecure --interface eth0 > /dev/null 2>&1 &
first=$!
sleep 4
spray serve --insecure --interface eth0 2>&1
echo "exit $?"
kill $first"#;

/// `cargo xtask nics [DRIVER]..`: tries each driver, and with all of them writes `docs/results/nics.md`.
pub fn nics(drivers: &[String]) -> Outcome {
    let unknown = drivers.iter().find(|driver| !NICS.iter().any(|nic| nic.driver == **driver));
    if let Some(unknown) = unknown {
        let known = NICS.map(|nic| nic.driver).join(", ");
        return Err(Failure::unable(format!("there is no emulated {unknown}; allowed: {known}")));
    }
    kernels::tools()?;
    let program = crate::demo::build()?;
    let folder = sh::root().join("target/nics");
    let lists = packages::update("apt-nics", &SUITES)?;
    let modules = [&MODULES[..], &DRIVERS].concat();
    let kernel = lists.fetch(KERNEL, Flavour::Full, &modules, &folder.join("kernel"))?;
    let stripped = kernels::stripped(&program, &folder)?;
    let archive = folder.join("initrd");
    initrd::write(&archive, &kernel, &stripped, SCRIPT)?;
    let qemu = qemu(&lists)?;
    let mut rows = Vec::new();
    for nic in NICS.iter().filter(|nic| drivers.is_empty() || drivers.iter().any(|driver| driver == nic.driver)) {
        let machine = Machine { qemu: qemu.clone(), nic: nic.device, seconds: 400 };
        let console = boot::boot(&machine, &kernel.image, &archive)?;
        let log = folder.join(format!("{}.txt", nic.driver));
        std::fs::write(&log, console.join("\n")).map_err(|error| Failure::of_file(&log, &error))?;
        rows.push(Row::read(nic.driver, &console));
        println!("{}its console is in {}", rows[rows.len() - 1].details(), log.display());
    }
    if drivers.is_empty() {
        let file = sh::root().join("docs/results/nics.md");
        std::fs::write(&file, document(&kernel.release, &rows)).map_err(|error| Failure::of_file(&file, &error))?;
        println!("{}", file.display());
    }
    let bad: Vec<&str> = rows.iter().filter(|row| !row.is_good()).map(|row| row.driver).collect();
    if bad.is_empty() { Ok(()) } else { Err(Failure::failed(format!("these drivers failed: {}", bad.join(", ")))) }
}

/// A QEMU that has igb: the machine's own, or one that is unpacked beside it.
fn qemu(lists: &packages::Lists) -> Outcome<Vec<String>> {
    const PROGRAM: &str = "qemu-system-x86_64";
    if sh::capture(PROGRAM, &["-device", "help"]).is_some_and(|devices| devices.contains("\"igb\"")) {
        return Ok(vec![PROGRAM.into()]);
    }
    let folder = sh::root().join("target/nics/qemu");
    let program = folder.join("usr/bin").join(PROGRAM);
    if sh::capture(&program, &["--version"]).is_none() {
        lists.unpack(&QEMU, SUITES[0], &folder)?;
    }
    let own = folder.join("usr/share/qemu");
    let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
    Ok(vec![path(&program), "-L".into(), path(&own), "-L".into(), "/usr/share/seabios".into()])
}

/// What became of one part.
#[derive(Debug, Default, PartialEq, Eq)]
struct Part {
    exit: Option<u8>,
    /// What `spray send` said of its interface.
    taken: Option<String>,
    /// Its last words where it failed.
    error: Option<String>,
}

/// What a driver did.
struct Row {
    driver: &'static str,
    parts: Vec<Part>,
}

impl Row {
    fn read(driver: &'static str, console: &[String]) -> Self {
        let part = |(mark, _): (&str, _)| {
            let lines: Vec<&str> =
                console.iter().map(String::as_str).skip_while(|line| !line.ends_with(mark)).skip(1).collect();
            let end = lines.iter().position(|line| line.starts_with("@@")).unwrap_or(lines.len());
            let find = |what: &str| {
                lines[..end].iter().rev().find_map(|line| line.split_once(what).map(|(_, rest)| rest.to_string()))
            };
            let exit = find("exit ").and_then(|code| code.trim().parse().ok());
            let error = if exit == Some(0) { None } else { find("error: ").or_else(|| find("spray: ")) };
            Part { exit, taken: find("spray: eth0: "), error }
        };
        Self { driver, parts: PARTS.map(part).into() }
    }

    /// Whether files arrived wherever the driver was not asked for what it does not have, and a second process was refused.
    fn is_good(&self) -> bool {
        let exits: Vec<Option<u8>> = self.parts.iter().map(|part| part.exit).collect();
        matches!(exits[..], [Some(0), Some(0 | 2), Some(0), Some(0), Some(2)])
    }

    /// A cell of the table.
    fn cell(&self, at: usize) -> String {
        let part = &self.parts[at];
        let taken = part.taken.as_deref().map(|taken| taken.split(". ").next().unwrap_or(taken));
        match (part.exit, taken) {
            (Some(0), Some(taken)) => format!("verified: {taken}"),
            (Some(0), None) => "verified".into(),
            (Some(2), _) => "refused".into(),
            (Some(_), _) => "failed".into(),
            (None, _) => "nothing ran".into(),
        }
    }

    fn details(&self) -> String {
        let mut text = format!("{}\n", self.driver);
        for (at, (part, (_, name))) in self.parts.iter().zip(PARTS).enumerate() {
            let _ = writeln!(text, "  {name}: {} {}", self.cell(at), part.error.as_deref().unwrap_or_default());
        }
        text
    }
}

fn document(release: &str, rows: &[Row]) -> String {
    let mut text = format!(
        "# NICs\n\n\
         Written by `cargo xtask nics`. Two NICs of a driver on a hub, in a virtual machine that is emulated in software on two cores, with Linux \
         {release}.\n\
         `spray send` sends a file from one to the other, whose SHA-256 is compared: with `--copy`, with `--zero-copy`, while the receiver's\n\
         interface is set down for a second, and with an MTU of 3,400 bytes. The last column is a second `spray` on the same interface. \n\
         *Refused* is an exit code of 2 with the reason, which stands below.\n\n"
    )
    .replace(" \n", "\n");
    let names = PARTS.map(|(_, name)| name).join(" | ");
    let _ = writeln!(text, "| driver | {names} |\n|---|---|---|---|---|---|");
    for row in rows {
        let cells: Vec<String> = (0..PARTS.len()).map(|at| row.cell(at)).collect();
        let _ = writeln!(text, "| {} | {} |", row.driver, cells.join(" | "));
    }
    let mut said = BTreeSet::new();
    for row in rows {
        for (part, (_, name)) in row.parts.iter().zip(PARTS) {
            let words = part.error.iter().chain(part.taken.iter().filter(|taken| taken.contains("Warning")));
            // What several say stands here once.
            let new = words.filter(|words| said.insert(words.as_str()));
            new.for_each(|words| text += &format!("\n{}, {name}: {words}\n", row.driver));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Row, document};

    fn console(last: &str) -> Vec<String> {
        let text = format!(
            "noise\n@@ copy\nspray: eth0: native XDP, copied by the kernel, 4 queues on one thread\nexit 0\n@@ zero-copy\nspray: error: none\n\
             exit 2\n@@ down\nwas down\nspray: eth0: native XDP, zero-copy, one queue\nexit 0\n@@ mtu\n\
             spray: eth0: generic XDP, one queue. Warning: slow\nexit 0\n@@ second\nspray: error: busy\nexit {last}\n@@ end"
        );
        text.lines().map(String::from).collect()
    }

    #[test]
    fn a_driver_is_good_if_files_arrive_and_a_second_process_is_refused() {
        let row = Row::read("igb", &console("2"));
        assert!(row.is_good(), "{}", row.details());
        assert!(!Row::read("igb", &console("0")).is_good());
        assert!(!Row::read("igb", &[]).is_good());
        let page = document("6.18", &[row]);
        let cells = "| igb | verified: native XDP, copied by the kernel, 4 queues on one thread | refused | verified: native XDP, zero-copy, \
            one queue | verified: generic XDP, one queue | refused |";
        assert!(page.contains(cells), "{page}");
        assert!(page.contains("igb, zero-copy: none") && page.contains("igb, second process: busy"), "{page}");
    }
}
