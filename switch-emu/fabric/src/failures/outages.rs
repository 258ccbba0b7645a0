//! Devices that may fail, and the paths left by failures.

use rand_core::RngCore;

use super::reachability::Reachability;
use crate::{LinkAction, LinkEvent, Network, ShortestPaths};

/// The fabric and the time range of failures.
#[derive(Debug, Clone, Copy)]
pub struct FailureContext<'a> {
    /// The fabric.
    pub network: &'a Network,
    /// Seed of the draw.
    pub seed: u64,
    /// Later events are left out.
    pub until_ps: u64,
    /// Bytes of a full data frame.
    pub packet_bytes: u32,
}

/// A device that may fail, with its links.
pub(super) struct Candidate {
    pub name: String,
    pub links: Vec<usize>,
}

impl Candidate {
    pub(super) fn host(network: &Network, host: usize) -> Self {
        Self { name: network.hosts[host].clone(), links: vec![network.uplink(host), network.downlink(host)] }
    }

    pub(super) fn event(&self, at_ps: u64, until_ps: Option<u64>, action: LinkAction) -> LinkEvent {
        LinkEvent { name: self.name.clone(), links: self.links.clone(), at_ps, until_ps, action }
    }
}

/// Draws a device, such that all leaves stay connected without it; moves others to `needed`.
pub(super) fn draw_one(
    rng: &mut impl RngCore,
    candidates: &mut Vec<Candidate>,
    needed: &mut Vec<Candidate>,
    mut paths: Option<&mut Reachability<'_>>,
) -> Option<Candidate> {
    while !candidates.is_empty() {
        let index = (u64::from(rng.next_u32()) * candidates.len() as u64) >> 32;
        let candidate = candidates.swap_remove(index as usize);
        if paths.as_mut().is_none_or(|paths| paths.remove(&candidate.links)) {
            return Some(candidate);
        }
        needed.push(candidate);
    }
    None
}

pub(super) struct Outages<'a> {
    network: &'a Network,
    routes: &'a ShortestPaths,
    all: Vec<Outage>,
    /// Indices of the failures that may last at the latest time of [`Outages::paths`].
    lasting: Vec<usize>,
}

struct Outage {
    links: Vec<usize>,
    from_ps: u64,
    until_ps: Option<u64>,
}

impl<'a> Outages<'a> {
    pub(super) fn new(network: &'a Network, routes: &'a ShortestPaths) -> Self {
        Self { network, routes, all: Vec::new(), lasting: Vec::new() }
    }

    pub(super) fn add(&mut self, links: &[usize], from_ps: u64, until_ps: Option<u64>) {
        self.lasting.push(self.all.len());
        self.all.push(Outage { links: links.to_vec(), from_ps, until_ps });
    }

    /// Restarts the sequence of times of [`Outages::paths`], which must ascend.
    pub(super) fn begin(&mut self) {
        self.lasting = (0..self.all.len()).collect();
    }

    /// Returns the paths left between `at_ps` and `end_ps`.
    pub(super) fn paths(&mut self, at_ps: u64, end_ps: Option<u64>) -> Reachability<'a> {
        let mut paths = Reachability::new(self.network, self.routes);
        let end_ps = end_ps.unwrap_or(u64::MAX);
        self.lasting.retain(|outage| self.all[*outage].until_ps.is_none_or(|until| until > at_ps));
        for outage in self.lasting.iter().map(|outage| &self.all[*outage]).filter(|outage| outage.from_ps < end_ps) {
            paths.take(&outage.links);
        }
        paths
    }
}
