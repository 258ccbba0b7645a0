//! Locations of hosts and ports, and the words that describe them to stateful schemes.

use std::collections::{BTreeSet, HashMap};

use spray_pipeline::routes::SwitchConfig;
use spray_pipeline::scheme::{PortWord, Scheme, Size, port_words};

use crate::Tiers;
use crate::node::Node;

/// [`SwitchConfig::leaf`] of a switch without hosts.
const NO_LEAF: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Locations {
    /// By host its switch.
    leaf_of: Vec<usize>,
    /// By port its switch and its far end; `None` for a host's own link.
    ports: Vec<Option<(usize, Node)>>,
    /// By port, without queueing and serialisation.
    latencies_ps: Vec<u64>,
    /// The switches with hosts, ascending.
    leaves: Vec<usize>,
}

impl Locations {
    pub(crate) fn new(leaf_of: Vec<usize>, ports: Vec<Option<(usize, Node)>>, latencies_ps: Vec<u64>) -> Self {
        let leaves: BTreeSet<usize> = leaf_of.iter().copied().collect();
        Self { leaf_of, ports, latencies_ps, leaves: leaves.into_iter().collect() }
    }

    /// Returns the number of each port between switches, its switch and the next one.
    fn links(&self) -> impl Iterator<Item = (u32, usize, usize)> {
        (0..).zip(&self.ports).filter_map(|(number, port)| {
            let (from, to) = (*port)?;
            Some((number, from, to.switch()?))
        })
    }

    /// Returns the counts that determine the memory of schemes.
    pub(super) fn size(&self) -> Size {
        let mut uplinks = vec![0; self.leaves.len()];
        for (_, from, _) in self.links() {
            self.leaves.binary_search(&from).into_iter().for_each(|leaf| uplinks[leaf] += 1);
        }
        Size { leaves: self.leaves.len() as u32, uplinks: uplinks.into_iter().max().unwrap_or(0) }
    }

    /// Appends the words of ports and hosts; returns their part of each switch's configuration.
    pub(super) fn lay_out(&self, uplinks: &[Vec<u32>], size: &Size, words: &mut Vec<u64>) -> SwitchConfig {
        words.extend(self.words(uplinks));
        let hosts = words.len() as u32;
        let leaf = |switch: &usize| self.leaves.partition_point(|leaf| leaf < switch) as u64;
        words.extend(self.leaf_of.iter().map(leaf));
        let Size { leaves, uplinks } = *size;
        SwitchConfig { uses_trail: 1, hosts, leaves, uplinks, ..SwitchConfig::default() }
    }

    /// Index of a switch among those with hosts.
    pub(super) fn leaf(&self, switch: usize) -> u32 {
        self.leaves.binary_search(&switch).map_or(NO_LEAF, |leaf| leaf as u32)
    }

    /// Three words per port: [`PortWord`], the measured rate, and 1 + the port that leads back.
    fn words(&self, uplinks: &[Vec<u32>]) -> Vec<u64> {
        let mut way_of = vec![0; self.ports.len()];
        for uplinks in uplinks {
            (1..).zip(uplinks).for_each(|(uplink, port)| way_of[*port as usize] = uplink);
        }
        let mut tags: HashMap<usize, u32> = HashMap::new();
        let mut cables: HashMap<(usize, usize), Vec<u32>> = HashMap::new();
        let mut words = vec![0; 3 * self.ports.len()];
        for (port, from, to) in self.links() {
            let tag = tags.entry(from).or_default();
            words[3 * port as usize] =
                PortWord { tag: *tag, far_end: to as u32 + 1, uplink: way_of[port as usize] }.pack();
            *tag += 1;
            cables.entry((from, to)).or_default().push(port);
        }
        // Parallel cables are paired by their order.
        for ((from, to), ports) in &cables {
            let back = cables.get(&(*to, *from)).into_iter().flatten();
            ports.iter().zip(back).for_each(|(port, back)| words[3 * *port as usize + 2] = u64::from(*back) + 1);
        }
        words
    }

    /// Base RTTs to each leaf: twice the least latency of a path with the fewest links.
    //= docs/specs/conweave.md#CWV-5 a request
    pub(super) fn base_rtts_ps(&self, from: usize, switches: usize) -> Vec<u64> {
        let mut known = vec![None; switches];
        known[from] = Some(0);
        // One more link per iteration.
        loop {
            let mut next = known.clone();
            for (port, at, to) in self.links() {
                if let (Some(here_ps), None) = (known[at], known[to]) {
                    let there_ps = here_ps + self.latencies_ps[port as usize];
                    next[to] = Some(next[to].map_or(there_ps, |least: u64| least.min(there_ps)));
                }
            }
            if next == known {
                break;
            }
            known = next;
        }
        self.leaves.iter().map(|leaf| 2 * known[*leaf].unwrap_or(0)).collect()
    }

    /// By switch the ports that lead up, in order: its uplinks from 1 on, at most 255.
    //= docs/specs/reunion.md#REU-2 source routing
    pub(super) fn uplinks(&self, tiers: &Tiers) -> Vec<Vec<u32>> {
        let mut uplinks = vec![Vec::new(); tiers.tier.len()];
        for (port, from, to) in self.links() {
            if tiers.tier[to] > tiers.tier[from] && uplinks[from].len() < usize::from(u8::MAX) {
                uplinks[from].push(port);
            }
        }
        uplinks
    }

    /// Maximum number of words of any scheme in a fabric of `switches` switches.
    pub(crate) fn most_words(&self, switches: usize) -> usize {
        let (size, hosts) = (self.size(), self.leaf_of.len());
        let in_kernel = Scheme::ALL.iter().filter(|scheme| scheme.is_in_kernel());
        let most = in_kernel.map(|scheme| scheme.words(&size)).max().unwrap_or(0) as usize;
        port_words(self.ports.len() as u32) as usize + hosts + switches * (most + 2 * hosts)
    }
}
