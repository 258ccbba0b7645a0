//! Other programs on the interface: which, and whose.

use std::fs;

use spray_nic::xdp::{AttachMode, ProgramInfo};

use super::check::Check;
use super::subject::{Subject, processes};

pub(super) fn check(subject: &Subject) -> Check {
    let Some(id) = subject.interface.xdp_program else {
        return Check::ok("XDP program", "none: the interface is free");
    };
    let name = ProgramInfo::of(id).map(|info| info.name).ok().filter(|name| !name.is_empty());
    let name = name.map_or("without a name".into(), |name| format!("`{name}`"));
    let mode = match subject.interface.xdp_mode {
        Some(AttachMode::Native) => "native",
        Some(AttachMode::Generic) => "generic",
        _ => "attached",
    };
    let holders = holders(id);
    let found = format!("{id} {name}, {mode}, held by {}", whose(&holders));
    Check::fail("XDP program", found, remedy(&holders, subject.name()))
}

/// A process that holds a program open, with the link of the program, if it holds that.
#[derive(Debug, PartialEq, Eq)]
struct Holder {
    pid: u32,
    name: String,
    link: Option<u32>,
}

fn whose(holders: &[Holder]) -> String {
    let text = |holder: &Holder| format!("{} (process {})", holder.name, holder.pid);
    match holders {
        [] => "no process that lives: it was pinned, or attached for good".into(),
        some => some.iter().map(text).collect::<Vec<_>>().join(", "),
    }
}

fn remedy(holders: &[Holder], interface: &str) -> String {
    let Some(first) = holders.first() else {
        return format!(
            "`ip link set {interface} xdp off`, or `bpftool link detach id N` if `bpftool link show` lists a link N of it"
        );
    };
    let detach = first.link.map_or(String::new(), |link| format!(", or `bpftool link detach id {link}`"));
    format!("stop {}: `kill {}`{detach}", first.name, first.pid)
}

/// The processes that hold a program, or a link of it, open.
fn holders(program: u32) -> Vec<Holder> {
    let of = |(pid, name)| {
        let files = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
        let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
        let links: Vec<Option<u32>> =
            texts.filter(|text| field(text, "prog_id") == Some(program)).map(|text| field(&text, "link_id")).collect();
        (!links.is_empty()).then(|| Holder { pid, name, link: links.into_iter().flatten().next() })
    };
    processes().filter_map(of).collect()
}

/// A number of `/proc/PID/fdinfo/N`.
fn field(text: &str, name: &str) -> Option<u32> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_told_with_what_stops_them() {
        let text = "pos:\t0\nlink_type:\txdp\nlink_id:\t7\nprog_tag:\tabc\nprog_id:\t31\nifindex:\t2\n";
        assert_eq!((field(text, "prog_id"), field(text, "link_id"), field(text, "prog")), (Some(31), Some(7), None));
        let holder = Holder { pid: 9, name: "suricata".into(), link: Some(7) };
        assert_eq!(whose(std::slice::from_ref(&holder)), "suricata (process 9)");
        assert_eq!(remedy(&[holder], "eth0"), "stop suricata: `kill 9`, or `bpftool link detach id 7`");
        assert!(whose(&[]).contains("pinned") && remedy(&[], "eth0").starts_with("`ip link set eth0 xdp off`"));
    }
}
