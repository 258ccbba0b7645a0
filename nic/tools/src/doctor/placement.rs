//! The location of the NIC, its interrupts and this process, and the bus between NIC and memory.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use spray_nic::xdp::processes;

use super::check::Check;
use super::subject::{Subject, text};

pub(super) fn checks(subject: &Subject) -> Vec<Check> {
    vec![node(subject), bus(subject), interrupts(subject), balancing(), iommu(subject), polling(subject)]
}

/// The NUMA node of the NIC and its CPUs, if there are several nodes.
fn own_cpus(subject: &Subject) -> Option<(String, BTreeSet<u32>)> {
    let node = subject.device_file("numa_node").filter(|node| node != "-1")?;
    let several = Path::new("/sys/devices/system/node/node1").exists();
    let cpus = several.then(|| text(format!("/sys/devices/system/node/node{node}/cpulist"))).flatten()?;
    Some((node, list(&cpus)))
}

fn node(subject: &Subject) -> Check {
    let Some((node, cpus)) = own_cpus(subject) else {
        return Check::ok("NUMA", "one node, or no device of this machine's");
    };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    let names = ranges(&cpus);
    if list(allowed.trim()).is_subset(&cpus) {
        return Check::ok("NUMA", format!("node {node}, CPUs {names}, to which this process is bound"));
    }
    let found = format!("the NIC is at node {node}, CPUs {names}; a thread elsewhere reaches its memory more slowly");
    Check::warn("NUMA", found, format!("`taskset -c {names} spray ...`"))
}

fn bus(subject: &Subject) -> Check {
    let speed = |which: &str| {
        let gts = subject.device_file(&format!("{which}_link_speed"))?.split(' ').next()?.parse().ok()?;
        let lanes = subject.device_file(&format!("{which}_link_width"))?.parse().ok()?;
        Some((gts, lanes))
    };
    let (Some(now), Some(most)) = (speed("current"), speed("max")) else {
        return Check::ok("PCIe", "not on that bus, or it does not tell");
    };
    let found =
        format!("{} GT/s x{}: {:.0} Gb/s each way before its own headers", now.0, now.1, pcie_gbps(now.0, now.1));
    if pcie_gbps(now.0, now.1) < pcie_gbps(most.0, most.1) {
        let found = format!("{found}, and the NIC can {} GT/s x{}", most.0, most.1);
        return Check::warn("PCIe", found, "another slot, if the link's rate is more than that");
    }
    Check::ok("PCIe", found)
}

/// Less the overhead of encoding: 8b/10b up to 5 GT/s, 128b/130b above.
fn pcie_gbps(gts: f64, lanes: u32) -> f64 {
    gts * f64::from(lanes) * if gts <= 5.0 { 0.8 } else { 128.0 / 130.0 }
}

fn interrupts(subject: &Subject) -> Check {
    let numbers: Vec<String> = subject.device.iter().flat_map(|device| names_in(&device.join("msi_irqs"))).collect();
    let cpus = |number: &String| {
        let path = Path::new("/proc/irq").join(number);
        text(path.join("effective_affinity_list")).or_else(|| text(path.join("smp_affinity_list")))
    };
    let cpus: BTreeSet<u32> = numbers.iter().filter_map(cpus).flat_map(|cpus| list(&cpus)).collect();
    if numbers.is_empty() {
        return Check::ok("interrupts", "none of its own");
    }
    let found = format!("{} on CPUs {}", numbers.len(), ranges(&cpus));
    match own_cpus(subject) {
        Some((node, own)) if !cpus.is_subset(&own) => {
            let (own, irqs) = (ranges(&own), numbers.join(", "));
            let remedy = format!("`echo CPU > /proc/irq/IRQ/smp_affinity_list` with a CPU of {own}, for IRQs {irqs}");
            Check::warn("interrupts", format!("{found}, not all at node {node} as the NIC is"), remedy)
        }
        _ => Check::ok("interrupts", found),
    }
}

fn balancing() -> Check {
    if !processes().any(|(_, name)| name == "irqbalance") {
        return Check::ok("irqbalance", "does not run");
    }
    let remedy = "`systemctl stop irqbalance`, or IRQBALANCE_BANNED_CPULIST in its settings";
    Check::warn("irqbalance", "runs, and moves interrupts onto the cores of the command", remedy)
}

fn iommu(subject: &Subject) -> Check {
    match subject.device_file("iommu_group/type").as_deref() {
        None => Check::ok("IOMMU", "none between the device and memory"),
        Some("identity") => Check::ok("IOMMU", "passes addresses through"),
        Some(kind) => {
            let remedy = "`iommu=pt` on the kernel's command line, where devices are trusted";
            Check::warn("IOMMU", format!("{kind}: every buffer is mapped, which reduces the rate"), remedy)
        }
    }
}

/// Without a socket that polls, these settings only delay interrupts.
fn polling(subject: &Subject) -> Check {
    const FILES: [&str; 2] = ["napi_defer_hard_irqs", "gro_flush_timeout"];
    let values = FILES.map(|file| subject.interface.sysfs_dir().and_then(|folder| text(folder.join(file))));
    let [Some(defer), Some(timeout)] = values else {
        return Check::ok("busy polling", "unknown: /sys is another network namespace's");
    };
    let found = format!("napi_defer_hard_irqs {defer}, gro_flush_timeout {timeout} ns");
    if (defer.as_str(), timeout.as_str()) == ("0", "0") {
        return Check::ok("busy polling", format!("{found}: interrupts come at once"));
    }
    let (name, files) = (subject.name(), FILES.join(" "));
    let remedy = format!("`for f in {files}; do echo 0 > /sys/class/net/{name}/$f; done`, unless programs poll");
    Check::warn("busy polling", format!("{found}: without a socket that polls, frames only arrive later"), remedy)
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_by_key(|name| name.parse::<u32>().unwrap_or(u32::MAX));
    names
}

/// Parses a list such as `0-3,8`.
fn list(text: &str) -> BTreeSet<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

fn ranges(numbers: &BTreeSet<u32>) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let part = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_slot_follows_from_its_lanes() {
        assert_eq!(
            [(5.0, 8), (8.0, 8), (16.0, 16)].map(|(gts, lanes)| pcie_gbps(gts, lanes).round()),
            [32.0, 63.0, 252.0]
        );
    }

    #[test]
    fn cpu_lists_are_parsed_and_displayed() {
        for text in ["0-3,8", "5", "0,2,4-5", ""] {
            assert_eq!(ranges(&list(text)), text);
        }
    }
}
