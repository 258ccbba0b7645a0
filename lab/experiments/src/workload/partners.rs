//! Closed-loop traffic (Flowcut §III-B2), specified in `docs/specs/closed-loop.md` (`CL-n`).

use std::collections::HashMap;
use std::rc::Rc;

use rand_core::RngCore;
use spray_core::rng::{Rng, stream};
use spray_fabric::Network;

use super::streams::PATTERN_STREAM;
use super::{Distribution, Flow, leaves};

/// Every host sends messages to random partners, the next one when the previous one is delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partners {
    pub messages: u32,
    pub sizes: Distribution,
    pub cross_leaf: bool,
    /// Start of the first messages.
    pub start_ps: u64,
    /// End of message starts.
    pub until_ps: Option<u64>,
}

impl Partners {
    /// Returns the messages: flow `round * members + member` is message `round` of a member.
    //= docs/specs/closed-loop.md#CL-3 follow from the seed alone
    pub(super) fn flows(&self, network: &Network, members: &[usize], seed: u64) -> Vec<Flow> {
        let choice = Choice::new(network, members, self.cross_leaf);
        let mut rngs: Vec<Rng> = members.iter().map(|host| stream(seed, PATTERN_STREAM + 1 + *host as u64)).collect();
        let all = (0..self.messages as usize * members.len()).map(|flow| {
            let (member, rng) = (flow % members.len(), &mut rngs[flow % members.len()]);
            let dst = choice.draw(member, rng.next_u64());
            let bytes = self.sizes.draw(rng.next_u64());
            Flow { flow: flow as u32, src: members[member], dst, bytes, start_ps: self.start_ps, ..Flow::default() }
        });
        all.collect()
    }
}

pub(super) struct Choice<'a> {
    members: &'a [usize],
    /// By member, the members, ascending, that it may not send to.
    excluded: Vec<Rc<[usize]>>,
}

impl<'a> Choice<'a> {
    /// Excludes the sender, or with `cross_leaf` all hosts under its leaf.
    pub(super) fn new(network: &Network, members: &'a [usize], cross_leaf: bool) -> Self {
        if !cross_leaf {
            return Self { members, excluded: (0..members.len()).map(|member| Rc::from([member])).collect() };
        }
        let leaf = leaves(network);
        let leaf: Vec<usize> = members.iter().map(|host| leaf[*host]).collect();
        let mut under: HashMap<usize, Vec<usize>> = HashMap::new();
        leaf.iter().enumerate().for_each(|(member, leaf)| under.entry(*leaf).or_default().push(member));
        let under: HashMap<usize, Rc<[usize]>> = under.into_iter().map(|(leaf, own)| (leaf, own.into())).collect();
        Self { members, excluded: leaf.iter().map(|leaf| Rc::clone(&under[leaf])).collect() }
    }

    /// Maps a random number to a receiver for `member`.
    //= docs/specs/closed-loop.md#CL-4 with equal probability
    pub(super) fn draw(&self, member: usize, random: u64) -> usize {
        let excluded = &self.excluded[member];
        let number = ((u128::from(random) * (self.members.len() - excluded.len()) as u128) >> 64) as usize;
        self.members[excluded.iter().fold(number, |dst, other| dst + usize::from(*other <= dst))]
    }
}

#[cfg(test)]
mod tests;
