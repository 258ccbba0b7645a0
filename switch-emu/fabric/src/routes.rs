//! Equal-cost shortest paths.

use std::collections::BTreeMap;

use super::Network;

/// Next links on all shortest paths, from every switch to every switch with hosts (*leaf*).
///
/// Hosts of a leaf share their routes, so that the tables of 8,192 hosts fit into memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortestPaths {
    /// Ascending.
    leaves: Vec<usize>,
    /// By switch.
    leaf_number: Vec<Option<u32>>,
    /// `[switch * leaves + leaf]`: number of a list, shared by leaves with the same next links.
    list_of: Vec<u32>,
    /// The first one is empty.
    lists: Vec<List>,
    /// Indices into [`Network::links`].
    members: Vec<u32>,
}

/// Next links of a switch toward some leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct List {
    /// Range in the members.
    first: u32,
    count: u32,
    /// The slowest link; of equals, one with the longest latency.
    slowest: Option<u32>,
}

impl ShortestPaths {
    /// Finds the routes of a checked `network` over the `usable` links.
    pub fn new(network: &Network, usable: impl Fn(usize) -> bool) -> Self {
        let switches = network.switches.len();
        let mut into: Vec<Vec<Hop>> = vec![Vec::new(); switches];
        let mut out: Vec<Vec<Hop>> = vec![Vec::new(); switches];
        for (index, link) in network.links.iter().enumerate().filter(|(index, _)| usable(*index)) {
            if let Some((from, to)) = link.switches() {
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
                routes.add(network, switch, leaves, &LeafGroups::new(leaves, *cost, links, &costs));
            }
        }
        routes
    }

    /// Returns the switches with hosts, ascending.
    pub fn leaves(&self) -> &[usize] {
        &self.leaves
    }

    /// Returns the index of `switch` among the leaves; `None` without hosts.
    pub fn leaf_number(&self, switch: usize) -> Option<usize> {
        self.leaf_number[switch].map(|number| number as usize)
    }

    /// Returns the indices of the next links toward leaf number `leaf`; empty at that leaf.
    pub fn next(&self, switch: usize, leaf: usize) -> &[u32] {
        self.members(&self.list(switch, leaf))
    }

    /// Returns the slowest of [`Self::next`]; of equals, one with the longest latency.
    pub fn slowest(&self, switch: usize, leaf: usize) -> Option<usize> {
        self.list(switch, leaf).slowest.map(|link| link as usize)
    }

