//! What processes hold, and what is left of it.

use std::collections::BTreeSet;
use std::fs;

use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};

use crate::running::wait_until;

/// BPF objects that processes of a run held, by their numbers, which the kernel does not give again soon; and what there was before.
pub struct Remains {
    programs: BTreeSet<u32>,
    maps: BTreeSet<u32>,
    links: BTreeSet<u32>,
    /// What this process holds: a child may be seen before it has let go of that.
    own: BTreeSet<(String, u32)>,
    interfaces: BTreeSet<String>,
}

impl Remains {
    /// Notes what there is before a run.
    pub fn before() -> Self {
        let (programs, maps, links) = Default::default();
        let own = held(std::process::id()).into_iter().collect();
        Self { programs, maps, links, own, interfaces: interfaces() }
    }

    /// Notes what a process holds now.
    pub fn note(&mut self, process: u32) {
        for held in held(process).into_iter().filter(|held| !self.own.contains(held)) {
            match &*held.0 {
                "prog_id" => self.programs.insert(held.1),
                "map_id" => self.maps.insert(held.1),
                _ => self.links.insert(held.1),
            };
        }
    }

    /// Once everything is over: none of it is left, nor a new interface of the machine.
    pub fn assert_gone(&self) {
        wait_until("the programs to go", || !ProgInfoIter::default().any(|it| self.programs.contains(&it.id)));
        wait_until("the maps to go", || !MapInfoIter::default().any(|it| self.maps.contains(&it.id)));
        wait_until("the links to go", || !LinkInfoIter::default().any(|it| self.links.contains(&it.id)));
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

/// The BPF objects that a process holds, each by what its number is called.
fn held(process: u32) -> Vec<(String, u32)> {
    let entries = fs::read_dir(format!("/proc/{process}/fdinfo")).into_iter().flatten().flatten();
    // A descriptor may be closed in the meantime, and a process be over.
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let held = |line: &str| {
        let (name, number) = line.split_once(":\t")?;
        let is_one = ["prog_id", "map_id", "link_id"].contains(&name);
        is_one.then_some((name.into(), number.trim().parse().ok()?))
    };
    texts.flat_map(|text| text.lines().filter_map(held).collect::<Vec<_>>()).collect()
}
