//! The paths that an engine provides to a scheme: entropy values for each.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Ev, PathEvs, Rng, draw_below};
use crate::rng;

/// Paths that take turns; none if the engine provided none.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownPaths {
    /// A value of every path, then another one of each, and so on.
    evs: Box<[Ev]>,
    paths: u16,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// As provided.
    Told,
    /// Drawn from a seed.
    Drawn(u64),
    /// As [`Order::Drawn`], another in each round.
    DrawnEachRound(u64),
}

impl KnownPaths {
    /// Takes at most [`MAX_PATHS`] paths with values below `evs`.
    pub(super) fn new(paths: &[PathEvs], evs: u16, order: Order) -> Self {
        let known = |path: &&PathEvs| path.iter().all(|ev| ev.index() < evs);
        let mut paths: Vec<PathEvs> = paths.iter().filter(known).take(MAX_PATHS).copied().collect();
        // With many paths each has one value.
        let rounds =
            if paths.iter().all(|path| path.iter().all(|ev| *ev == path[0])) { 1 } else { PathEvs::default().len() };
        let mut rng = match order {
            Order::Told => None,
            Order::Drawn(seed) | Order::DrawnEachRound(seed) => Some(rng::stream(seed, ORDER)),
        };
        let mut all = Vec::with_capacity(rounds * paths.len());
        for round in 0..rounds {
            if let Some(rng) = &mut rng
                && (round == 0 || matches!(order, Order::DrawnEachRound(_)))
            {
                shuffle(&mut paths, rng);
            }
            all.extend(paths.iter().filter_map(|path| path.get(round).copied()));
        }
        Self { evs: all.into(), paths: paths.len() as u16 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.evs.is_empty()
    }

    pub(super) fn count(&self) -> u16 {
        self.paths
    }

    /// Returns a value of the path at `turn` (modulo their number), and advances it.
    pub(super) fn in_turn(&self, turn: &mut u16) -> Option<Ev> {
        let at = usize::from(*turn);
        let at = if at < self.evs.len() { at } else { at.checked_rem(self.evs.len())? };
        *turn = if at + 1 < self.evs.len() { at as u16 + 1 } else { 0 };
        self.evs.get(at).copied()
    }
}

/// Every order is equally likely.
fn shuffle(paths: &mut [PathEvs], rng: &mut Rng) {
    for last in (1..paths.len()).rev() {
        paths.swap(last, draw_below(last as u16 + 1, rng).into());
    }
}

/// Core switches of a fat tree of 64-port switches: 65,536 hosts.
const MAX_PATHS: usize = 1_024;
const ORDER: u64 = 1;
