use std::{fs, io};

use socket2::{Domain, Socket, Type};
use spray_nic::net::drivers;
use spray_wire::Ports;

use super::check::Check;
use crate::ports;

/// The first with BPF atomics that return a value, and BPF links for XDP.
const OLDEST: (u32, u32) = (5, 15);
/// The first that the project was developed on; older ones are tested less.
const TRIED: (u32, u32) = (6, 1);

pub(super) fn version() -> Check {
    let release = release();
    let remedy = format!(
        "a kernel from {}.{} on has everything; {}.{} is the oldest that may do",
        TRIED.0, TRIED.1, OLDEST.0, OLDEST.1
    );
    match drivers::kernel(&release) {
        Some(version) if version >= TRIED => Check::ok("kernel", release),
        Some(version) if version >= OLDEST => Check::warn("kernel", release, remedy),
        _ => Check::fail("kernel", if release.is_empty() { "unknown".into() } else { release }, remedy),
    }
}

pub(super) fn release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string()
}

/// Whether programs are compiled. The setting is visible to root in the first network namespace;
/// elsewhere a program is loaded to find out.
pub(super) fn bpf_jit() -> Check {
    let setting = fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").ok();
    let is_on = setting.map(|text| text.trim() != "0").or_else(spray_nic::xdp::compiles);
    match is_on {
        Some(true) => Check::ok("BPF JIT", "on"),
        Some(false) => {
            let remedy =
                "`sysctl net.core.bpf_jit_enable=1` in the first network namespace: interpreted programs are slow";
            Check::warn("BPF JIT", "off", remedy)
        }
        None => Check::warn(
            "BPF JIT",
            "unknown",
            "neither can /proc/sys/net/core/bpf_jit_enable be read nor a program be loaded: not root, or no BPF",
        ),
    }
}

pub(super) fn ports() -> Check {
    let ports = Ports::DEFAULT;
    match ports::clash(ports) {
        None => Check::ok(
            "UDP ports",
            format!("{} and the {} behind it are free of others", ports.first(), Ports::COUNT - 1),
        ),
        Some([found, remedy]) => Check::warn("UDP ports", found, remedy),
    }
}

pub(super) fn btf() -> Check {
    let path = "/sys/kernel/btf/vmlinux";
    match fs::metadata(path) {
        Ok(data) => Check::ok("BTF", format!("{path}, {} kB", data.len() / 1000)),
        Err(_) => Check::warn(
            "BTF",
            format!("no {path}"),
            "a kernel with CONFIG_DEBUG_INFO_BTF=y says more when a program is refused",
        ),
    }
}

pub(super) fn af_xdp() -> Check {
    let refused = |found: String, remedy: &str| Check::fail("AF_XDP", found, remedy);
    match Socket::new(Domain::from(libc::AF_XDP), Type::RAW, None) {
        Ok(_) => Check::ok("AF_XDP", "sockets can be made"),
        Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
            refused("not in this kernel".into(), "a kernel with CONFIG_XDP_SOCKETS=y")
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            refused("not permitted".into(), "run as root, or with CAP_NET_RAW")
        }
        Err(error) => refused(error.to_string(), "run as root on a kernel with CONFIG_XDP_SOCKETS=y"),
    }
}
