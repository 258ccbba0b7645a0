//! Privileges, limits, and the size of the machine.

use std::fs;

use caps::CapSet;
use caps::Capability::{self, CAP_BPF, CAP_IPC_LOCK, CAP_NET_ADMIN, CAP_NET_RAW, CAP_PERFMON, CAP_SYS_ADMIN};

use super::check::Check;

/// In the order in which `spray` needs them.
const CAPABILITIES: [Capability; 5] = [CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN];
/// A UMEM of 16 MiB for each host of the demo.
const PINNED_BYTES: u64 = 8 * (16 << 20);

pub(super) fn rights() -> Check {
    let lacks: Vec<String> = CAPABILITIES.iter().filter(|it| !has(**it)).map(ToString::to_string).collect();
    if lacks.is_empty() {
        return Check::ok("rights", "all capabilities that namespaces, XDP and AF_XDP need");
    }
    Check::fail("rights", format!("missing {}", lacks.join(", ")), "run as root: namespaces, XDP and AF_XDP need it")
}

fn has(capability: Capability) -> bool {
    caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false)
}

pub(super) fn memlock() -> Check {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max locked memory")).unwrap_or_default();
    let soft = soft.split_whitespace().next().unwrap_or("unknown").to_string();
    if has(CAP_IPC_LOCK) {
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
