//! Partner after partner: every host sends one message after the other, each to another random host (Flowcut §III-B2).
//!
//! `docs/specs/closed-loop.md` states the rules (`CL-n`).

use std::collections::HashMap;
use std::rc::Rc;

use rand_core::RngCore;
use spray_core::rng::{Rng, stream};
use spray_fabric::Network;

use super::{Flow, PATTERN_STREAM, Sizes, leaves};

/// Every host sends messages to random partners, the next one when the one before is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partners {
    /// Messages of each host.
    pub messages: u32,
    /// Their sizes.
    pub sizes: Sizes,
    /// The largest message.
    pub max_bytes: u64,
    /// Whether partners are under another leaf.
    pub cross_leaf: bool,
    /// When the first ones start.
    pub start_ps: u64,
    /// Messages whose turn comes then or later are left out.
    pub until_ps: Option<u64>,
}

impl Partners {
    /// The messages, those of all hosts in turn: flow `round * hosts + host` is the host's message number `round`.
    //= docs/specs/closed-loop.md#CL-3 follow from the seed alone
    pub(super) fn flows(&self, network: &Network, seed: u64) -> Vec<Flow> {
        let hosts = network.hosts.len();
        let shunned = self.shunned(network);
        let mut rngs: Vec<Rng> = (0..hosts).map(|host| stream(seed, PATTERN_STREAM + 1 + host as u64)).collect();
        let all = (0..self.messages as usize * hosts).map(|flow| {
            let (src, rng) = (flow % hosts, &mut rngs[flow % hosts]);
            //= docs/specs/closed-loop.md#CL-4 every partner alike
            let shunned = &shunned[src];
            let number = ((u128::from(rng.next_u64()) * (hosts - shunned.len()) as u128) >> 64) as usize;
            let dst = shunned.iter().fold(number, |dst, host| dst + usize::from(*host <= dst));
            let bytes = self.sizes.draw(rng.next_u64(), self.max_bytes);
            Flow { flow: flow as u32, src, dst, bytes, start_ps: self.start_ps }
        });
        all.collect()
    }

    /// The hosts, ascending, that each may not send to.
    fn shunned(&self, network: &Network) -> Vec<Rc<[usize]>> {
        let leaf = leaves(network);
        if !self.cross_leaf {
            return (0..leaf.len()).map(|host| Rc::from([host])).collect();
        }
        let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
        leaf.iter().enumerate().for_each(|(host, leaf)| members.entry(*leaf).or_default().push(host));
        let members: HashMap<usize, Rc<[usize]>> = members.into_iter().map(|(leaf, own)| (leaf, own.into())).collect();
        leaf.iter().map(|leaf| Rc::clone(&members[leaf])).collect()
    }
}

#[cfg(test)]
mod tests;
