//! Which switches and hosts make a part of a run. What one part sends to another comes no sooner than the shortest cable between them
//! takes, so that parts may run for that long without looking at each other.

use spray_fabric::{Network, Node};

use super::spec::SimSpec;

/// The parts of a run. They follow from what is simulated alone, never from the machine: so does what comes out.
#[derive(Debug)]
pub(super) struct Partition {
    /// By switch its part.
    pub of_switch: Vec<u32>,
    /// By part its hosts, ascending.
    pub hosts: Vec<Vec<u32>>,
    /// By host its place among those of its part.
    pub place_of_host: Vec<u32>,
    /// By part those to which its cables lead, ascending: its *ways*.
    pub ways: Vec<Vec<u32>>,
    /// Least time from one part to another.
    pub lookahead_ps: u64,
}

impl Partition {
    /// Every switch with its hosts is a part, where that pays and nothing reaches from one to another at once; else there is one part.
    pub(super) fn new(spec: &SimSpec<'_>) -> Self {
        let switches = spec.network.switches.len() as u32;
        let lookahead_ps = shortest_ps(spec.network);
        // Where what a switch does depends on what came before, one part draws the order of simultaneous arrivals at all switches.
        let stateless = spec.network.switching.schemes.iter().all(|scheme| scheme.is_stateless());
        let apart = stateless
            && spec.network.hosts.len() >= LEAST_HOSTS
            && switches < MOST_SWITCHES
            && (LEAST_LOOKAHEAD_PS..u64::MAX).contains(&lookahead_ps)
            && spec.triggers.is_empty()
            && spec.pfc.is_none();
        let of_switch: Vec<u32> = (0..switches).map(|switch| if apart { switch } else { 0 }).collect();
        let mut hosts = vec![Vec::new(); if apart { switches as usize } else { 1 }];
        let place = |host: usize| {
            let own = &mut hosts[of_switch[spec.network.leaf_of(host)] as usize];
            own.push(host as u32);
            own.len() as u32 - 1
        };
        let place_of_host = (0..spec.network.hosts.len()).map(place).collect();
        let mut ways = vec![Vec::new(); hosts.len()];
        for link in &spec.network.links {
            if let (Node::Switch(from), Node::Switch(to)) = (link.from, link.to)
                && of_switch[from] != of_switch[to]
            {
                ways[of_switch[from] as usize].push(of_switch[to]);
            }
        }
        ways.iter_mut().for_each(|ways: &mut Vec<u32>| {
            ways.sort_unstable();
            ways.dedup();
        });
        Self { of_switch, hosts, place_of_host, ways, lookahead_ps }
    }

    pub(super) fn len(&self) -> usize {
        self.hosts.len()
    }
}

/// The least time from one switch to another; [`u64::MAX`] where there is one switch.
fn shortest_ps(network: &Network) -> u64 {
    let between = (0..network.links.len()).filter(|link| network.links[*link].is_uplink());
    between.map(|link| network.latency_ps(link)).min().unwrap_or(u64::MAX)
}

/// In smaller networks changing from part to part costs more than it gives.
const LEAST_HOSTS: usize = 128;
/// Ports tell with 16 bits to which of their part's ways they lead.
const MOST_SWITCHES: u32 = 1 << 16;
/// In less time than this a part has too little to do.
const LEAST_LOOKAHEAD_PS: u64 = 50_000;
