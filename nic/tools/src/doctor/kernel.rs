//! What the kernel can do.

use std::{fs, io};

use socket2::{Domain, Socket, Type};

use super::check::Check;

/// The first kernel with BPF atomics that return a value, and with BPF links for XDP.
const OLDEST: (u32, u32) = (5, 15);
/// The first kernel that the project was developed on. Older ones are tested less.
const TRIED: (u32, u32) = (6, 1);

pub(super) fn version() -> Check {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string();
    let remedy = format!(
        "a kernel from {}.{} on has everything; {}.{} is the oldest that may do",
        TRIED.0, TRIED.1, OLDEST.0, OLDEST.1
    );
    match parse(&release) {
        Some(version) if version >= TRIED => Check::ok("kernel", release),
        Some(version) if version >= OLDEST => Check::warn("kernel", release, remedy),
        _ => Check::fail("kernel", if release.is_empty() { "unknown".into() } else { release }, remedy),
    }
}

/// `(6, 18)` of `6.18.0-rc1+`.
fn parse(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

pub(super) fn bpf_jit() -> Check {
    match fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").as_deref().map(str::trim) {
        Ok("0") => Check::warn("BPF JIT", "off", "`sysctl net.core.bpf_jit_enable=1`: interpreted programs are slow"),
        Ok(_) => Check::ok("BPF JIT", "on"),
        Err(_) => {
            Check::warn("BPF JIT", "unknown", "/proc/sys/net/core/bpf_jit_enable cannot be read: not root, or no BPF")
        }
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

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn kernel_versions_are_read() {
        assert_eq!(parse("6.18.0-rc1+"), Some((6, 18)));
        assert_eq!(parse("5.10"), Some((5, 10)));
        assert_eq!(parse(""), None);
    }
}
