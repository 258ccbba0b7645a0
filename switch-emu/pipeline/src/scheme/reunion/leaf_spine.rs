//! A leaf-spine for tests: leaves below spines, a cable between each two.

use core::cell::{Cell, RefCell};
use spray_wire::switch_view::PacketFields;
use std::collections::HashSet;
use std::vec;
use std::vec::Vec;

use super::memory::{Memory, single};
use super::note::Note;
use super::path::{self, Course};
use super::{Here, Sent, Settings, poll};
use crate::flow_hash::Key;
use crate::frame::Frame;
use crate::routes::{Group, Routes, SwitchConfig};
use crate::scheme::conweave::{self, State};
use crate::scheme::{Arrival, Counted, Forwarding, Scheme, Size, Waiting, port_word, port_words, recall, two_leaves};
use crate::trail::Trail;
use crate::word::Word;

/// Frames say nothing of packets.
pub(super) const NONE: PacketFields = PacketFields { number: 0, stamp_ps: 0, hops: 0, is_ack: false };
pub(super) const INTERVAL_PS: u64 = 1_000_000_000;
pub(in crate::scheme) const SETTINGS: Settings =
    Settings { interval_ps: INTERVAL_PS, tolerance: 1, timeout_ps: 500_000_000, ride: false };

/// Between two leaves, there and back.
pub(in crate::scheme) const BASE_RTT_PS: u64 = 4_000_000;

/// Leaves come first, hosts leaf by leaf.
pub(in crate::scheme) struct LeafSpine {
    leaves: u32,
    spines: u32,
    hosts: u32,
    pub(in crate::scheme) switches: Vec<SwitchConfig>,
    words: Vec<Cell<u64>>,
    states: Vec<RefCell<State>>,
    pub(in crate::scheme) trail: Trail,
    /// Ports that no route takes.
    pub(super) down: HashSet<u32>,
    members: Vec<u32>,
}

impl LeafSpine {
    pub(in crate::scheme) fn new([leaves, spines, hosts]: [u32; 3], scheme: Scheme, settings: Settings) -> Self {
        let ports = 2 * leaves * spines + leaves * hosts;
        let size = Size { leaves, uplinks: spines };
        let mut words = vec![0; port_words(ports) as usize];
        for port in 0..ports {
            let (far_end, way) = match port {
                port if port < leaves * spines => (Some((leaves + port % spines) as u16), (port % spines + 1) as u8),
                port if port < 2 * leaves * spines => (Some((port % leaves) as u16), 0),
                _ => (None, 0),
            };
            words[port_words(port) as usize] = port_word(port % spines, far_end, way);
        }
        let first_host = words.len() as u32;
        words.extend((0..leaves * hosts).map(|host| u64::from(host / hosts)));
        let (mut switches, mut states) = (Vec::new(), Vec::new());
        for switch in 0..leaves + spines {
            let memory = words.len() as u32;
            words.resize(words.len() + scheme.words(&size) as usize, 0);
            let ways: Vec<u32> =
                if switch < leaves { (switch * spines..(switch + 1) * spines).collect() } else { vec![] };
            let first = first_words(scheme, &size, settings, &ways);
            first.for_each(|(place, word)| words[(memory + place) as usize] = word);
            states.push(RefCell::new(State::new(
                conweave::Settings::default(),
                ways,
                vec![BASE_RTT_PS; leaves as usize],
            )));
            let leaf = if switch < leaves { switch } else { u32::MAX };
            let config = SwitchConfig::new(switch, scheme);
            switches.push(SwitchConfig {
                memory,
                hosts: first_host,
                leaf,
                leaves,
                uplinks: spines,
                gap_ps: 1 << 20,
                ..config
            });
        }
        let words = words.into_iter().map(Cell::new).collect();
        let members = (0..ports).collect();
        Self { leaves, spines, hosts, switches, words, states, trail: Trail::default(), down: HashSet::new(), members }
    }

    /// Routes no longer take the link from a leaf to a spine.
    pub(in crate::scheme) fn fail(&mut self, leaf: u32, spine: u32) {
        self.down.insert(leaf * self.spines + spine);
    }

