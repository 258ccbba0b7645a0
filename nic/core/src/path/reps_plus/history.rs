//! Knowledge for the next connection to the same host.

use super::{RepsPlus, Suspicion};
use crate::now::Now;
use crate::path::{Ev, MAX_GOOD, PathHistory, Suspect};

impl RepsPlus {
    //= docs/specs/reps-plus.md#RPP-18 memory across connections
    pub(super) fn learned(&self) -> Option<PathHistory> {
        if !self.settings.remember {
            return None;
        }
        let suspicion = self.state.suspicion;
        let to_remember = |ev| Suspect { ev, wait: suspicion.wait(), failed: suspicion.has_failed() };
        let mut learned = PathHistory { suspect: self.suspect().map(to_remember), ..PathHistory::default() };
        for ev in self.state.oldest_first().filter(|ev| self.suspect() != Some(*ev)) {
            if !learned.good().contains(&ev)
                && let Some(slot) = learned.good.get_mut(usize::from(learned.count))
            {
                *slot = ev;
                learned.count += 1;
            }
        }
        //= docs/specs/reps-plus.md#RPP-18 that ends without cached EVs and without a suspect
        (learned.count > 0 || learned.suspect.is_some()).then_some(learned)
    }

    //= docs/specs/reps-plus.md#RPP-18 memory across connections
    pub(super) fn restore(&mut self, now: Now<'_>, learned: &PathHistory) {
        if !self.settings.remember {
            return;
        }
        let known = |ev: &Ev| ev.index() < now.path.evs;
        for &ev in learned.good().iter().filter(|ev| known(ev)) {
            self.state.cache(ev, self.settings.buffer);
        }
        //= docs/specs/reps-plus.md#RPP-18 at least half
        // Beside a suspect no packet explores: few values would concentrate the first packets.
        let paths = if self.paths.is_empty() { MAX_GOOD } else { self.paths.count().into() };
        let is_enough = 2 * usize::from(self.state.filled) >= paths.min(self.settings.buffer.into());
        let Some(suspect) = learned.suspect.filter(|suspect| is_enough && known(&suspect.ev)) else { return };
        self.state.suspicion = Suspicion::of(now.time, suspect.ev, suspect.wait, suspect.failed);
    }
}
