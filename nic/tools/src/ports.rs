//! Conflicts between our UDP ports and the kernel's ephemeral ports.

use std::fs;
use std::ops::RangeInclusive;

use spray_wire::Ports;

const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const RESERVED: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";

/// Describes a conflict with the ephemeral port range of this network namespace, and the remedy.
pub fn clash(ports: Ports) -> Option<[String; 2]> {
    let [range, reserved] = [RANGE, RESERVED].map(|path| fs::read_to_string(path).unwrap_or_default());
    let range = ephemeral(&range)?;
    let (first, last) = (ports.first(), ports.first() + Ports::COUNT - 1);
    free(first..=last, &range, &reserved)?;
    let (start, end) = range.into_inner();
    Some([
        format!("UDP ports {first} to {last} overlap the kernel's range of ephemeral ports, {start} to {end}"),
        format!("add {first}-{last} to `sysctl net.ipv4.ip_local_reserved_ports`, or use another --port on all hosts"),
    ])
}

fn ephemeral(range: &str) -> Option<RangeInclusive<u16>> {
    let mut ends = range.split_whitespace().map(str::parse);
    Some(ends.next()?.ok()?..=ends.next()?.ok()?)
}

/// Returns the first port in `range` that is not in the list `reserved`, as in `8080,9000-9100`.
fn free(mut ports: RangeInclusive<u16>, range: &RangeInclusive<u16>, reserved: &str) -> Option<u16> {
    let reserved = reserved.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    let reserved: Vec<RangeInclusive<u16>> = reserved.collect();
    ports.find(|port| range.contains(port) && !reserved.iter().any(|part| part.contains(port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreserved_ephemeral_ports_conflict() {
        let usual = ephemeral("32768\t60999\n").unwrap();
        assert_eq!(free(61_440..=61_503, &usual, "\n"), None);
        assert_eq!(free(50_048..=50_111, &usual, "8080,9000-9100\n"), Some(50_048));
        assert_eq!(free(50_048..=50_111, &usual, "8080,50000-50110\n"), Some(50_111));
        assert_eq!(free(50_048..=50_111, &usual, "50000-50200"), None);
        assert_eq!(free(61_440..=61_503, &ephemeral("1024 65535").unwrap(), ""), Some(61_440));
        assert_eq!(ephemeral(""), None);
    }
}
