//! Dragonfly topologies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::units::{Gbps, Micros};

use super::limits::Size;
use super::{Cables, Groups, Network};
use crate::node::Node;

/// A dragonfly: groups of routers; a cable joins every two routers of a group, and the same number
/// of cables every two groups.
///
/// Routes are minimal: at most one cable in the first group, one between groups and one in the
/// last. With `valiant`, `ugal` or Flowcut, switches detour over a third group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dragonfly {
    /// Number of groups.
    #[schemars(range(min = 2, max = 1_024))]
    pub groups: usize,
    /// Routers of a group, `g0r0` and on; every two of them have a cable.
    #[schemars(range(min = 1, max = 128))]
    pub routers_per_group: usize,
    /// Hosts on each router, `h0` and on.
    #[schemars(range(min = 1, max = 128))]
    pub hosts_per_router: usize,
    /// Cables of a router to other groups; per group a multiple of the number of other groups.
    #[schemars(range(min = 1, max = 128))]
    pub global_cables: usize,
    /// Rate of the cables within a group. By default `host_gbps`.
    #[serde(default)]
    #[schemars(range(min = 0.01, max = 100_000))]
    pub local_gbps: Option<Gbps>,
    /// Rate of the cables between groups. By default `host_gbps`.
    #[serde(default)]
    #[schemars(range(min = 0.01, max = 100_000))]
    pub global_gbps: Option<Gbps>,
    /// Propagation time of the cables between groups. By default `latency_us`.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub global_latency_us: Option<Micros>,
    /// Cables.
    #[serde(flatten)]
    pub cables: Cables,
}

/// Cost of a cable between groups: two of them never beat one with a local cable at either end.
const GLOBAL_COST: u32 = 3;

impl Dragonfly {
    /// Returns the counts of the network.
    pub fn size(&self) -> Size {
        let &Self { groups, routers_per_group, hosts_per_router, global_cables, .. } = self;
        let routers = groups * routers_per_group;
        let hosts = routers * hosts_per_router;
        let local = groups * (routers_per_group * (routers_per_group - 1) / 2);
        Size { hosts, switches: routers, leaves: routers, cables: hosts + local + routers * global_cables / 2 }
    }

    /// Builds the network: hosts `h0..`, routers `g0r0..`.
    ///
    /// Port `p` of a group (router `p / global_cables`) leads to the group `p % (groups - 1) + 1`
    /// further on; the far end is the port that leads back in the same round.
    pub fn network(&self) -> Network {
        let [count, switches, hosts] =
            [self.groups, self.routers_per_group, self.hosts_per_router].map(|number| number as u16);
        let mut network = Network::default();
        network.groups = Groups { count, switches, hosts };
        let mut routers = Vec::with_capacity(self.groups * self.routers_per_group);
        for group in 0..self.groups {
            for router in 0..self.routers_per_group {
                routers.push(self.cables.add_switch(&mut network, format!("g{group}r{router}")));
            }
        }
        routers.iter().for_each(|router| self.cables.add_hosts(&mut network, self.hosts_per_router, *router));
        let (local_bps, global_bps) = (self.cables.bps(self.local_gbps), self.cables.bps(self.global_gbps));
        let local_latency_ps = self.cables.latency_us.ps();
        let global_latency_ps = self.global_latency_us.map_or(local_latency_ps, Micros::ps);
        for group in routers.chunks(self.routers_per_group) {
            for (index, from) in group.iter().enumerate() {
                for to in &group[index + 1..] {
                    network.add_cable(*from, *to, local_bps, local_latency_ps);
                }
            }
        }
        for (from, to) in self.global_pairs(&routers) {
            network.add_cable(from, to, global_bps, global_latency_ps);
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
