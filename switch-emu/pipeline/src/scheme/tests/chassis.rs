//! A chassis of switches in memory, with any cabling, for tests.

use core::cell::{Cell, RefCell};
use std::vec;
use std::vec::Vec;

use spray_wire::switch_view::{Address, PacketFields, address_words};

use crate::bins::Bin;
use crate::config::{Globals, HOST, NEVER, PortConfig, Thresholds};
use crate::counters::{ChassisCounters, PortCounters};
use crate::deployment::KERNEL;
use crate::flow_hash::Key;
use crate::frame::Frame;
use crate::process::find;
use crate::queue::PortQueues;
use crate::routes::{Group, Routes, SwitchConfig};
use crate::scheme::{
    Forwarding, Groups, InMemory, PortWord, QueueState, Scheme, Size, State, conweave, port_words, reunion,
    route_by_trail,
};
use crate::trail::Trail;
use crate::{Cause, Stages, Tables, View, cross};

pub(crate) const US: u64 = 1_000_000;
pub(crate) const LATENCY_PS: u64 = US;
const RATE_BPS: u64 = 100_000_000_000;
/// The round-trip time between two leaves.
pub(crate) const BASE_RTT_PS: u64 = 4 * US;
/// The last byte of the machine's address.
pub(crate) const MACHINE: u8 = 254;
pub(crate) const SETTINGS: reunion::Settings =
    reunion::Settings { interval_ps: 1_000 * US, tolerance: 1, timeout_ps: 500 * US, piggyback: false };

/// A data frame.
pub(crate) const FRAME: Frame = Frame {
    flow: 0,
    time_ps: 0,
    switch: 0,
    port: 0,
    checksum: 1,
    len: 0,
    trimmed_len: 0,
    ttl: 64,
    ecn: 0,
    control: false,
    trimmed: 0,
    emulated: true,
    detour: 0,
};

/// A chassis in which the first switches are the leaves, with some hosts each; host `n` has the
/// address 10.0.0.`n`. Cable `n` has the ports `2n`, at its first switch, and `2n + 1`; the ports
/// to hosts follow, then those from hosts. Links to a switch with a higher number lead up.
pub(crate) struct Chassis {
    pub(crate) switches: Vec<SwitchConfig>,
    pub(crate) trail: Trail,
    /// The bytes waiting at each port in addition to its queues, for schemes called without a
    /// [`View`].
    pub(crate) waiting: Vec<Cell<u64>>,
    /// The maximum number of ports of a group in the routes.
    pub(crate) most_ports: Cell<u16>,
    pub(crate) words: Vec<Cell<u64>>,
    pub(crate) globals: Globals,
    leaves: u32,
    pub(crate) ports: Vec<PortConfig>,
    groups: Vec<Group>,
    members: Vec<u32>,
    states: Vec<RefCell<State>>,
    queues: Vec<PortQueues<Cell<u64>>>,
    pub(crate) counters: Vec<PortCounters<Cell<u64>>>,
    pub(crate) chassis: ChassisCounters<Cell<u64>>,
}

/// The path of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FramePath {
    /// The first spine that it crossed, numbered from 0.
    pub(crate) spine: Option<u32>,
    /// Its final note.
    pub(crate) note: u64,
    /// Its final detour field.
    pub(crate) detour: u8,
}

impl Chassis {
    /// Creates leaves with `hosts` hosts each and a cable to every spine.
    pub(crate) fn leaf_spine([leaves, spines, hosts]: [u32; 3], scheme: Scheme, settings: reunion::Settings) -> Self {
        let cables: Vec<_> =
            (0..leaves).flat_map(|leaf| (leaves..leaves + spines).map(move |spine| (leaf, spine))).collect();
        Self::new(scheme, settings, [leaves + spines, leaves, hosts], &cables, Groups::default())
    }

