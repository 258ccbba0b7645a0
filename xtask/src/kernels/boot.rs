//! A virtual machine without KVM, disk and a way out, whose console is its output. It has two NICs that a hub joins.

use std::path::Path;
use std::process::{Command, Stdio};

use super::initrd;
use crate::sh::{self, Failure, Outcome};

/// The driver has zero-copy only where it hands out memory by the kernel's DMA interface, and XDP only without offloads that merge
/// frames or leave checksums open.
pub const VIRTIO: &str = "virtio-net-pci,disable-legacy=on,iommu_platform=on,csum=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off";

/// A virtual machine.
pub struct Machine<'a> {
    /// QEMU with the arguments that say where its own files are.
    pub qemu: Vec<String>,
    /// What its two NICs are, as QEMU's `-device` takes them.
    pub nic: &'a str,
    /// After so many seconds it is ended: two to twenty times what it takes on two cores.
    pub seconds: u32,
}

/// Boots, waits until the machine turns itself off, and returns the lines of its console.
pub fn boot(machine: &Machine<'_>, image: &Path, initrd: &Path) -> Outcome<Vec<String>> {
    let seconds = machine.seconds.to_string();
    let mut command = Command::new("timeout");
    command.arg(&seconds).args(&machine.qemu);
    command.args(["-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "3072"]);
    command.args(["-nographic", "-no-reboot", "-append", "console=ttyS0 quiet panic=-1 mitigations=off net.ifnames=0"]);
    for number in ["0", "1"] {
        let device =
            format!("{},bus=root{number},netdev=hub{number},mac=02:00:00:00:00:0{number},romfile=", machine.nic);
        // Several functions of one driver want a port each.
        command.args(["-device", &format!("pcie-root-port,id=root{number},chassis={number},slot={number}")]);
        command.args(["-netdev", &format!("hubport,id=hub{number},hubid=0"), "-device", &device]);
    }
    command.arg("-kernel").arg(image).arg("-initrd").arg(initrd).stdin(Stdio::null());
    let mut lines = Vec::new();
    let mut ended = false;
    sh::run_lines(&mut command, |line| {
        let line = line.trim_end_matches('\r');
        ended |= line.contains(initrd::END);
        lines.push(line.to_string());
    })?;
    if !ended {
        let last = lines[lines.len().saturating_sub(20)..].join("\n");
        return Err(Failure::failed(format!("the virtual machine did not come to its end in {seconds} s:\n{last}")));
    }
    Ok(lines)
}
