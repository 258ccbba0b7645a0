//! The programs that run in hosts.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::protocol::{HostRow, Program};

/// Returns the other programs in those of `hosts` with a namespace that the fabric created.
pub fn programs(hosts: &[HostRow]) -> Vec<Program> {
    let place = |path: &Path| fs::metadata(path).ok().map(|data| (data.dev(), data.ino()));
    let made = hosts.iter().filter(|host| !host.namespace.starts_with('/'));
    let namespaces: Vec<_> =
        made.map(|host| (place(&Path::new("/run/netns").join(&host.namespace)), &host.host)).collect();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse::<u32>().ok()?;
        let own = place(&entry.path().join("ns/net"));
        let (_, host) = namespaces.iter().find(|(namespace, _)| own.is_some() && *namespace == own)?;
        let command = fs::read(entry.path().join("cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).trim_end_matches('\0').replace('\0', " ");
        Some(Program { pid, host: (*host).clone(), command })
    });
    let mut processes: Vec<Program> = processes.filter(|program| program.pid != std::process::id()).collect();
    processes.sort_by_key(|program| program.pid);
    processes
}