    /// Creates two pods of two edge and two aggregation switches, each of the latter with two of
    /// four cores.
    pub(crate) fn three_tiers(scheme: Scheme) -> Self {
        let edges = (0..4).flat_map(|edge| [4, 5].map(|above| (edge, above + edge / 2 * 2)));
        let cores = (4..8).flat_map(|below| [8, 9].map(|core| (below, core + below % 2 * 2)));
        Self::new(scheme, SETTINGS, [12, 4, 1], &edges.chain(cores).collect::<Vec<_>>(), Groups::default())
    }

    /// Creates four groups of two switches. In group 0, switch 0 is connected to group 1, and
    /// switch 1 to the others.
    pub(crate) fn dragonfly(scheme: Scheme) -> Self {
        let cables = [(0, 1), (2, 3), (4, 5), (6, 7), (0, 2), (1, 4), (1, 6), (3, 5), (3, 7), (4, 6)];
        Self::new(scheme, SETTINGS, [8, 8, 1], &cables, Groups { count: 4, switches: 2, hosts: 1 })
    }

    fn new(
        scheme: Scheme,
        settings: reunion::Settings,
        [switches, leaves, hosts]: [u32; 3],
        cables: &[(u32, u32)],
        groups: Groups,
    ) -> Self {
        let hosts = leaves * hosts;
        let ends: Vec<_> = cables.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
        let thresholds = Thresholds { limit_bytes: 1 << 20, control_limit_bytes: 1 << 20, ..Thresholds::NONE };
        let nexts = ends
            .iter()
            .map(|end| end.1)
            .chain((0..hosts).map(|_| HOST))
            .chain((0..hosts).map(|host| host * leaves / hosts));
        let ports: Vec<_> = nexts.map(|next| PortConfig::new(RATE_BPS, LATENCY_PS, &thresholds, next, 1_500)).collect();
        let mut epoch_from_ps = [NEVER; 8];
        epoch_from_ps[0] = 0;
        let mut chassis = Self {
            globals: Globals { epoch_from_ps, switches, hosts, ..Globals::default() },
            queues: ports.iter().map(|_| PortQueues::default()).collect(),
            counters: ports.iter().map(|_| PortCounters::default()).collect(),
            words: vec![Cell::new(0); port_words(ports.len() as u32) as usize],
            waiting: vec![Cell::new(0); ports.len()],
            most_ports: Cell::new(u16::MAX),
            leaves,
            ports,
            states: Vec::new(),
            switches: Vec::new(),
            trail: Trail::default(),
            groups: Vec::new(),
            members: Vec::new(),
            chassis: ChassisCounters::default(),
        };
        chassis.words.extend((0..hosts).map(|host| Cell::new(u64::from(host * leaves / hosts))));
        (0..switches).for_each(|switch| chassis.add_switch(scheme, settings, switch, &ends, groups));
        (0..switches).for_each(|switch| (0..hosts).for_each(|host| chassis.add_group(switch, host, &ends)));
        chassis
    }

    pub(crate) fn leaf(&self, host: u32) -> u32 {
        host * self.leaves / self.globals.hosts
    }