    pub(super) fn memory(&self, switch: u32) -> Memory<'_, Self> {
        let config = &self.switches[switch as usize];
        Memory::of(self, config).unwrap()
    }

    /// The frame of the trail at a switch, on its way to `host`.
    pub(super) fn here(&self, t_ps: u64, switch: u32, host: u32) -> Here<'_, Self> {
        Here::new(self, &self.switches[switch as usize], &Frame { time_ps: t_ps, switch, ..FRAME }, host).unwrap()
    }

    /// What a switch has done.
    pub(super) fn counts(&self, switch: u32) -> Counted {
        let switch = &self.switches[switch as usize];
        Counted::of([(switch, None)].into_iter(), &|word| self.words[word as usize].get())
    }

    /// The path that switch 0 finds in its second interval for this flow to host 12.
    pub(super) fn find(&self, flow: u32) -> Option<u32> {
        self.memory(0).word(single::INTERVAL).unwrap().set(2);
        self.trail.begin(0, false, &Key { addresses: 0, ports: flow, label: 0 }, &NONE);
        let mut frame = Frame { time_ps: 1, ..FRAME };
        path::find(self, &mut frame, &Course { t_ps: 1, from: 0, host: 12, target: 3 })
    }

    /// Sends a frame; returns the spine that it took and what it noted at the end. `kind`: data, or a reply.
    pub(super) fn send(&self, t_ps: u64, flow: u32, src: u32, dst: u32, kind: Kind) -> (Option<u32>, Note) {
        let key = Key { addresses: u64::from(src) << 32 | u64::from(dst), ports: flow, label: 0 };
        let leaf = src / self.hosts;
        self.trail.begin(leaf, kind == Kind::Reply, &key, &NONE);
        self.go(t_ps, crate::hash::mix(u64::from(flow)), leaf, dst, kind)
    }

    fn go(&self, t_ps: u64, flow: u64, leaf: u32, dst: u32, kind: Kind) -> (Option<u32>, Note) {
        let mut frame = Frame { flow, time_ps: t_ps, switch: leaf, control: kind == Kind::Reply, ..FRAME };
        let mut spine = None;
        loop {
            let port = recall(self, &mut frame, dst).unwrap();
            match self.far_end(port) {
                None => return (spine, Note::of(self.trail.note.load())),
                Some(next) => frame.switch = next,
            }
            spine = spine.or(frame.switch.checked_sub(self.leaves));
        }
    }

    /// The flow's name in tables.
    pub(super) fn name(flow: u32, src: u32, dst: u32) -> u64 {
        let trail: Trail = Trail::default();
        trail.begin(0, false, &Key { addresses: u64::from(src) << 32 | u64::from(dst), ports: flow, label: 0 }, &NONE);
        trail.flow()
    }

    /// A flow that takes this spine from this leaf by its hash.
    pub(super) fn flow_over(&self, spine: u32, src: u32, dst: u32) -> u32 {
        (1..).find(|flow| self.hashed(*flow, src, dst) == spine).unwrap()
    }

    pub(super) fn hashed(&self, flow: u32, src: u32, dst: u32) -> u32 {
        let arrival =
            Arrival::of(&Frame { flow: crate::hash::mix(u64::from(flow)), switch: src / self.hosts, ..FRAME }, dst);
        crate::scheme::choose_by(self, &self.switches[(src / self.hosts) as usize], &arrival, Scheme::Ecmp)
            .unwrap()
            .rank
    }

    /// Delivers the notifications of a switch as frames of their own; returns where they went.
    pub(super) fn notify(&self, t_ps: u64, switch: u32) -> Vec<u32> {
        let mut sent = Vec::new();
        while let Some(Sent { to, note, .. }) = poll(self, switch) {
            self.trail.begin(switch, true, &Key::default(), &NONE);
            self.trail.note.store(note);
            self.go(t_ps, 7, switch, to * self.hosts, Kind::Reply);
            sent.push(to);
        }
        sent
    }
}

/// What the memory of a switch with these ports up holds at first, by place.
pub(in crate::scheme) fn first_words(
    scheme: Scheme,
    size: &Size,
    settings: Settings,
    ways: &[u32],
) -> impl Iterator<Item = (u32, u64)> {
    let base = scheme.reunion_base();
    base.into_iter().flat_map(move |base| {
        let first = base.words(size);
        settings.words(ways).map(move |(place, word)| (first + place, word))
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Reply,
}

const FRAME: Frame = Frame { crc: 0, len: 1_000, ..two_leaves::FRAME };

impl Routes for LeafSpine {
    fn switch(&self, switch: u32) -> Option<&SwitchConfig> {
        self.switches.get(switch as usize)
    }
    fn group(&self, _: u64, switch: u32, host: u32) -> Option<Group> {
        let leaf = host / self.hosts;
        let links = self.leaves * self.spines;
        Some(match switch {
            switch if switch == leaf => Group::one(2 * links + host),
            switch if switch >= self.leaves => Group::one(links + (switch - self.leaves) * self.leaves + leaf),
            switch => {
                // A failed port is the last of its leaf in these tests.
                let count =
                    (0..self.spines).filter(|spine| !self.down.contains(&(switch * self.spines + spine))).count();
                Group { count: count as u16, ..Group::one(switch * self.spines) }
            }
        })
    }
    fn member(&self, index: u32) -> Option<u32> {
        self.members.get(index as usize).copied()
    }
}

impl Forwarding for LeafSpine {
    type Word = Cell<u64>;
    type Note = Cell<u64>;
    fn word(&self, index: u32) -> Option<&Cell<u64>> {
        self.words.get(index as usize)
    }
    fn trail(&self) -> Option<&Trail> {
        Some(&self.trail)
    }
    fn state(&self, switch: u32) -> Option<&RefCell<State>> {
        self.states.get(switch as usize)
    }
    fn waiting(&self, _: u32, _: u64) -> Option<Waiting> {
        Some(Waiting { bytes: 0, limit: 100_000, ps_per_unit: 1 << 20 })
    }
}

pub(super) fn fabric() -> LeafSpine {
    LeafSpine::new([4, 4, 4], Scheme::Reunion, SETTINGS)
}
