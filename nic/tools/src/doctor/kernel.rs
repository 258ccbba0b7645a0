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
    let [(major, minor), (oldest, oldest_minor)] = [TRIED, OLDEST];
    let remedy = format!("use Linux {major}.{minor} or later; {oldest}.{oldest_minor} is the oldest that may work");
    match drivers::kernel(&release) {
        Some(version) if version >= TRIED => Check::ok("kernel", release),
        Some(version) if version >= OLDEST => Check::warn("kernel", release, remedy),
        _ => Check::fail("kernel", if release.is_empty() { "unknown".into() } else { release }, remedy),
    }
}

pub(super) fn release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string()
}

/// The setting is visible to root in the first network namespace; elsewhere a program is loaded.
pub(super) fn bpf_jit() -> Check {
    let setting = fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").ok();
    let is_on = setting.map(|text| text.trim() != "0").or_else(spray_nic::xdp::jit_enabled);
    match is_on {
        Some(true) => Check::ok("BPF JIT", "on"),
        Some(false) => {
            Check::warn("BPF JIT", "off", "`sysctl net.core.bpf_jit_enable=1` in the first network namespace")
        }
        None => Check::warn("BPF JIT", "unknown", "run as root: neither the setting nor a loaded program can be read"),
    }
}

pub(super) fn ports() -> Check {
    match ports::clash(Ports::DEFAULT) {
        None => {
            let first = Ports::DEFAULT.first();
            Check::ok("UDP ports", format!("{first} and the {} behind it are free of others", Ports::COUNT - 1))
        }
        Some([found, remedy]) => Check::warn("UDP ports", found, remedy),
    }
}

pub(super) fn af_xdp() -> Check {
    let Err(error) = Socket::new(Domain::from(libc::AF_XDP), Type::RAW, None) else {
        return Check::ok("AF_XDP", "sockets can be created");
    };
    let (found, remedy) = match error.kind() {
        _ if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
            ("not in this kernel".into(), "a kernel with CONFIG_XDP_SOCKETS=y")
        }
        io::ErrorKind::PermissionDenied => ("not permitted".into(), "run as root, or with CAP_NET_RAW"),
        _ => (error.to_string(), "run as root on a kernel with CONFIG_XDP_SOCKETS=y"),
    };
    Check::fail("AF_XDP", found, remedy)
}
