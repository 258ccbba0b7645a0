//! The paths that an engine tells a scheme: entropy values for each.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Ev, PathEvs, draw_below};
use crate::rng;
use crate::rng::Rng;

/// Paths that take turns; none where the engine told none.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownPaths {
    paths: Box<[PathEvs]>,
}

impl KnownPaths {
    /// Takes at most [`MAX_PATHS`] of the paths whose values are below `evs`, in an order drawn from `seed`, or as they are told.
    pub(super) fn new(paths: &[PathEvs], evs: u16, seed: Option<u64>) -> Self {
        let known = |path: &&PathEvs| path.iter().all(|ev| ev.index() < evs);
        let mut paths: Vec<PathEvs> = paths.iter().filter(known).take(MAX_PATHS).copied().collect();
        if let Some(seed) = seed {
            shuffle(&mut paths, &mut rng::stream(seed, ORDER));
        }
        Self { paths: paths.into_boxed_slice() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub(super) fn count(&self) -> u16 {
        self.paths.len() as u16
    }

    /// A value of the path at `turn`, which moves on to the next; `None` without paths. Every round takes another value of each. Turns count modulo
    /// all values of all paths.
    #[inline]
    pub(super) fn in_turn(&self, turn: &mut u16) -> Option<Ev> {
        let (paths, at) = (self.paths.len() as u32, u32::from(*turn));
        let all = self.paths.as_flattened().len() as u32;
        let at = if at < all { at } else { at.checked_rem(all)? };
        *turn = if at + 1 < all { at as u16 + 1 } else { 0 };
        let round = at.checked_div(paths)?;
        self.paths.get((at - round * paths) as usize)?.get(round as usize).copied()
    }
}

/// Shuffles. Every order is equally likely.
fn shuffle(paths: &mut [PathEvs], rng: &mut Rng) {
    for last in (1..paths.len()).rev() {
        paths.swap(last, draw_below(last as u16 + 1, rng).into());
    }
}

/// Core switches of a fat tree of 64-port switches: 65,536 hosts.
const MAX_PATHS: usize = 1_024;
/// Stream of the connection's seed.
const ORDER: u64 = 1;
