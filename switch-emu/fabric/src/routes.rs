//! Equal-cost shortest paths.

use std::collections::{BTreeMap, HashMap};

use super::Network;
use crate::fabric::Node;

/// Next links on all shortest paths, from every switch to every switch that has hosts (a *leaf*).
///
/// Hosts of one leaf share their routes, so that the tables of 8,192 hosts fit into memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortestPaths {
    /// The leaves' switches, ascending.
    leaves: Vec<usize>,
    /// Per switch its number among the leaves.
    leaf_number: Vec<Option<u32>>,
    /// `[switch * leaves + leaf]` is the number of its list. Leaves side by side that a switch reaches by the same links share one: most
    /// do.
    list_of: Vec<u32>,
    lists: Vec<List>,
    /// Indices into [`Network::links`].
    members: Vec<u32>,
}

/// Links by which a switch is left toward some leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct List {
    /// Where they begin among the members, and how many they are.
    first: u32,
    count: u32,
    /// The slowest of them, of equals the one of the longest latency.
    slowest: Option<u32>,
}

impl ShortestPaths {
    /// Finds the routes of a checked `network` over the links that `usable` lets through.
    pub fn new(network: &Network, usable: impl Fn(usize) -> bool) -> Self {
        let switches = network.switches.len();
        let mut into: Vec<Vec<Hop>> = vec![Vec::new(); switches];
        let mut out: Vec<Vec<Hop>> = vec![Vec::new(); switches];
        for (index, link) in network.links.iter().enumerate().filter(|(index, _)| usable(*index)) {
            if let (Node::Switch(from), Node::Switch(to)) = (link.from, link.to) {
                into[to].push(Hop { link: index as u32, end: from as u32, cost: link.cost });
                out[from].push(Hop { link: index as u32, end: to as u32, cost: link.cost });
            }
        }
        let mut leaf_number = vec![None; switches];
        (0..network.hosts.len()).for_each(|host| leaf_number[network.leaf_of(host)] = Some(0));
        let leaves: Vec<usize> = (0..switches).filter(|switch| leaf_number[*switch].is_some()).collect();
        leaves.iter().enumerate().for_each(|(number, leaf)| leaf_number[*leaf] = Some(number as u32));
        let distances: Vec<_> = leaves.iter().map(|leaf| distances(*leaf, &into)).collect();
        let list_of = Vec::with_capacity(switches * leaves.len());
        let mut routes = Self { leaves, leaf_number, list_of, lists: Vec::new(), members: Vec::new() };
        for (switch, links) in out.iter().enumerate() {
            for distance in &distances {
                let nearer = |hop: &&Hop| {
                    let left = distance[hop.end as usize];
                    left != FAR && left + hop.cost == distance[switch]
                };
                routes.push(network, links.iter().filter(nearer).map(|hop| hop.link));
            }
        }
        routes
    }

    /// The switches that have hosts, ascending.
    pub fn leaves(&self) -> &[usize] {
        &self.leaves
    }

    /// The number among the leaves of `switch`; `None` where it has no hosts.
    pub fn leaf_number(&self, switch: usize) -> Option<usize> {
        self.leaf_number[switch].map(|number| number as usize)
    }

    /// The links by which `switch` is left toward the leaf with number `leaf`: indices into [`Network::links`]; none at
    /// that leaf itself and where no path is left.
    pub fn next(&self, switch: usize, leaf: usize) -> &[u32] {
        self.members(&self.list(switch, leaf))
    }

    /// The slowest of the links by which `switch` is left toward the leaf with number `leaf`, of equals one of the longest latency.
    pub fn slowest(&self, switch: usize, leaf: usize) -> Option<usize> {
        self.list(switch, leaf).slowest.map(|link| link as usize)
    }

    fn list(&self, switch: usize, leaf: usize) -> List {
        self.lists[self.list_of[switch * self.leaves.len() + leaf] as usize]
    }

    fn members(&self, list: &List) -> &[u32] {
        &self.members[list.first as usize..][..list.count as usize]
    }

    /// Adds the links of the next switch and leaf.
    fn push(&mut self, network: &Network, links: impl Iterator<Item = u32>) {
        let first = self.members.len();
        self.members.extend(links);
        if self.lists.last().is_some_and(|latest| self.members(latest) == &self.members[first..]) {
            self.members.truncate(first);
        } else {
            let slowest = |index: &&u32| {
                let link = &network.links[**index as usize];
                (u64::MAX - link.rate_bps, link.latency_ps)
            };
            let own = &self.members[first..];
            let slowest = own.iter().max_by_key(slowest).copied();
            self.lists.push(List { first: first as u32, count: own.len() as u32, slowest });
        }
        self.list_of.push(self.lists.len() as u32 - 1);
    }
}

const FAR: u32 = u32::MAX;