    /// Returns by switch the sum of `of_link` over the [`hops`] to the switch `to`; 0: no path.
    pub fn sums(&self, network: &Network, to: usize, of_link: impl Fn(usize) -> u64) -> Vec<u64> {
        let leaf = self.leaf_number(to).unwrap_or_default();
        let mut known: Vec<Option<u64>> = vec![None; network.switches.len()];
        let mut under_way = Vec::new();
        for from in self.leaves() {
            let (mut at, mut sum) = (*from, 0);
            // Terminates, as every link leads nearer.
            while let (None, Some(link)) = (known[at], self.slowest(at, leaf)) {
                under_way.push((at, link));
                let Some(next) = network.links[link].to.switch() else { break };
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

    /// Returns the number, below [`Self::lists`], of the list of next links.
    pub(crate) fn list_number(&self, switch: usize, leaf: usize) -> usize {
        self.list_of[switch * self.leaves.len() + leaf] as usize
    }

    /// Number of lists. Except for the empty one, number 0, each belongs to one switch.
    pub(crate) fn lists(&self) -> usize {
        self.lists.len()
    }

    /// Adds the next links of `switch` toward some leaves.
    fn add(&mut self, network: &Network, switch: usize, leaves: &Set, groups_of_leaves: &LeafGroups) {
        let slowest = |index: &&u32| {
            let link = &network.links[**index as usize];
            (u64::MAX - link.rate_bps, link.latency_ps)
        };
        let before = self.lists.len();
        for links in groups_of_leaves.groups.iter().map(|group| &group.links) {
            let (first, count) = (self.members.len() as u32, links.len() as u32);
            self.members.extend(links);
            self.lists.push(List { first, count, slowest: links.iter().max_by_key(slowest).copied() });
        }
        let row = &mut self.list_of[switch * self.leaves.len()..];
        for leaf in members(leaves) {
            let group = groups_of_leaves.of_leaf[leaf];
            let number = if groups_of_leaves.groups[group].links.is_empty() { 0 } else { before + group };
            row[leaf] = number as u32;
        }
    }
}

/// A link between switches; `end` is the switch at the end in question.
#[derive(Clone, Copy, Debug)]
struct Hop {
    link: u32,
    end: u32,
    cost: u32,
}

/// A bit per leaf number.
type Set = Vec<u64>;

/// By cost, ascending, the leaves whose cheapest paths from a switch have it.
type Costs = Vec<(u32, Set)>;

/// Searches from all leaves at once, as there are few different costs. `into`: incoming links.
fn costs(leaves: &[usize], into: &[Vec<Hop>]) -> Vec<Costs> {
    let words = leaves.len().div_ceil(64);
    let nothing = vec![Set::new(); into.len()];
    let (mut found, mut done): (Vec<Costs>, _) = (vec![Vec::new(); into.len()], vec![vec![0; words]; into.len()]);
    let mut begin = nothing.clone();
    for (number, leaf) in leaves.iter().enumerate() {
        begin[*leaf] = vec![0; words];
        begin[*leaf][number / 64] = 1 << (number % 64);
    }
    // By cost and switch the leaves reached by some path of this cost.
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

/// Adds `more` to a set, which may be empty (length 0).
fn unite(set: &mut Set, more: &[u64]) {
    set.resize(more.len(), 0);
    set.iter_mut().zip(more).for_each(|(word, more)| *word |= more);
}

fn members(set: &Set) -> impl Iterator<Item = usize> {
    let of_word = |(index, word): (usize, &u64)| {
        let rest = std::iter::successors(Some(*word), |left| Some(left & left.wrapping_sub(1)));
        rest.take_while(|left| *left != 0).map(move |left| 64 * index + left.trailing_zeros() as usize)
    };
    set.iter().enumerate().filter(|(_, word)| **word != 0).flat_map(of_word)
}

/// Groups of leaves with the same next links of a switch.
struct LeafGroups {
    /// By leaf the index of its group, if any.
    of_leaf: Vec<usize>,
    groups: Vec<LeafGroup>,
}

/// The number of leaves, and their next links in order.
#[derive(Clone)]
struct LeafGroup {
    leaves: u32,
    links: Vec<u32>,
}

impl LeafGroups {
    /// Groups `leaves`, all at the same cost from a switch with these `links`.
    fn new(leaves: &Set, cost: u32, links: &[Hop], costs: &[Costs]) -> Self {
        let count = leaves.iter().map(|word| word.count_ones()).sum();
        let mut groups_of_leaves =
            Self { of_leaf: vec![0; 64 * leaves.len()], groups: vec![LeafGroup { leaves: count, links: Vec::new() }] };
        for hop in links {
            let Some(left) = cost.checked_sub(hop.cost) else { continue };
            let Some((_, nearer)) = costs[hop.end as usize].iter().find(|(cost, _)| *cost == left) else { continue };
            let reached: Set = leaves.iter().zip(nearer).map(|(own, nearer)| own & nearer).collect();
            if reached == *leaves {
                groups_of_leaves.groups.iter_mut().for_each(|group| group.links.push(hop.link));
            } else {
                groups_of_leaves.split(&reached, hop.link);
            }
        }
        groups_of_leaves
    }

    /// Splits groups into the leaves toward which `link` leads, and the others.
    fn split(&mut self, reached: &Set, link: u32) {
        let mut counts = vec![0; self.groups.len()];
        members(reached).for_each(|leaf| counts[self.of_leaf[leaf]] += 1);
        // By group that of its leaves toward which the link leads.
        let mut next: Vec<usize> = (0..counts.len()).collect();
        for (group, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            if count < self.groups[group].leaves {
                self.groups[group].leaves -= count;
                next[group] = self.groups.len();
                self.groups.push(LeafGroup { leaves: count, ..self.groups[group].clone() });
            }
            self.groups[next[group]].links.push(link);
        }
        members(reached).for_each(|leaf| self.of_leaf[leaf] = next[self.of_leaf[leaf]]);
    }
}

/// Returns by switch and host the indices of next links over `usable` ones; empty without a path.
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

/// Returns the links of a shortest path between two hosts; none if they are equal. Of equal-cost
/// links takes the slowest, then the longest, so that base RTTs hold for every path.
pub fn hops(network: &Network, routes: &ShortestPaths, from: usize, to: usize) -> impl Iterator<Item = usize> {
    let leaf = routes.leaf_number(network.leaf_of(to)).unwrap_or_default();
    // Terminates, as every link leads nearer.
    let next = move |link: &usize| routes.slowest(network.links[*link].to.switch()?, leaf);
    let between = std::iter::successors((from != to).then(|| network.uplink(from)), next);
    between.chain((from != to).then(|| network.downlink(to)))
}
