//! Privileges, limits, and the size of the machine.

use std::fs;

use super::check::Check;

/// Capability bits (`linux/capability.h`), in the order in which `spray` needs them.
const CAPABILITIES: [(u32, &str); 5] =
    [(12, "CAP_NET_ADMIN"), (13, "CAP_NET_RAW"), (39, "CAP_BPF"), (38, "CAP_PERFMON"), (21, "CAP_SYS_ADMIN")];
const CAP_IPC_LOCK: u32 = 14;
/// A UMEM of 16 MiB for each host of the demo.
const PINNED_BYTES: u64 = 8 * (16 << 20);

pub(super) fn rights() -> Check {
    let held = effective_capabilities();
    let lacks: Vec<&str> = CAPABILITIES.iter().filter(|(bit, _)| held >> bit & 1 == 0).map(|(_, name)| *name).collect();
    if lacks.is_empty() {
        return Check::ok("rights", "all capabilities that namespaces, XDP and AF_XDP need");
    }
    Check::fail("rights", format!("missing {}", lacks.join(", ")), "run as root: namespaces, XDP and AF_XDP need it")
}

fn effective_capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    field.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

pub(super) fn memlock() -> Check {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max locked memory")).unwrap_or_default();
    let soft = soft.split_whitespace().next().unwrap_or("unknown").to_string();
    if effective_capabilities() >> CAP_IPC_LOCK & 1 == 1 {
        return Check::ok("memlock", format!("limit {soft} does not apply: CAP_IPC_LOCK"));
    }
    let enough = soft == "unlimited" || soft.parse::<u64>().is_ok_and(|bytes| bytes >= PINNED_BYTES);
    if enough {
        return Check::ok("memlock", format!("limit {soft}"));
    }
    let remedy = "`ulimit -l unlimited`, or LimitMEMLOCK=infinity in the service: a UMEM is pinned memory";
    Check::fail("memlock", format!("limit {soft} bytes, the demo pins {PINNED_BYTES}"), remedy)
}

pub(super) fn memory() -> Check {
    const ENOUGH_KIB: u64 = 1 << 20;
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = available.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0);
    let found = format!("{} MiB available", kib / 1024);
    if kib >= ENOUGH_KIB {
        Check::ok("memory", found)
    } else {
        Check::warn("memory", found, "the demo is comfortable with 1 GiB; close something, or lower workload.bytes")
    }
}

pub(super) fn cpus() -> Check {
    match std::thread::available_parallelism().map_or(1, usize::from) {
        1 => Check::warn("cpus", "1", "with one CPU runs take longer and frames come late: use two or more"),
        cpus => {
            let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
            let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
            Check::ok("cpus", format!("{cpus}{}", model.map_or(String::new(), |(_, name)| format!(", {name}"))))
        }
    }
}
