//! Equal-cost shortest paths.

use std::collections::BTreeMap;

use super::Network;
use crate::node::Node;

/// Next links on all shortest paths, from every switch to every switch that has hosts (a *leaf*).
///
/// Hosts of one leaf share their routes, so that the tables of 8,192 hosts fit into memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortestPaths {
    /// The leaves' switches, ascending.
    leaves: Vec<usize>,
    /// Per switch its number among the leaves.
    leaf_number: Vec<Option<u32>>,
    /// `[switch * leaves + leaf]` is the number of its list. Leaves that a switch reaches by the same links share one: most do.
    list_of: Vec<u32>,
    /// The first one has no links.
    lists: Vec<List>,
    /// Indices into [`Network::links`].
    members: Vec<u32>,
}

/// Links by which a switch is left toward some leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
        let costs = costs(&leaves, &into);
        let list_of = vec![0; switches * leaves.len()];
        let mut routes = Self { leaves, leaf_number, list_of, lists: vec![List::default()], members: Vec::new() };
        for (switch, links) in out.iter().enumerate() {
            for (cost, leaves) in &costs[switch] {
                routes.add(network, switch, leaves, &Alike::new(leaves, *cost, links, &costs));
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

    /// By switch the sum of `of_link` over the links between switches of [`hops`] from there to the switch `to`; 0 where there is no path.
    pub fn sums(&self, network: &Network, to: usize, of_link: impl Fn(usize) -> u64) -> Vec<u64> {
        let leaf = self.leaf_number(to).unwrap_or_default();
        let mut known: Vec<Option<u64>> = vec![None; network.switches.len()];
        let mut under_way = Vec::new();
        for from in self.leaves() {
            let (mut at, mut sum) = (*from, 0);
            // Every link leads one hop nearer.
            while let (None, Some(link)) = (known[at], self.slowest(at, leaf)) {
                under_way.push((at, link));
                let Node::Switch(next) = network.links[link].to else { break };
                at = next;
            }
            sum += known[at].unwrap_or(0);
            for (at, link) in under_way.drain(..).rev() {
                sum += of_link(link);
                known[at] = Some(sum);
            }
        }
        known.into_iter().map(Option::unwrap_or_default).collect()
    }

    fn list(&self, switch: usize, leaf: usize) -> List {
        self.lists[self.list_of[switch * self.leaves.len() + leaf] as usize]
    }

    fn members(&self, list: &List) -> &[u32] {
        &self.members[list.first as usize..][..list.count as usize]
    }

    /// The number of the list of links by which `switch` is left toward the leaf with number `leaf`, less than [`Self::lists`].
    pub(crate) fn list_number(&self, switch: usize, leaf: usize) -> usize {
        self.list_of[switch * self.leaves.len() + leaf] as usize
    }

    /// How many lists there are. No two switches share one, but that without links, number 0.
    pub(crate) fn lists(&self) -> usize {
        self.lists.len()
    }

    /// Adds the links by which `switch` is left toward some leaves.
    fn add(&mut self, network: &Network, switch: usize, leaves: &Set, alike: &Alike) {
        let slowest = |index: &&u32| {
            let link = &network.links[**index as usize];
            (u64::MAX - link.rate_bps, link.latency_ps)
        };
        let before = self.lists.len();
        for links in alike.groups.iter().map(|group| &group.links) {
            let (first, count) = (self.members.len() as u32, links.len() as u32);
            self.members.extend(links);
            self.lists.push(List { first, count, slowest: links.iter().max_by_key(slowest).copied() });
        }
        let row = &mut self.list_of[switch * self.leaves.len()..];
        for leaf in members(leaves) {
            let group = alike.of_leaf[leaf];
            let number = if alike.groups[group].links.is_empty() { 0 } else { before + group };
            row[leaf] = number as u32;
        }
    }
}

/// A link between switches: its number, the switch at the end that is asked about, its cost.
#[derive(Clone, Copy, Debug)]
struct Hop {
    link: u32,
    end: u32,
    cost: u32,
}

/// A set of leaves, by their numbers: a bit each.
type Set = Vec<u64>;

/// By cost, ascending, the leaves to which the cheapest paths from a switch have it.
type Costs = Vec<(u32, Set)>;

/// The costs from each switch; `into` has the links that lead to it. A search from all leaves at once, as links have few different costs.
fn costs(leaves: &[usize], into: &[Vec<Hop>]) -> Vec<Costs> {
    let words = leaves.len().div_ceil(64);
    let nothing = vec![Set::new(); into.len()];
    let (mut found, mut done): (Vec<Costs>, _) = (vec![Vec::new(); into.len()], vec![vec![0; words]; into.len()]);
    let mut begin = nothing.clone();
    for (number, leaf) in leaves.iter().enumerate() {
        begin[*leaf] = vec![0; words];
        begin[*leaf][number / 64] = 1 << (number % 64);
    }
    // By cost and switch the leaves to which some path has it.
    let mut known = BTreeMap::from([(0u32, begin)]);
    while let Some((cost, reached)) = known.pop_first() {
        for (switch, mut set) in reached.into_iter().enumerate() {
            set.iter_mut().zip(&done[switch]).for_each(|(word, done)| *word &= !done);
            if set.iter().all(|word| *word == 0) {
                continue;
            }
            unite(&mut done[switch], &set);
            for hop in &into[switch] {
                let beyond = known.entry(cost.saturating_add(hop.cost)).or_insert_with(|| nothing.clone());
                unite(&mut beyond[hop.end as usize], &set);
            }
            found[switch].push((cost, set));
        }
    }
    found
}

/// Adds `more` to a set, whose length is 0 while nothing has been added.
fn unite(set: &mut Set, more: &[u64]) {
    set.resize(more.len(), 0);
    set.iter_mut().zip(more).for_each(|(word, more)| *word |= more);
}

/// The leaves of a set, ascending.
fn members(set: &Set) -> impl Iterator<Item = usize> {
    let of_word = |(index, word): (usize, &u64)| {
        let rest = std::iter::successors(Some(*word), |left| Some(left & left.wrapping_sub(1)));
        rest.take_while(|left| *left != 0).map(move |left| 64 * index + left.trailing_zeros() as usize)
    };
    set.iter().enumerate().filter(|(_, word)| **word != 0).flat_map(of_word)
}

/// Which leaves a switch is left toward by the same links.
struct Alike {
    /// By leaf its group, where it has one.
    of_leaf: Vec<usize>,
    groups: Vec<Together>,
}

/// How many leaves the same links lead to, and these links, in order.
#[derive(Clone)]
struct Together {
    leaves: u32,
    links: Vec<u32>,
}

impl Alike {
    /// Of `leaves`, to all of which the cheapest paths from a switch with these `links` have the same cost.
    fn new(leaves: &Set, cost: u32, links: &[Hop], costs: &[Costs]) -> Self {
        let count = leaves.iter().map(|word| word.count_ones()).sum();
        let mut alike =
            Self { of_leaf: vec![0; 64 * leaves.len()], groups: vec![Together { leaves: count, links: Vec::new() }] };
        for hop in links {
            let Some(left) = cost.checked_sub(hop.cost) else { continue };
            let Some((_, nearer)) = costs[hop.end as usize].iter().find(|(cost, _)| *cost == left) else { continue };
            let led: Set = leaves.iter().zip(nearer).map(|(own, nearer)| own & nearer).collect();
            if led == *leaves {
                alike.groups.iter_mut().for_each(|group| group.links.push(hop.link));
            } else {
                alike.split(&led, hop.link);
            }
        }
        alike
    }

    /// Tells those leaves from the others toward which `link` leads.
    fn split(&mut self, led: &Set, link: u32) {
        let mut counts = vec![0; self.groups.len()];
        members(led).for_each(|leaf| counts[self.of_leaf[leaf]] += 1);
        // By group that of its leaves toward which the link leads.
        let mut next: Vec<usize> = (0..counts.len()).collect();
        for (group, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            if count < self.groups[group].leaves {
                self.groups[group].leaves -= count;
                next[group] = self.groups.len();
                self.groups.push(Together { leaves: count, ..self.groups[group].clone() });
            }
            self.groups[next[group]].links.push(link);
        }
        members(led).for_each(|leaf| self.of_leaf[leaf] = next[self.of_leaf[leaf]]);
    }
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

/// The links of one shortest path from host `from` to host `to`, the host's own first; none when `from == to`.
///
/// Of equal paths the one with the slowest, then the longest links is taken at each switch, so that base RTTs hold for
/// every path of an uneven fabric.
pub fn hops(network: &Network, routes: &ShortestPaths, from: usize, to: usize) -> impl Iterator<Item = usize> {
    let leaf = routes.leaf_number(network.leaf_of(to)).unwrap_or_default();
    // Every link leads one hop nearer.
    let next = move |link: &usize| match network.links[*link].to {
        Node::Host(_) => None,
        Node::Switch(switch) => routes.slowest(switch, leaf),
    };
    let between = std::iter::successors((from != to).then(|| network.uplink(from)), next);
    between.chain((from != to).then(|| network.downlink(to)))
}
