//! Which entropy value leads over which path. An engine tells balancers that ask for it (`docs/specs/host-dr.md`).

use std::collections::BTreeMap;
use std::net::IpAddr;

use spray_core::path::Ev;
use spray_pipeline::config::{Group, MAX_HOPS, SwitchConfig};
use spray_pipeline::frame::{addresses_v4, addresses_v6, digest};
use spray_wire::{UDP_PORT, ev_port};

use super::{LinkEvent, Network, Routes, epoch_starts, known_down, salt};
use crate::fabric::Node;

/// The switches' choices, in every epoch of routing.
#[derive(Debug)]
pub struct Ancestors<'a> {
    network: &'a Network,
    salts: Vec<u64>,
    /// When each epoch begins, and its routes.
    epochs: Vec<(u64, Routes)>,
}

/// The members chosen at the switches of a path, the last one first.
type Choices = [u32; MAX_HOPS];

impl<'a> Ancestors<'a> {
    /// Takes in what routing learns of `events`, and how the switches of a run with root `seed` hash.
    pub fn new(network: &'a Network, events: &[LinkEvent], seed: u64) -> Self {
        let switch = |switch| SwitchConfig::new(salt(seed, switch)).salt;
        let routes = |from_ps| (from_ps, Routes::new(network, |link| !known_down(events, link, from_ps)));
        Self {
            network,
            salts: (0..network.switches.len()).map(switch).collect(),
            epochs: epoch_starts(events).into_iter().map(routes).collect(),
        }
    }

    /// When each epoch of routing begins, from 0 on.
    pub fn epoch_starts(&self) -> impl Iterator<Item = u64> {
        self.epochs.iter().map(|(from_ps, _)| *from_ps)
    }

    /// One entropy value of a set of `evs` for every path from host `from` to host `to` by the routes in force at `at_ps`, as
    /// far as there are any. `addresses` is the digest of their addresses, see [`addresses`].
    //= docs/specs/host-dr.md#HDR-10
    //= docs/specs/host-dr.md#HDR-11
    pub fn paths(&self, at_ps: u64, from: usize, to: usize, addresses: u64, evs: u32) -> Vec<Ev> {
        let epoch = self.epochs.iter().rfind(|(from_ps, _)| *from_ps <= at_ps);
        let Some((_, routes)) = epoch else { return Vec::new() };
        let (start, end) = (self.network.leaf_of(from), self.network.leaf_of(to));
        let Some(leaf) = routes.leaf_number(end) else { return Vec::new() };
        let count = self.count(routes, start, leaf, MAX_PATHS);
        let tries = evs.min(spray_wire::MAX_EVS).min(TRIES_PER_PATH * count as u32);
        let mut found: BTreeMap<Choices, Ev> = BTreeMap::new();
        for ev in (0..tries).map(|ev| ev as Ev) {
            let flow = digest(addresses, u32::from(ev_port(ev, evs)) << 16 | u32::from(UDP_PORT));
            if let Some(choices) = self.walk(routes, start, leaf, flow) {
                found.entry(choices).or_insert(ev);
            }
            if found.len() == count {
                break;
            }
        }
        found.into_values().collect()
    }

    /// The way of frames with digest `flow`; `None` where it ends, or is longer than any that switches carry.
    fn walk(&self, routes: &Routes, mut switch: usize, leaf: usize, flow: u64) -> Option<Choices> {
        let mut choices = [0; MAX_HOPS];
        for hop in 0..MAX_HOPS {
            if routes.leaves()[leaf] == switch {
                choices[..hop].reverse();
                return Some(choices);
            }
            let links = routes.next(switch, leaf);
            if links.is_empty() {
                return None;
            }
            let group = Group { first: 0, count: links.len() as u32 };
            choices[hop] = group.choose(flow, self.salts[switch]);
            switch = self.end(links[choices[hop] as usize])?;
        }
        None
    }

    /// How many paths there are, up to `most`.
    fn count(&self, routes: &Routes, switch: usize, leaf: usize, most: usize) -> usize {
        if routes.leaves()[leaf] == switch {
            return 1;
        }
        let mut count = 0;
        for link in routes.next(switch, leaf) {
            let Some(next) = self.end(*link) else { continue };
            if count >= most {
                break;
            }
            count += self.count(routes, next, leaf, most - count);
        }
        count
    }

    fn end(&self, link: u32) -> Option<usize> {
        match self.network.links[link as usize].to {
            Node::Switch(switch) => Some(switch),
            Node::Host(_) => None,
        }
    }
}

/// The digest of the addresses of frames from one host to another, as switches compute it; 0 for a pair of two families.
pub fn addresses(from: IpAddr, to: IpAddr) -> u64 {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut both = [0; 8];
            both[..4].copy_from_slice(&from.octets());
            both[4..].copy_from_slice(&to.octets());
            addresses_v4(u64::from_le_bytes(both))
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let halves = |octets: [u8; 16]| {
                let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| octets[at + byte]));
                [half(0), half(8)]
            };
            addresses_v6(halves(from.octets()), halves(to.octets()))
        }
        _ => 0,
    }
}

/// Core switches of a fat tree of 64-port switches: as many as host DR takes.
const MAX_PATHS: usize = 1_024;
/// Of 1,024 paths, to find the last takes 7.5 tries for each on average.
const TRIES_PER_PATH: u32 = 64;

#[cfg(test)]
mod tests;
