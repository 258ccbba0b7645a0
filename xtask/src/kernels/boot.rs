//! A virtual machine without KVM, disk and a way out, whose console is its output. It has two NICs that a hub joins.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Extent, initrd};
use crate::sh::{self, Failure, Outcome};

/// The driver has zero-copy only where it hands out memory by the kernel's DMA interface, and XDP only without offloads that merge
/// frames or leave checksums open.
const NIC: &str = "disable-legacy=on,iommu_platform=on,csum=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off";

/// Boots, waits until the machine turns itself off, and returns the lines of its console.
pub fn boot(image: &Path, initrd: &Path, extent: Extent) -> Outcome<Vec<String>> {
    // Two to twenty times what it takes on two cores; a kernel that hangs ends the machine.
    let seconds = match extent {
        Extent::Short => "180",
        Extent::Demo => "1200",
    };
    let mut command = Command::new("timeout");
    command.args([
        seconds,
        "qemu-system-x86_64",
        "-accel",
        "tcg,thread=multi",
        "-cpu",
        "max",
        "-smp",
        "2",
        "-m",
        "2048",
    ]);
    command.args(["-nographic", "-no-reboot", "-append", "console=ttyS0 quiet panic=-1 mitigations=off"]);
    for nic in ["0", "1"] {
        let device = format!("virtio-net-pci,netdev=hub{nic},mac=02:00:00:00:00:0{nic},{NIC}");
        command.args(["-netdev", &format!("hubport,id=hub{nic},hubid=0"), "-device", &device]);
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
