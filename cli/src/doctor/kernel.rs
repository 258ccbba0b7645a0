//! What the kernel can do.

use std::{fs, io};

use socket2::{Domain, Socket, Type};
use spray_testbed::program::{Checked, VERIFIER_LIMIT, check_programs};

use super::Check;

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

/// Whether the kernel takes every XDP program that this binary carries.
pub(super) fn programs() -> Check {
    judge(&check_programs())
}

const PROGRAMS: &str = "XDP programs";

fn judge(checked: &[Checked]) -> Check {
    let refused = checked.iter().find_map(|checked| Some((checked.program, checked.verified.as_ref().err()?)));
    if let Some((program, error)) = refused {
        let error = error.to_string();
        let (first, log) = error.split_once('\n').unwrap_or((&error, ""));
        return match last_lines(log) {
            log if !log.is_empty() => Check::fail(
                PROGRAMS,
                format!("`{program}`: {first}\n{log}"),
                "the lines above are the kernel's last words: report them with the output of `uname -r`",
            ),
            _ => Check::fail(
                PROGRAMS,
                format!("`{program}`: {}", first.trim()),
                "run as root, on a kernel with CONFIG_BPF_SYSCALL=y",
            ),
        };
    }
    let figure = |checked: &Checked| format!("{} {}", checked.program, checked.verified.as_ref().unwrap_or(&0));
    let figures: Vec<String> = checked.iter().map(figure).collect();
    let figures = figures.join(", ");
    Check::ok(PROGRAMS, format!("the kernel takes all, instructions verified of {VERIFIER_LIMIT}: {figures}"))
}

/// The end of what the verifier says, where it names what it minds; without the loader's own lines around it.
fn last_lines(log: &str) -> String {
    const LINES: usize = 8;
    let is_the_loaders = |line: &str| line.starts_with("libbpf: ") || line.starts_with("-- ");
    let lines = log.lines().filter(|line| !line.trim().is_empty() && !is_the_loaders(line));
    let lines: Vec<&str> = lines.collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// Attaches the steering program to a veth in a namespace of its own.
pub(super) fn veth_xdp() -> Check {
    match spray_testbed::probe_veth_xdp() {
        Ok(true) => Check::ok("XDP on veth", "native, in network namespaces of our own"),
        Ok(false) => Check::warn(
            "XDP on veth",
            "only the slow generic way",
            "use a kernel whose veth has native XDP (from 4.19 on)",
        ),
        Err(error) => Check::fail(
            "XDP on veth",
            first_line(&error),
            "run as root, on a kernel with CONFIG_VETH and CONFIG_NET_NS",
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

fn first_line(error: &impl ToString) -> String {
    error.to_string().lines().next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::{Checked, judge, parse};
    use spray_testbed::program::ProgramError;

    #[test]
    fn kernel_versions_are_read() {
        assert_eq!(parse("6.18.0-rc1+"), Some((6, 18)));
        assert_eq!(parse("5.10"), Some((5, 10)));
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_refused_program_is_shown_with_the_end_of_the_log() {
        let log: String = (0..20).map(|line| format!("line {line}\n\n")).collect();
        let log = log + "-- END PROG LOAD LOG --\nlibbpf: failed to load object\n";
        let refused = Checked { program: "switch", verified: Err(ProgramError::Fabric(format!("refused\n{log}"))) };
        let fine = |program| Checked { program, verified: Ok(64) };
        let check = judge(&[fine("steer"), refused]);
        assert_eq!(check.status, Status::Fail);
        assert!(check.found.starts_with("`switch`: ") && check.found.ends_with("line 18\nline 19"), "{}", check.found);
        assert_eq!(check.found.lines().count(), 9);
        // Without root the loader says much, and the kernel nothing.
        let log = "libbpf: prog 'steer': BPF program load failed: -EPERM\n\n-- END PROG LOAD LOG --\n";
        let refused = Checked { program: "steer", verified: Err(ProgramError::Fabric(format!("refused\n{log}"))) };
        let check = judge(&[refused]);
        assert_eq!((check.found.lines().count(), check.remedy.contains("run as root")), (1, true), "{check:?}");
        assert!(!check.remedy.contains("last words"), "{check:?}");
        let check = judge(&[fine("steer"), fine("switch")]);
        assert_eq!(check.status, Status::Ok);
        assert!(check.found.ends_with("of 1000000: steer 64, switch 64"), "{}", check.found);
    }
}
