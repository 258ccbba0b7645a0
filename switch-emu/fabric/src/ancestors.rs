//! Which entropy value leads over which path. Engines tell this to balancers that ask for it (`docs/specs/host-dr.md`).

use std::collections::BTreeMap;
use std::net::IpAddr;

use spray_core::path::PathEvs;
use spray_pipeline::config::MAX_HOPS;
use spray_pipeline::flow_hash::Key;
use spray_pipeline::scheme::hashed;
use spray_wire::switch_view::{addresses_v4, addresses_v6};
use spray_wire::{Ev, EvPort, Ports};

use super::{LinkEvent, Network, RouteTable};
use crate::node::Node;

/// The switches' choices, in every epoch of routing.
#[derive(Debug)]
pub struct Ancestors<'a> {
    network: &'a Network,
    /// With links for ports.
    routes: RouteTable,
}

/// The ranks of the ports chosen at the switches of a path, the last one first.
type Choices = [u32; MAX_HOPS];

impl<'a> Ancestors<'a> {
    /// The choices under the events that routing learns of, with the hash salts of a run with root `seed`.
    pub fn new(network: &'a Network, events: &[LinkEvent], seed: u64) -> Self {
        Self { network, routes: RouteTable::new(network, events, seed, |link| link as u32) }
    }

    /// When each epoch of routing begins, ascending from 0.
    pub fn epoch_starts(&self) -> &[u64] {
        self.routes.epoch_starts()
    }

    /// Entropy values for every path from host `from` to host `to` by the routes in force at `at_ps`. Values are below `evs`. A
    /// path that none of these values leads over is left out: all are where a switch does not hash. `addresses` are the hosts', see [`addresses`].
    //= docs/specs/host-dr.md#HDR-10 EVs for each path
    //= docs/specs/host-dr.md#HDR-11 order of the list
    pub fn paths(&self, at_ps: u64, from: usize, to: usize, addresses: u64, evs: u32) -> Vec<PathEvs> {
        if !self.network.switching.hashes() {
            return Vec::new();
        }
        let start = self.network.leaf_of(from);
        let count = self.count(at_ps, start, to, MAX_PATHS);
        let each = EVS_IN_ALL.div_ceil(count.max(1)).min(PathEvs::default().len());
        let tries = evs.min(spray_wire::MAX_EVS).min(TRIES_PER_PATH * count as u32);
        let mut found: BTreeMap<Choices, Vec<Ev>> = BTreeMap::new();
        let mut missing = each * count;
        for ev in (0..tries).map(|index| Ev::new(index as u16)) {
            let flow = self.network.switching.hash.digest(&flow_key(addresses, ev.port(evs)));
            if let Some(choices) = self.walk(at_ps, start, to, flow) {
                let path = found.entry(choices).or_default();
                if path.len() < each {
                    path.push(ev);
                    missing -= 1;
                }
            }
            if missing == 0 {
                break;
            }
        }
        found.into_values().map(|path| std::array::from_fn(|at| path[at % path.len()])).collect()
    }

    /// The path from `switch` to host `to` of frames with digest `flow`. `None` if the path ends before the host, or has more
    /// hops than a frame may take.
    //= docs/specs/host-dr.md#HDR-9 definition of a path
    fn walk(&self, at_ps: u64, mut switch: usize, to: usize, flow: u64) -> Option<Choices> {
        let mut choices = [0; MAX_HOPS];
        for hop in 0..MAX_HOPS {
            if switch == self.network.leaf_of(to) {
                choices[..hop].reverse();
                return Some(choices);
            }
            let choice = hashed(&self.routes, at_ps, switch as u32, to as u32, flow)?;
            choices[hop] = choice.rank;
            switch = self.end(choice.port)?;
        }
        None
    }

    /// How many paths there are, up to `most`.
    fn count(&self, at_ps: u64, switch: usize, to: usize, most: usize) -> usize {
        if switch == self.network.leaf_of(to) {
            return 1;
        }
        let mut count = 0;
        for link in self.routes.ways(at_ps, switch as u32, to as u32) {
            let Some(next) = self.end(link) else { continue };
            if count >= most {
                break;
            }
            count += self.count(at_ps, next, to, most - count);
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

/// What switches may hash of a frame that a host sends: `port` stands for its EV.
pub fn flow_key(addresses: u64, port: EvPort) -> Key {
    let label = u32::from(port.number());
    Key { addresses, ports: label << 16 | u32::from(Ports::DEFAULT.first()), label }
}

/// The addresses of frames from one host to another, as [`Key`] has them; 0 for a pair of two families.
pub fn addresses(from: IpAddr, to: IpAddr) -> u64 {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => addresses_v4(from.octets(), to.octets()),
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
/// Ways back that the values of few paths give.
const EVS_IN_ALL: usize = 32;
/// Random values find all of 1,024 paths after 7.5 tries per path on average. This leaves a wide margin.
const TRIES_PER_PATH: u32 = 64;
