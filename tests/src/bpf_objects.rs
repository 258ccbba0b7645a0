//! BPF objects of processes, and checks that they are released.

use std::collections::BTreeSet;
use std::fs;

use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};

use crate::running::wait_until;

/// The BPF objects held by processes of a run, by numbers, which the kernel does not reuse soon;
/// and the state before the run.
pub struct BpfObjects {
    programs: BTreeSet<u32>,
    maps: BTreeSet<u32>,
    links: BTreeSet<u32>,
    /// The objects of this process, which a child holds too until it calls exec.
    own: BTreeSet<(String, u32)>,
    interfaces: BTreeSet<String>,
}

impl BpfObjects {
    /// Records the state before a run.
    pub fn before() -> Self {
        let (programs, maps, links) = Default::default();
        let own = objects_of(std::process::id()).into_iter().collect();
        Self { programs, maps, links, own, interfaces: interfaces() }
    }

    /// Records the objects that a process holds now.
    pub fn note(&mut self, process: u32) {
        for held in objects_of(process).into_iter().filter(|held| !self.own.contains(held)) {
            match &*held.0 {
                "prog_id" => self.programs.insert(held.1),
                "map_id" => self.maps.insert(held.1),
                _ => self.links.insert(held.1),
            };
        }
    }

    /// Checks, after the run, that none of the objects is left, nor a new interface of the machine.
    pub fn assert_gone(&self) {
        wait_until("the programs to go", || !ProgInfoIter::default().any(|it| self.programs.contains(&it.id)));
        wait_until("the maps to go", || !MapInfoIter::default().any(|it| self.maps.contains(&it.id)));
        wait_until("the links to go", || !LinkInfoIter::default().any(|it| self.links.contains(&it.id)));
        // Other tests may have created some temporarily.
        wait_until("the new interfaces to go", || interfaces().is_subset(&self.interfaces));
    }

    /// Returns the total numbers of programs, maps and links that were held.
    pub fn counts(&self) -> [usize; 3] {
        [self.programs.len(), self.maps.len(), self.links.len()]
    }
}

fn interfaces() -> BTreeSet<String> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Returns the BPF objects that a process holds, each with the name of its number.
fn objects_of(process: u32) -> Vec<(String, u32)> {
    let entries = fs::read_dir(format!("/proc/{process}/fdinfo")).into_iter().flatten().flatten();
    // A descriptor may be closed, or the process may end, in between.
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let held = |line: &str| {
        let (name, number) = line.split_once(":\t")?;
        let is_one = ["prog_id", "map_id", "link_id"].contains(&name);
        is_one.then_some((name.into(), number.trim().parse().ok()?))
    };
    texts.flat_map(|text| text.lines().filter_map(held).collect::<Vec<_>>()).collect()
}
