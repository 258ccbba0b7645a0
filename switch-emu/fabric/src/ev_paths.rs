//! Mapping of entropy values to paths, for balancers that need it (`docs/specs/host-dr.md`).

use std::collections::BTreeMap;
use std::net::IpAddr;

use spray_core::path::PathEvs;
use spray_pipeline::config::MAX_HOPS;
use spray_pipeline::flow_hash::Key;
use spray_pipeline::scheme::hashed;
use spray_wire::switch_view::{addresses_v4, addresses_v6};
use spray_wire::{Ev, EvPort, Ports};

use super::{LinkEvent, Network, RouteTable};

/// The switches' choices in every routing epoch.
#[derive(Debug)]
pub struct EvPaths<'a> {
    network: &'a Network,
    /// Its port numbers are link indices.
    routes: RouteTable,
}

/// Ranks of the ports chosen along a path, in reverse order.
type Choices = [u32; MAX_HOPS];

impl<'a> EvPaths<'a> {
    /// Creates the choices under `events` in a run with `seed`, from which hash salts are drawn.
    pub fn new(network: &'a Network, events: &[LinkEvent], seed: u64) -> Self {
        Self { network, routes: RouteTable::new(network, events, seed, |link| link as u32) }
    }

    /// Returns the start of each routing epoch, ascending from 0.
    pub fn epoch_starts(&self) -> &[u64] {
        self.routes.epoch_starts()
    }

    /// Returns entropy values below `evs` for each path between hosts with these [`addresses`] at
    /// `at_ps`. Paths without values are left out: all paths, if some switch does not hash.
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

    /// Follows the frames with digest `flow`; `None` if the path ends early or has too many hops.
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

    /// Counts the paths, up to `most`.
    fn count(&self, at_ps: u64, switch: usize, to: usize, most: usize) -> usize {
        if switch == self.network.leaf_of(to) {
            return 1;
        }
        let mut count = 0;
        for link in self.routes.path_ports(at_ps, switch as u32, to as u32) {
            let Some(next) = self.end(link) else { continue };
            if count >= most {
                break;
            }
            count += self.count(at_ps, next, to, most - count);
        }
        count
    }

    fn end(&self, link: u32) -> Option<usize> {
        self.network.links[link as usize].to.switch()
    }
}

/// Returns the fields that switches may hash of a frame from a host; `port` encodes its EV.
pub fn flow_key(addresses: u64, port: EvPort) -> Key {
    let label = u32::from(port.number());
    Key { addresses, ports: label << 16 | u32::from(Ports::DEFAULT.first()), label }
}

/// Combines the addresses of frames between two hosts for a [`Key`]; 0 if their families differ.
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

/// Limit of host DR: the core switches of a fat tree of 64-port switches.
const MAX_PATHS: usize = 1_024;
/// Minimum number of values in total, if there are few paths.
const EVS_IN_ALL: usize = 32;
/// Random values find all of 1,024 paths after 7.5 tries per path on average; this leaves a margin.
const TRIES_PER_PATH: u32 = 64;
