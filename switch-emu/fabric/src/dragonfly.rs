//! Groups of routers, all joined with all.

use super::Network;
use crate::fabric::Node;

/// A dragonfly: groups of routers, every two routers of a group joined by a cable, every two groups by equally many.
///
/// Routes are the shortest paths (minimal routing): at most one cable in the first group, one between groups and one in
/// the last. Nothing detours over a third group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dragonfly {
    /// Number of groups, at least 2.
    pub groups: usize,
    /// Routers of a group, at least 1.
    pub routers_per_group: usize,
    /// Hosts on each router, at least 1.
    pub hosts_per_router: usize,
    /// Cables of each router to other groups; those of a group are a multiple of the other groups.
    pub global_cables: usize,
    /// Rate of a host's cable in bits a second.
    pub host_bps: u64,
    /// Rate of a cable within a group in bits a second.
    pub local_bps: u64,
    /// Rate of a cable between groups in bits a second.
    pub global_bps: u64,
    /// Propagation time of a host's cable in ps.
    pub host_latency_ps: u64,
    /// Propagation time of a cable within a group in ps.
    pub local_latency_ps: u64,
    /// Propagation time of a cable between groups in ps.
    pub global_latency_ps: u64,
    /// Time from ingress to egress queue of a router in ps.
    pub switch_latency_ps: u64,
}

/// A cable between groups counts as three within one: two of them never beat one with a cable at either end.
const GLOBAL_COST: u32 = 3;

impl Dragonfly {
    /// Whether a group's cables to other groups can be shared out equally.
    pub fn is_balanced(&self) -> bool {
        let cables = self.routers_per_group * self.global_cables;
        self.groups >= 2 && cables > 0 && cables.is_multiple_of(self.groups - 1)
    }

    /// Builds the network: hosts `h0..`, routers `g0r0..`.
    ///
    /// Port `p` of a group (router `p / global_cables`) leads to the group `p % (groups - 1) + 1` further on; the far end
    /// is the port that leads back in the same round.
    pub fn network(&self) -> Network {
        let mut network = Network::default();
        let mut routers = Vec::with_capacity(self.groups * self.routers_per_group);
        for group in 0..self.groups {
            for router in 0..self.routers_per_group {
                routers.push(network.add_switch(format!("g{group}r{router}"), self.switch_latency_ps));
            }
        }
        for router in &routers {
            for _ in 0..self.hosts_per_router {
                let host = network.add_host(format!("h{}", network.hosts.len()));
                network.add_cable(host, *router, self.host_bps, self.host_latency_ps);
            }
        }
        for group in routers.chunks(self.routers_per_group) {
            for (index, from) in group.iter().enumerate() {
                for to in &group[index + 1..] {
                    network.add_cable(*from, *to, self.local_bps, self.local_latency_ps);
                }
            }
        }
        for (from, to) in self.global_pairs(&routers) {
            network.add_cable(from, to, self.global_bps, self.global_latency_ps);
            network.links.iter_mut().rev().take(2).for_each(|link| link.cost = GLOBAL_COST);
        }
        network
    }

    fn global_pairs(&self, routers: &[Node]) -> Vec<(Node, Node)> {
        let others = self.groups - 1;
        let router = |group: usize, port: usize| routers[group * self.routers_per_group + port / self.global_cables];
        let mut pairs = Vec::new();
        for group in 0..self.groups {
            for port in 0..self.routers_per_group * self.global_cables {
                let (round, offset) = (port / others, port % others);
                let to = (group + offset + 1) % self.groups;
                let back = round * others + (others - 1 - offset);
                if group < to {
                    pairs.push((router(group, port), router(to, back)));
                }
            }
        }
        pairs
    }
}
