//! The owner of an interface's XDP program.

use std::fmt;
use std::fs;
use std::io;

use super::{ProgramInfo, SteerProgram};

/// An XDP program attached to an interface, and the processes that hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttachedProgram {
    /// Program ID.
    pub program: u32,
    /// Program name; `None` if it has none, or without permission to read it.
    pub name: Option<String>,
    /// Visible processes that have it or its link open.
    pub holders: Vec<Holder>,
}

/// A process that has a program open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Process ID.
    pub pid: u32,
    /// Process name.
    pub name: String,
    /// ID of the program's link, if it has that open.
    pub link: Option<u32>,
}

impl AttachedProgram {
    /// Collects information about the program of this ID.
    #[must_use]
    pub fn from_id(program: u32) -> Self {
        let name = ProgramInfo::from_id(program).ok().map(|info| info.name).filter(|name| !name.is_empty());
        Self { program, name, holders: processes().filter_map(|(pid, name)| holder(program, pid, name)).collect() }
    }

    /// Returns how to detach it from the interface.
    pub fn remedy(&self, interface: &str) -> String {
        let Some(first) = self.holders.first() else {
            return format!(
                "see `bpftool prog show id {}`; `ip link set {interface} xdp off` detaches it, or `bpftool link detach id N` if \
                 `bpftool link show` lists its link N",
                self.program
            );
        };
        let detach = first.link.map_or(String::new(), |link| format!(", or `bpftool link detach id {link}`"));
        let beside = if self.name.as_deref() == Some(SteerProgram::NAME) {
            "; to run several, use an interface and an address for each: a virtual function of the NIC, or a macvlan on it in another \
             network namespace"
        } else {
            ""
        };
        format!("stop {}: `kill {}`{detach}{beside}", first.name, first.pid)
    }

    /// Returns the processes that hold it, as text.
    pub fn owners(&self) -> String {
        match self.holders.as_slice() {
            [] => "no visible process: it is pinned, attached without a link, or belongs to another user or container"
                .into(),
            some => some.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        }
    }
}

impl fmt::Display for AttachedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_ref().map_or("without a name".into(), |name| format!("`{name}`"));
        write!(f, "XDP program {} {name}, held by {}", self.program, self.owners())
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.pid)
    }
}

/// Returns IDs and names of the running processes.
pub fn processes() -> impl Iterator<Item = (u32, String)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(io::Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|pid| Some((pid, fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim().to_string())))
}

fn holder(program: u32, pid: u32, name: String) -> Option<Holder> {
    let files = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let links: Vec<Option<u32>> =
        texts.filter(|text| field(text, "prog_id") == Some(program)).map(|text| field(&text, "link_id")).collect();
    (!links.is_empty()).then(|| Holder { pid, name, link: links.into_iter().flatten().next() })
}

/// Returns a number from `/proc/PID/fdinfo/N`.
fn field(text: &str, name: &str) -> Option<u32> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_have_names_and_remedies() {
        let text = "pos:\t0\nlink_type:\txdp\nlink_id:\t7\nprog_tag:\tabc\nprog_id:\t31\nifindex:\t2\n";
        assert_eq!((field(text, "prog_id"), field(text, "link_id"), field(text, "prog")), (Some(31), Some(7), None));
        let holder = Holder { pid: 9, name: "suricata".into(), link: Some(7) };
        let held = AttachedProgram { program: 31, name: Some("filter".into()), holders: vec![holder] };
        assert_eq!(held.to_string(), "XDP program 31 `filter`, held by suricata (process 9)");
        assert_eq!(held.remedy("eth0"), "stop suricata: `kill 9`, or `bpftool link detach id 7`");
        let ours = AttachedProgram { name: Some(SteerProgram::NAME.into()), ..held };
        assert!(ours.remedy("eth0").ends_with("in another network namespace"));
        let alone = AttachedProgram { program: 31, name: None, holders: Vec::new() };
        assert!(alone.to_string().starts_with("XDP program 31 without a name, held by no visible process"), "{alone}");
        assert!(alone.remedy("eth0").contains("`bpftool prog show id 31`"));
        assert!(alone.remedy("eth0").contains("`ip link set eth0 xdp off`"));
    }
}
