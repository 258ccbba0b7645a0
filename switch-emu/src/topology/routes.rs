//! Equal-cost shortest paths.

use std::collections::VecDeque;

use super::Network;
use crate::fabric::Node;

/// For every switch and host the links that lie on a shortest path from the one to the other, over the links that
/// `usable` lets through: `[switch][host]` to indices into [`Network::links`], empty where no path is left.
pub fn groups(network: &Network, usable: impl Fn(usize) -> bool) -> Vec<Vec<Vec<usize>>> {
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); network.switches.len()];
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); network.switches.len()];
    for (index, link) in network.links.iter().enumerate().filter(|(index, _)| usable(*index)) {
        if let Node::Switch(to) = link.to {
            into[to].push(index);
        }
        if let Node::Switch(from) = link.from {
            out[from].push(index);
        }
    }
    let distances: Vec<_> = (0..network.hosts.len()).map(|host| distances(network, host, &into, &out)).collect();
    let group = |switch: usize, host: usize| -> Vec<usize> {
        let distance = &distances[host];
        let Some(own) = distance[switch] else { return Vec::new() };
        let nearer = |index: &&usize| match network.links[**index].to {
            Node::Host(to) => to == host && own == 0,
            Node::Switch(to) => own > 0 && distance[to] == Some(own - 1),
        };
        out[switch].iter().filter(nearer).copied().collect()
    };
    let of_switch = |switch| (0..network.hosts.len()).map(|host| group(switch, host)).collect();
    (0..network.switches.len()).map(of_switch).collect()
}

/// Switch-to-switch hops from every switch to the one that `host` hangs on.
fn distances(network: &Network, host: usize, into: &[Vec<usize>], out: &[Vec<usize>]) -> Vec<Option<u32>> {
    let mut distance = vec![None; network.switches.len()];
    let mut queue = VecDeque::new();
    for (switch, links) in out.iter().enumerate() {
        if links.iter().any(|index| network.links[*index].to == Node::Host(host)) {
            distance[switch] = Some(0);
            queue.push_back(switch);
        }
    }
    while let Some(switch) = queue.pop_front() {
        let next = distance[switch].map(|hops: u32| hops + 1);
        for index in &into[switch] {
            if let Node::Switch(from) = network.links[*index].from
                && distance[from].is_none()
            {
                distance[from] = next;
                queue.push_back(from);
            }
        }
    }
    distance
}

/// The links of one shortest path from host `from` to host `to`, the host's own first; empty when `from == to`.
///
/// Of equal paths the one with the slowest, then the longest links is taken at each switch, so that base RTTs hold for
/// every path of an uneven fabric.
pub fn hops(network: &Network, groups: &[Vec<Vec<usize>>], from: usize, to: usize) -> Vec<usize> {
    if from == to {
        return Vec::new();
    }
    let mut path = vec![network.uplink(from)];
    let mut switch = network.leaf_of(from);
    // A shortest path visits every switch at most once.
    for _ in 0..=network.switches.len() {
        let slowest = |index: &&usize| {
            let link = &network.links[**index];
            (u64::MAX - link.rate_bps, link.latency_ps)
        };
        let Some(link) = groups[switch][to].iter().max_by_key(slowest) else { break };
        path.push(*link);
        match network.links[*link].to {
            Node::Host(_) => break,
            Node::Switch(next) => switch = next,
        }
    }
    path
}
