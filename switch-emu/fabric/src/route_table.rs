//! The routes of a network in every epoch, laid out for whoever asks per frame: the simulator's switches, and the search for
//! the paths of a connection.

use spray_pipeline::config::NEVER;
use spray_pipeline::routes::{Group, Routes, SwitchConfig};

use super::{LinkEvent, Network, ShortestPaths, epoch_starts, known_down, salt};

/// Groups by epoch, switch and leaf: hosts of one leaf share their routes, which keeps the table small.
#[derive(Debug)]
pub struct RouteTable {
    salts: Vec<u64>,
    /// When each epoch begins, ascending from 0.
    epochs: Vec<u64>,
    /// The epoch last entered, and when the next one begins.
    epoch: usize,
    next_epoch_ps: u64,
    leaves: usize,
    /// Per host the number of its leaf.
    leaf_of: Vec<u32>,
    /// `[(epoch * switches + switch) * leaves + leaf]`.
    groups: Vec<Group>,
    /// Ports: first the one that leads to each host, then those of the groups.
    members: Vec<u32>,
}

/// The group of a leaf toward its own hosts: its only member is the port that leads to the host.
const HERE: Group = Group { first: u32::MAX, count: 1 };

impl RouteTable {
    /// Builds the table from what routing learns of `events` and from the hash salts of a run with root `seed`. `port_of` gives
    /// the number that a link of the network has as a port.
    pub fn new(network: &Network, events: &[LinkEvent], seed: u64, port_of: impl Fn(usize) -> u32) -> Self {
        let hosts = 0..network.hosts.len();
        let mut table = Self {
            salts: (0..network.switches.len()).map(|switch| SwitchConfig::new(salt(seed, switch)).salt).collect(),
            epochs: epoch_starts(events),
            epoch: 0,
            next_epoch_ps: 0,
            leaves: 0,
            leaf_of: Vec::new(),
            groups: Vec::new(),
            members: hosts.clone().map(|host| port_of(network.downlink(host))).collect(),
        };
        for epoch in 0..table.epochs.len() {
            let from_ps = table.epochs[epoch];
            let paths = ShortestPaths::new(network, |link| !known_down(events, link, from_ps));
            let leaf = |host| paths.leaf_number(network.leaf_of(host)).unwrap_or_default() as u32;
            table.leaf_of = hosts.clone().map(leaf).collect();
            table.add_epoch(&paths, &port_of);
        }
        table.advance(0);
        table
    }

    fn add_epoch(&mut self, paths: &ShortestPaths, port_of: impl Fn(usize) -> u32) {
        self.leaves = paths.leaves().len();
        self.groups.reserve(self.salts.len() * self.leaves);
        for switch in 0..self.salts.len() {
            for leaf in 0..self.leaves {
                let group = if paths.leaves()[leaf] == switch {
                    HERE
                } else {
                    self.intern(paths.next(switch, leaf).iter().map(|link| port_of(*link as usize)))
                };
                self.groups.push(group);
            }
        }
    }

    /// The group of these ports. The previous group is used again if it has the same ports: most groups of a switch are alike.
    fn intern(&mut self, ports: impl ExactSizeIterator<Item = u32> + Clone) -> Group {
        let count = ports.len();
        if let Some(before) = self.groups.last().filter(|before| **before != HERE && before.count as usize == count)
            && ports.clone().eq(self.members[before.first as usize..][..count].iter().copied())
        {
            return *before;
        }
        let first = self.members.len() as u32;
        self.members.extend(ports);
        Group { first, count: count as u32 }
    }

    /// Enters the epoch in force at `now_ps`, which makes asking for later times of that epoch fast.
    pub fn advance(&mut self, now_ps: u64) {
        self.epoch = self.epoch_at(now_ps);
        self.next_epoch_ps = self.epochs.get(self.epoch + 1).copied().unwrap_or(NEVER);
    }

    /// When the epoch after the one entered begins; [`NEVER`] after the last.
    pub fn next_epoch_ps(&self) -> u64 {
        self.next_epoch_ps
    }

    /// When each epoch of routing begins, ascending from 0.
    pub fn epoch_starts(&self) -> &[u64] {
        &self.epochs
    }

    /// The equal-cost ports of `switch` toward `host` at `t_ps`.
    pub fn ports(&self, t_ps: u64, switch: u32, host: u32) -> &[u32] {
        let Group { first, count } = self.group(t_ps, switch, host).unwrap_or_default();
        &self.members[first as usize..][..count as usize]
    }

    #[cold]
    fn epoch_at(&self, t_ps: u64) -> usize {
        self.epochs.iter().rposition(|from_ps| *from_ps <= t_ps).unwrap_or(0)
    }
}

impl Routes for RouteTable {
    #[inline]
    fn salt(&self, switch: u32) -> Option<u64> {
        self.salts.get(switch as usize).copied()
    }

    #[inline]
    fn group(&self, t_ps: u64, switch: u32, host: u32) -> Option<Group> {
        let epoch = if t_ps < self.next_epoch_ps { self.epoch } else { self.epoch_at(t_ps) };
        let leaf = *self.leaf_of.get(host as usize)? as usize;
        let group = *self.groups.get((epoch * self.salts.len() + switch as usize) * self.leaves + leaf)?;
        Some(Group { first: if group == HERE { host } else { group.first }, count: group.count })
    }

    #[inline]
    fn member(&self, index: u32) -> Option<u32> {
        self.members.get(index as usize).copied()
    }
}