    /// Adds a switch, its memory and its ports.
    fn add_switch(
        &mut self,
        scheme: Scheme,
        settings: reunion::Settings,
        switch: u32,
        ends: &[(u32, u32)],
        groups: Groups,
    ) {
        let leaves = self.leaves;
        let own = || (0..).zip(ends).filter(|(_, end)| end.0 == switch);
        let up: Vec<u32> = own().filter(|(_, end)| end.1 > switch).map(|(port, _)| port).collect();
        for (tag, (port, end)) in (0..).zip(own()) {
            let uplink = up.iter().position(|uplink| *uplink == port).map_or(0, |uplink| uplink as u8 + 1);
            self.words[port_words(port) as usize].set(PortWord { tag, far_end: end.1 + 1, uplink }.pack());
            self.words[port_words(port) as usize + 2].set(u64::from(port ^ 1) + 1);
        }
        let uplinks = ends.iter().filter(|end| end.0 == 0 && end.1 > 0).count() as u32;
        let (memory, size) = (self.words.len() as u32, Size { leaves, uplinks });
        self.words.resize((memory + scheme.words(&size)) as usize, Cell::new(0));
        if let Some(base) = scheme.reunion_base() {
            let first = memory + base.words(&size);
            settings.words(&up).for_each(|(at, word)| self.words[(first + at) as usize].set(word));
        }
        let rtts_ps = vec![BASE_RTT_PS; leaves as usize];
        self.states.push(RefCell::new(State::new(conweave::Settings::default(), up, rtts_ps)));
        self.switches.push(SwitchConfig {
            memory,
            uses_trail: u32::from(scheme.uses_trail()),
            hosts: port_words(self.ports.len() as u32),
            leaf: if switch < leaves { switch } else { u32::MAX },
            leaves,
            uplinks,
            gap_ps: 100 * US,
            groups,
            group: groups.of_switch(switch as usize),
            ..SwitchConfig::new(switch, scheme)
        });
    }

    /// Adds the ports of a switch that lead toward a host.
    fn add_group(&mut self, switch: u32, host: u32, ends: &[(u32, u32)]) {
        let mut links = vec![u8::MAX - 1; self.switches.len()];
        links[self.leaf(host) as usize] = 0;
        for _ in 0..links.len() {
            ends.iter().for_each(|&(from, to)| links[from as usize] = links[from as usize].min(links[to as usize] + 1));
        }
        let (first, hops) = (self.members.len() as u32, links[switch as usize]);
        let leads = |&(_, &(from, to)): &(u32, &(u32, u32))| from == switch && links[to as usize] < hops;
        self.members.extend((0..).zip(ends).filter(leads).map(|(port, _)| port));
        if switch == self.leaf(host) {
            self.members.push(ends.len() as u32 + host);
        }
        self.groups.push(Group { count: self.members.len() as u16 - first as u16, hops, ..Group::one(first) });
    }

    pub(crate) fn port_to(&self, host: u32) -> u32 {
        self.ports.len() as u32 - 2 * self.globals.hosts + host
    }

    /// Returns the port of the link from a host to its switch.
    pub(crate) fn port_from(&self, host: u32) -> u32 {
        self.ports.len() as u32 - self.globals.hosts + host
    }

    /// Passes a frame through a port, which fills its queue.
    pub(crate) fn fill(&self, port: u32, mut frame: Frame) {
        let (queues, counters) = (&self.queues[port as usize], &self.counters[port as usize]);
        self.ports[port as usize].transmit(&mut frame, u64::MAX, queues, counters, |_, _| {}).unwrap();
    }

    /// Starts the trail of a frame of this flow at a host, in the direction of the data or the
    /// reverse one.
    pub(crate) fn begin(&self, from: u32, flow: u64, is_reply: bool, fields: &PacketFields) {
        let addresses = if is_reply { flow.rotate_left(32) } else { flow };
        self.trail.begin(from, is_reply, &Key { addresses, ports: 0, label: 0 }, fields);
    }

    /// Returns the number of a port among the uplinks of its switch, starting at 1.
    pub(crate) fn uplink(&self, port: u32) -> u32 {
        View::of(self).unwrap().uplink(port).unwrap()
    }

    /// Returns the port from one switch to another.
    pub(crate) fn port_between(&self, from: u32, to: u32) -> u32 {
        let is = |port: &u32| self.ports[*port as usize].next == to && self.ports[(port ^ 1) as usize].next == from;
        (0..self.port_to(0)).find(is).unwrap()
    }

    /// Passes a frame as far as a host's link; returns it after each switch.
    pub(crate) fn walk(&self, mut frame: Frame, host: u32) -> Vec<Frame> {
        let mut behind = Vec::new();
        while frame.switch != HOST {
            self.step(&mut frame, host).unwrap();
            behind.push(frame);
        }
        behind
    }

