//! What processes hold, and what is left of it.

use std::collections::BTreeSet;
use std::fs;
use std::process::id;

use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};

use crate::namespaces_of;
use crate::running::wait_until;

/// BPF objects that processes of a run held, by their numbers, which the kernel does not give again soon; and what there was before.
pub struct Remains {
    programs: BTreeSet<u32>,
    maps: BTreeSet<u32>,
    links: BTreeSet<u32>,
    interfaces: BTreeSet<String>,
}

impl Remains {
    /// Notes what there is before a run.
    pub fn before() -> Self {
        let (programs, maps, links) = Default::default();
        Self { programs, maps, links, interfaces: interfaces() }
    }

    /// Notes what a process holds now.
    pub fn note(&mut self, process: u32) {
        let entries = fs::read_dir(format!("/proc/{process}/fdinfo")).into_iter().flatten().flatten();
        // A descriptor may be closed in the meantime, and a process be over.
        for text in entries.filter_map(|entry| fs::read_to_string(entry.path()).ok()) {
            for line in text.lines() {
                let Some((name, number)) = line.split_once(":\t") else { continue };
                let Ok(number) = number.trim().parse() else { continue };
                match name {
                    "prog_id" => self.programs.insert(number),
                    "map_id" => self.maps.insert(number),
                    "link_id" => self.links.insert(number),
                    _ => false,
                };
            }
        }
    }

    /// Once everything is over: none of it is left, nor a namespace of this process, nor a new interface of the machine.
    pub fn assert_gone(&self) {
        assert!(!self.programs.is_empty() && !self.maps.is_empty() && !self.links.is_empty(), "nothing was noted");
        wait_until("the programs to go", || !ProgInfoIter::default().any(|it| self.programs.contains(&it.id)));
        wait_until("the maps to go", || !MapInfoIter::default().any(|it| self.maps.contains(&it.id)));
        wait_until("the links to go", || !LinkInfoIter::default().any(|it| self.links.contains(&it.id)));
        assert_eq!(namespaces_of(id()), [""; 0]);
        // Others may have made some for a moment.
        wait_until("the new interfaces to go", || interfaces().is_subset(&self.interfaces));
    }

    /// How many programs, maps and links were held in all.
    pub fn counts(&self) -> [usize; 3] {
        [self.programs.len(), self.maps.len(), self.links.len()]
    }
}

fn interfaces() -> BTreeSet<String> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
