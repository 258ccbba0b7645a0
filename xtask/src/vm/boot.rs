//! Booting of a virtual machine with its console as output.

use std::path::Path;
use std::process::{Command, Stdio};

use super::table::Row;
use super::tools::Tools;
use crate::sh::{self, Outcome};

/// Options of the virtio NIC. Its driver supports zero-copy only with DMA mapping
/// (`iommu_platform`), and XDP only without offloads that merge frames or defer checksums.
pub const VIRTIO: &str = "disable-legacy=on,iommu_platform=on,csum=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off";

const PARTS: &str = "-accel tcg,thread=multi -cpu max -smp 2 -m 2048 -nographic -no-reboot";

#[derive(Debug)]
pub struct Machine<'a> {
    pub tools: &'a Tools,
    pub image: &'a Path,
    pub initrd: &'a Path,
    /// Words of the kernel's command line; `NAME=value` becomes a variable of the script.
    pub words: &'a str,
    /// QEMU's arguments for NICs and their network.
    pub nics: &'a [String],
    /// Shell commands that create the network, in a network namespace of the machine.
    pub wires: Option<&'a str>,
    pub seconds: u32,
}

impl Machine<'_> {
    /// Boots until the machine turns itself off, saves its console, and returns the results.
    pub fn boot(&self, name: &str, steps: &[&str], log: &Path) -> Outcome<Row> {
        let mut console = Vec::new();
        sh::read_lines(&mut self.command(), |line| console.push(line.trim_end_matches('\r').to_string()))?;
        sh::write(log, console.join("\n"))?;
        let row = Row::read(name, steps, &console);
        println!("{row}\n  its console is in {}", log.display());
        Ok(row)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "timeout", &self.seconds.to_string()]);
        if let Some(wires) = self.wires {
            command.args(["unshare", "--net", "sh", "-ec", &format!("{wires}\nexec \"$@\""), "sh"]);
        }
        command.arg(self.tools.program("qemu-system-x86_64")).args(self.tools.arguments());
        command.args(PARTS.split(' '));
        command.args(["-append", &format!("console=ttyS0 quiet panic=-1 oops=panic mitigations=off {}", self.words)]);
        command.args(self.nics);
        command.arg("-kernel").arg(self.image).arg("-initrd").arg(self.initrd).stdin(Stdio::null());
        self.tools.prepare(&mut command);
        command
    }
}
