//! Paths between leaves that are left by failures unknown to routing.

use std::rc::Rc;

use crate::{Network, ShortestPaths};

/// Counts the links over which each switch still reaches each leaf.
#[derive(Clone)]
pub(super) struct Reachability<'a> {
    network: &'a Network,
    routes: &'a ShortestPaths,
    /// Incoming links of each switch from other switches.
    into: Rc<Vec<Vec<u32>>>,
    pub dead: Vec<bool>,
    /// `[leaf * switches + switch]`: number of next links over which the switch reaches the leaf.
    alive: Vec<u32>,
}

impl<'a> Reachability<'a> {
    /// Creates the paths while all links work.
    pub fn new(network: &'a Network, routes: &'a ShortestPaths) -> Self {
        let switches = network.switches.len();
        let mut into = vec![Vec::new(); switches];
        for (index, link) in network.links.iter().enumerate() {
            if let Some((_, to)) = link.switches() {
                into[to].push(index as u32);
            }
        }
        let counts = |leaf| (0..switches).map(move |switch| routes.next(switch, leaf).len() as u32);
        let alive = (0..routes.leaves().len()).flat_map(counts).collect();
        Self { network, routes, into: into.into(), dead: vec![false; network.links.len()], alive }
    }

    /// Removes `links`, unless a leaf would lose its last path to another; returns whether it did.
    pub fn remove(&mut self, links: &[usize]) -> bool {
        let mut less = self.clone();
        let possible = less.take(links);
        if possible {
            *self = less;
        }
        possible
    }

    /// Removes `links`; returns whether all leaves are still connected.
    pub fn take(&mut self, links: &[usize]) -> bool {
        links.iter().fold(true, |kept, link| kept & self.remove_one(*link))
    }

    fn remove_one(&mut self, link: usize) -> bool {
        if std::mem::replace(&mut self.dead[link], true) {
            return true;
        }
        // A host has no other link.
        let Some((from, to)) = self.network.links[link].switches() else { return false };
        (0..self.routes.leaves().len()).fold(true, |kept, leaf| {
            let led = self.routes.next(from, leaf).contains(&(link as u32)) && self.reaches(to, leaf);
            kept & (!led || self.lose_way(from, leaf))
        })
    }

    fn reaches(&self, switch: usize, leaf: usize) -> bool {
        self.routes.leaf_number(switch) == Some(leaf) || self.alive[self.slot(switch, leaf)] > 0
    }

    fn slot(&self, switch: usize, leaf: usize) -> usize {
        leaf * self.network.switches.len() + switch
    }

    /// Removes a path from `switch` to `leaf`; returns whether all leaves are still connected.
    fn lose_way(&mut self, switch: usize, leaf: usize) -> bool {
        let slot = self.slot(switch, leaf);
        self.alive[slot] -= 1;
        if self.alive[slot] > 0 {
            return true;
        }
        let kept = self.routes.leaf_number(switch).is_none();
        let before: Vec<u32> = self.into[switch].iter().copied().filter(|link| !self.dead[*link as usize]).collect();
        before.into_iter().fold(kept, |kept, link| {
            let Some(from) = self.network.links[link as usize].from.switch() else { return kept };
            kept & (!self.routes.next(from, leaf).contains(&link) || self.lose_way(from, leaf))
        })
    }
}
