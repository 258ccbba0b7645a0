//! A virtual machine whose console is its output.

use std::path::Path;
use std::process::{Command, Stdio};

use super::table::Row;
use super::tools::Tools;
use crate::sh::{self, Failure, Outcome};

/// Options of virtio's NIC. Its driver has zero-copy only where it hands out memory by the kernel's DMA interface, and XDP only without
/// offloads that merge frames or leave checksums open.
pub const VIRTIO: &str = "disable-legacy=on,iommu_platform=on,csum=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off";

/// What all machines have.
const PARTS: &str = "-accel tcg,thread=multi -cpu max -smp 2 -m 2048 -nographic -no-reboot";

/// What QEMU makes.
#[derive(Debug)]
pub struct Machine<'a> {
    pub tools: &'a Tools,
    pub image: &'a Path,
    pub initrd: &'a Path,
    /// Further words of the kernel's command line. What the kernel does not know, such as `NAME=value`, becomes a variable of the script.
    pub words: &'a str,
    /// QEMU's arguments for NICs and what joins them.
    pub nics: &'a [String],
    /// A shell's commands that make what the NICs hang on, in a network namespace that goes with the machine.
    pub wires: Option<&'a str>,
    /// A machine that has not turned itself off by then is ended.
    pub seconds: u32,
}

impl Machine<'_> {
    /// Boots, waits until the machine turns itself off, keeps its console in `log`, and returns how the steps ended.
    pub fn boot(&self, name: &str, steps: &[&str], log: &Path) -> Outcome<Row> {
        let mut console = Vec::new();
        sh::read_lines(&mut self.command(), |line| console.push(line.trim_end_matches('\r').to_string()))?;
        let folder = log.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder.and_then(|()| std::fs::write(log, console.join("\n"))).map_err(|error| Failure::of_file(log, &error))?;
        let row = Row::read(name, steps, &console);
        println!("{row}\n  its console is in {}", log.display());
        Ok(row)
    }

    fn command(&self) -> Command {
        // However this program ends, the machine ends with it.
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