    /// Passes a frame to a host through the schemes alone, without queues.
    pub(crate) fn cross(&self, mut frame: Frame, host: u32) -> Result<FramePath, Cause> {
        let mut spine = None;
        loop {
            let port = route_by_trail(self, &mut frame, host)?;
            match self.far_end(port) {
                None => return Ok(FramePath { spine, note: self.trail.note.get(), detour: frame.detour }),
                Some(next) => frame.switch = next,
            }
            spine = spine.or(frame.switch.checked_sub(self.leaves));
        }
    }

    /// Passes a frame through a switch.
    pub(crate) fn step(&self, frame: &mut Frame, host: u32) -> Result<(), Cause> {
        find(self, frame, host)?;
        cross(self, frame, host)
    }
}

impl Tables for Chassis {
    type Word = Cell<u64>;
    type Count = Cell<u64>;
    type TrailWord = Cell<u64>;
    fn globals(&self) -> Option<&Globals> {
        Some(&self.globals)
    }
    fn host(&self, address: &Address) -> Option<u32> {
        let is = |last| *address == address_words([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last]);
        if is(MACHINE) { Some(KERNEL) } else { (0..self.globals.hosts).find(|host| is(*host as u8)) }
    }
    fn switch(&self, switch: u32) -> Option<&SwitchConfig> {
        self.switches.get(switch as usize)
    }
    fn group(&self, index: u32) -> Option<&Group> {
        self.groups.get(index as usize)
    }
    fn member(&self, index: u32) -> Option<u32> {
        self.members.get(index as usize).copied()
    }
    fn port(&self, port: u32) -> Option<&PortConfig> {
        self.ports.get(port as usize)
    }
    fn word(&self, index: u32) -> Option<&Cell<u64>> {
        self.words.get(index as usize)
    }
    fn trail(&self) -> Option<&Trail> {
        Some(&self.trail)
    }
    fn store_trail(&self) -> Option<u32> {
        None
    }
    fn take_trail(&self, _: u32) -> bool {
        false
    }
    fn state(&self, switch: u32) -> Option<&RefCell<State>> {
        self.states.get(switch as usize)
    }
    fn queues(&self, port: u32) -> Option<&PortQueues<Cell<u64>>> {
        self.queues.get(port as usize)
    }
    fn counters(&self, port: u32) -> Option<&PortCounters<Cell<u64>>> {
        self.counters.get(port as usize)
    }
    fn chassis(&self) -> Option<&ChassisCounters<Cell<u64>>> {
        Some(&self.chassis)
    }
    fn bin(&self, _: u32) -> Option<&Bin<Cell<u64>>> {
        None
    }
}

impl Stages for Chassis {}

impl InMemory for Chassis {}

impl Routes for Chassis {
    fn switch(&self, switch: u32) -> Option<&SwitchConfig> {
        Tables::switch(self, switch)
    }
    fn group(&self, t_ps: u64, switch: u32, host: u32) -> Option<Group> {
        let group = View::of(self)?.group(t_ps, switch, host)?;
        Some(Group { count: group.count.min(self.most_ports.get()), ..group })
    }
    fn member(&self, index: u32) -> Option<u32> {
        Tables::member(self, index)
    }
}

impl Forwarding for Chassis {
    type Word = Cell<u64>;
    type TrailWord = Cell<u64>;
    fn word(&self, index: u32) -> Option<&Cell<u64>> {
        Tables::word(self, index)
    }
    fn trail(&self) -> Option<&Trail> {
        Tables::trail(self)
    }
    fn state(&self, switch: u32) -> Option<&RefCell<State>> {
        Tables::state(self, switch)
    }
    fn queue_state(&self, port: u32, t_ps: u64) -> Option<QueueState> {
        let waiting = View::of(self)?.queue_state(port, t_ps)?;
        Some(QueueState { bytes: waiting.bytes + self.waiting[port as usize].get(), ..waiting })
    }
}