/// A link between switches: its number, the switch at the end that is asked about, its cost. Few bytes, as searches look at all of them once
/// for each leaf.
#[derive(Clone, Copy, Debug)]
struct Hop {
    link: u32,
    end: u32,
    cost: u32,
}

/// Costs of the cheapest paths from every switch to `leaf`; `into` has the links that lead to each switch.
fn distances(leaf: usize, into: &[Vec<Hop>]) -> Vec<u32> {
    let mut distance = vec![FAR; into.len()];
    // By cost the switches that have it, as far as is known: links have few different costs.
    let mut known = BTreeMap::from([(0, vec![leaf as u32])]);
    distance[leaf] = 0;
    while let Some((cost, switches)) = known.pop_first() {
        for switch in switches {
            if distance[switch as usize] < cost {
                continue;
            }
            for Hop { end, cost: more, .. } in &into[switch as usize] {
                let over = cost.saturating_add(*more);
                if over < distance[*end as usize] {
                    distance[*end as usize] = over;
                    known.entry(over).or_default().push(*end);
                }
            }
        }
    }
    distance
}

/// For every switch and host the links that lie on a shortest path from the one to the other, over the links that
/// `usable` lets through: `[switch][host]` to indices into [`Network::links`], empty where no path is left.
pub fn groups(network: &Network, usable: impl Fn(usize) -> bool) -> Vec<Vec<Vec<usize>>> {
    let routes = ShortestPaths::new(network, &usable);
    let group = |switch: usize, host: usize| -> Vec<usize> {
        let (leaf, last) = (network.leaf_of(host), network.downlink(host));
        match routes.leaf_number(leaf) {
            _ if !usable(last) => Vec::new(),
            _ if leaf == switch => vec![last],
            Some(leaf) => routes.next(switch, leaf).iter().map(|link| *link as usize).collect(),
            None => Vec::new(),
        }
    };
    let hosts = network.hosts.len();
    (0..network.switches.len()).map(|switch| (0..hosts).map(|host| group(switch, host)).collect()).collect()
}

/// The shortest paths between two switches that leaves are, without those over which no frame is faster than over another one: latency and
/// time for a byte are both no less. Each is a list of links; an even fabric has one.
pub fn fastest(network: &Network, routes: &ShortestPaths, from: usize, to: usize) -> Vec<Vec<usize>> {
    let Some(leaf) = routes.leaf_number(to) else { return Vec::new() };
    let mut known = HashMap::from([(to, vec![Way::default()])]);
    ways(network, routes, (from, leaf), &mut known);
    let found = known.remove(&from).unwrap_or_default();
    found.into_iter().map(|way| way.links.into_iter().rev().collect()).collect()
}

/// Links, the last one first, and what a frame takes over them.
#[derive(Clone, Default)]
struct Way {
    latency_ps: u64,
    ps_per_byte: f64,
    links: Vec<usize>,
}

/// Puts the fastest ways from a switch to a leaf into `known`, and those from all switches between.
fn ways(network: &Network, routes: &ShortestPaths, (from, leaf): (usize, usize), known: &mut HashMap<usize, Vec<Way>>) {
    if known.contains_key(&from) {
        return;
    }
    let mut own: Vec<Way> = Vec::new();
    for index in routes.next(from, leaf) {
        let index = *index as usize;
        let Node::Switch(next) = network.links[index].to else { continue };
        // Every link leads nearer, so that this ends.
        ways(network, routes, (next, leaf), known);
        for rest in known.get(&next).into_iter().flatten() {
            let latency_ps = rest.latency_ps + network.latency_ps(index);
            let ps_per_byte = rest.ps_per_byte + 8e12 / network.links[index].rate_bps as f64;
            if own.iter().any(|way| way.latency_ps <= latency_ps && way.ps_per_byte <= ps_per_byte) {
                continue;
            }
            own.retain(|way| way.latency_ps < latency_ps || way.ps_per_byte < ps_per_byte);
            let links = rest.links.iter().copied().chain([index]).collect();
            own.push(Way { latency_ps, ps_per_byte, links });
        }
    }
    known.insert(from, own);
}

/// The links of one shortest path from host `from` to host `to`, the host's own first; empty when `from == to`.
///
/// Of equal paths the one with the slowest, then the longest links is taken at each switch, so that base RTTs hold for
/// every path of an uneven fabric.
pub fn hops(network: &Network, routes: &ShortestPaths, from: usize, to: usize) -> Vec<usize> {
    if from == to {
        return Vec::new();
    }
    let mut path = vec![network.uplink(from)];
    let mut switch = network.leaf_of(from);
    let leaf = routes.leaf_number(network.leaf_of(to)).unwrap_or_default();
    // Every link leads one hop nearer.
    while let Some(link) = routes.slowest(switch, leaf) {
        path.push(link);
        match network.links[link].to {
            Node::Host(_) => break,
            Node::Switch(next) => switch = next,
        }
    }
    path.push(network.downlink(to));
    path
}
