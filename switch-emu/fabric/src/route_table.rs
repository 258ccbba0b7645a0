//! Routes of a network in every epoch, indexed for look-ups per frame.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use spray_pipeline::config::NEVER;
use spray_pipeline::routes::{Group, Routes, SwitchConfig};
#[cfg(doc)]
use spray_pipeline::scheme::Forwarding;
use spray_pipeline::scheme::State;

use super::switching::{LeafPaths, Locations, Plan, Scheme};
use super::{LinkEvent, Network, ShortestPaths, epoch_starts, known_down, salt};

/// Groups by epoch, switch and leaf, as hosts of a leaf share their routes.
#[derive(Debug)]
pub struct RouteTable {
    switches: Vec<SwitchConfig>,
    /// Start of each epoch, ascending from 0.
    epochs: Vec<u64>,
    /// The current epoch and the start of the next one. Changed only while no thread reads them.
    epoch: AtomicUsize,
    next_epoch_ps: AtomicU64,
    leaves: usize,
    /// By host the number of its leaf.
    leaf_of: Vec<u32>,
    /// `[(epoch * switches + switch) * leaves + leaf]`.
    groups: Vec<Group>,
    /// Ports of the groups, then each host's downlink from `downlinks` on.
    members: Vec<u32>,
    downlinks: u32,
    /// Initial memory, indexed by [`Group::pointer`] and [`SwitchConfig::memory`].
    pub words: Vec<u64>,
    /// Initial state by switch, see [`Forwarding::state`]; empty if no scheme has any.
    pub states: Vec<Option<State>>,
}

/// Group of a leaf toward its own hosts: its only member is the host's downlink.
const HERE: Group = Group::one(u32::MAX);

impl RouteTable {
    /// Builds the table from the events that routing learns of and the switches' schemes, with
    /// salts from `seed`. `port_of` returns the port number of a link.
    pub fn new(network: &Network, events: &[LinkEvent], seed: u64, port_of: impl Fn(usize) -> u32) -> Self {
        let salts: Vec<u32> = (0..network.switches.len()).map(|switch| salt(seed, switch)).collect();
        let places = places(network, &port_of);
        let mut plan = Plan::new(seed, network.tiers(), &salts, &network.switching, network.groups, &places);
        let mut link_of = vec![0; network.links.len()];
        let of_switches = network.links.iter().enumerate().filter(|(_, link)| link.from.switch().is_some());
        of_switches.for_each(|(link, _)| link_of[port_of(link) as usize] = link);
        let port = |port: u32| {
            let link = &network.links[link_of[port as usize]];
            (link.to, link.rate_bps)
        };
        let epochs = epoch_starts(events);
        let (mut groups, mut leaves, mut leaf_of) = (Vec::new(), 0, Vec::new());
        for from_ps in &epochs {
            let paths = ShortestPaths::new(network, |link| !known_down(events, link, *from_ps));
            let number = |host| paths.leaf_number(network.leaf_of(host)).unwrap_or_default() as u32;
            (leaf_of, leaves) = ((0..network.hosts.len()).map(number).collect(), paths.leaves().len());
            plan.begin_epoch();
            groups.reserve(salts.len() * leaves);
            let mut of_list = vec![None; paths.lists()];
            for switch in 0..salts.len() {
                let by_ports = plan.goes_by_ports(switch);
                for (number, leaf) in paths.leaves().iter().enumerate() {
                    let next =
                        |switch: usize| paths.next(switch, number).iter().map(|link| port_of(*link as usize)).collect();
                    let to_leaf = LeafPaths { next: &next, port: &port };
                    let known = &mut of_list[paths.list_number(switch, number)];
                    groups.push(match *known {
                        _ if *leaf == switch => HERE,
                        Some(group) if by_ports => group,
                        _ => *known.insert(plan.group(switch, *leaf, &to_leaf)),
                    });
                }
            }
        }
        let Plan { switches, mut members, words, states, .. } = plan;
        let downlinks = members.len() as u32;
        members.extend((0..network.hosts.len()).map(|host| port_of(network.downlink(host))));
        let (epoch, next_epoch_ps) = (AtomicUsize::new(0), AtomicU64::new(0));
        let table =
            Self { switches, epochs, epoch, next_epoch_ps, leaves, leaf_of, groups, members, downlinks, words, states };
        table.advance(0);
        table
    }

    /// Makes the epoch in force at `now_ps` current, for fast look-ups.
    pub fn advance(&self, now_ps: u64) {
        let epoch = self.epoch_at(now_ps);
        self.epoch.store(epoch, Relaxed);
        self.next_epoch_ps.store(self.epochs.get(epoch + 1).copied().unwrap_or(NEVER), Relaxed);
    }

    /// Returns the start of the epoch after the current one; [`NEVER`] after the last.
    pub fn next_epoch_ps(&self) -> u64 {
        self.next_epoch_ps.load(Relaxed)
    }

    /// Returns the start of each routing epoch, ascending from 0.
    pub fn epoch_starts(&self) -> &[u64] {
        &self.epochs
    }

    /// Returns the equal-cost ports of `switch` toward `host` at `t_ps`, repeated by weight.
    pub fn ports(&self, t_ps: u64, switch: u32, host: u32) -> &[u32] {
        let Group { first, count, .. } = self.group(t_ps, switch, host).unwrap_or_default();
        &self.members[first as usize..][..count as usize]
    }

    /// Returns these ports as often as they count as distinct paths: once in a resilient group.
    pub fn path_ports(&self, t_ps: u64, switch: u32, host: u32) -> Vec<u32> {
        let mut ports = self.ports(t_ps, switch, host).to_vec();
        let config = self.switches.get(switch as usize).copied().unwrap_or_default();
        if Scheme::from_number(config.scheme).layout().resilient {
            ports.sort_unstable();
            ports.dedup();
        }
        ports
    }

    #[cold]
    fn epoch_at(&self, t_ps: u64) -> usize {
        self.epochs.iter().rposition(|from_ps| *from_ps <= t_ps).unwrap_or(0)
    }
}

fn places(network: &Network, port_of: impl Fn(usize) -> u32) -> Locations {
    let (mut ports, mut latencies_ps) = (Vec::new(), Vec::new());
    for (link, entry) in network.links.iter().enumerate() {
        if let Some(switch) = entry.from.switch() {
            let port = port_of(link) as usize;
            ports.resize(ports.len().max(port + 1), None);
            ports[port] = Some((switch, entry.to));
            latencies_ps.resize(ports.len(), 0);
            latencies_ps[port] = network.latency_ps(link);
        }
    }
    Locations::new((0..network.hosts.len()).map(|host| network.leaf_of(host)).collect(), ports, latencies_ps)
}

impl Routes for RouteTable {
    fn switch(&self, switch: u32) -> Option<&SwitchConfig> {
        self.switches.get(switch as usize)
    }

    fn group(&self, t_ps: u64, switch: u32, host: u32) -> Option<Group> {
        let epoch = if t_ps < self.next_epoch_ps() { self.epoch.load(Relaxed) } else { self.epoch_at(t_ps) };
        let leaf = *self.leaf_of.get(host as usize)? as usize;
        let group = *self.groups.get((epoch * self.switches.len() + switch as usize) * self.leaves + leaf)?;
        Some(if group == HERE { Group::one(self.downlinks + host) } else { group })
    }

    fn member(&self, index: u32) -> Option<u32> {
        self.members.get(index as usize).copied()
    }
}
