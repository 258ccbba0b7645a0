//! A virtual machine whose console is its output.

use std::path::Path;
use std::process::{Command, Stdio};

use super::initrd;
use super::tools::Tools;
use crate::sh::{self, Outcome};

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
    /// Whether its console is shown.
    pub shown: bool,
}

/// What a machine printed.
#[derive(Debug, Default)]
pub struct Console {
    pub lines: Vec<String>,
    /// Whether its script came to its end.
    pub ended: bool,
}

impl Machine<'_> {
    /// Boots, waits until the machine turns itself off, and returns its console.
    pub fn boot(&self) -> Outcome<Console> {
        let mut console = Console::default();
        let each = |line: &str| {
            let line = line.trim_end_matches('\r');
            console.ended |= line.contains(initrd::END);
            console.lines.push(line.to_string());
        };
        let mut command = self.command();
        match self.shown {
            true => sh::run_lines(&mut command, each)?,
            false => sh::read_lines(&mut command, each)?,
        };
        Ok(console)
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
