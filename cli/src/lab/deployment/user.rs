//! Who works at this machine, and which programs are in a host.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{Uid, User};

use super::ask::{HostRow, Program};

/// The name of the user who has logged in, also where `sudo` has made them root since.
pub fn own() -> String {
    let number = |text: String| text.trim().parse::<u32>().ok();
    // The kernel's word for nobody, as in a container or a service.
    let login = fs::read_to_string("/proc/self/loginuid").ok().and_then(number).filter(|uid| *uid != u32::MAX);
    let uid = login.or_else(|| std::env::var("SUDO_UID").ok().and_then(number));
    let uid = uid.map_or_else(Uid::current, Uid::from_raw);
    User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
}

/// The programs in those of `hosts` that were made for them, but for this process: by their network namespaces.
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
