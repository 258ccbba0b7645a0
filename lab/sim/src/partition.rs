//! Partition of a run into parts of switches and hosts. Frames between parts take at least the
//! latency of the shortest cable between them, so that parts can run independently for that long.

use std::collections::BTreeSet;

use spray_fabric::Network;

use super::spec::SimSpec;

/// Depends only on the simulated network, never on the machine, so that results are reproducible.
#[derive(Debug)]
pub(super) struct Partition {
    pub of_switch: Vec<u32>,
    /// By part, ascending.
    pub hosts: Vec<Vec<u32>>,
    /// The host's index in its part.
    pub place_of_host: Vec<u32>,
    /// By part, the parts to which its cables lead, ascending: its *channels*.
    pub channels: Vec<Vec<u32>>,
    /// Minimum latency between parts.
    pub lookahead_ps: u64,
}

impl Partition {
    /// Makes each switch with its hosts a part where that pays, else creates a single part.
    pub(super) fn new(spec: &SimSpec<'_>) -> Self {
        let switches = spec.network.switches.len() as u32;
        let lookahead_ps = shortest_ps(spec.network);
        // With stateful schemes, one part has to order simultaneous arrivals at all switches.
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
        let mut channels = vec![BTreeSet::new(); hosts.len()];
        for link in &spec.network.links {
            if let Some((from, to)) = link.switches()
                && of_switch[from] != of_switch[to]
            {
                channels[of_switch[from] as usize].insert(of_switch[to]);
            }
        }
        let channels = channels.into_iter().map(|channels| channels.into_iter().collect()).collect();
        Self { of_switch, hosts, place_of_host, channels, lookahead_ps }
    }

    pub(super) fn len(&self) -> usize {
        self.hosts.len()
    }
}

/// Returns the least latency between switches; [`u64::MAX`] for a single switch.
fn shortest_ps(network: &Network) -> u64 {
    let between = (0..network.links.len()).filter(|link| network.links[*link].is_uplink());
    between.map(|link| network.latency_ps(link)).min().unwrap_or(u64::MAX)
}

/// In smaller networks the synchronisation costs more than it gains.
const LEAST_HOSTS: usize = 128;
/// [`Port::channel`](super::port::Port::channel) has 16 bits.
const MOST_SWITCHES: u32 = 1 << 16;
/// With a shorter lookahead parts have too little work per window.
const LEAST_LOOKAHEAD_PS: u64 = 50_000;
