//! What the next connection to the same host begins with.

use super::{FROZEN, RepsPlus, TICK_SHIFT, ticks};
use crate::Time;
use crate::now::Now;
use crate::path::{Ev, MAX_GOOD, Remembered, Suspect};

impl RepsPlus {
    //= docs/specs/reps-plus.md#RPP-18 begins with what
    pub(super) fn learned(&self, now: Now<'_>) -> Option<Remembered> {
        if !self.settings.remember {
            return None;
        }
        let state = &self.state;
        let mut learned = Remembered { suspect: self.remembered_suspect(now), ..Remembered::default() };
        for ev in state.oldest_first().filter(|ev| self.suspect() != Some(*ev)) {
            if !learned.good().contains(&ev)
                && let Some(slot) = learned.good.get_mut(usize::from(learned.count))
            {
                *slot = ev;
                learned.count += 1;
            }
        }
        //= docs/specs/reps-plus.md#RPP-18 that ends without having learned anything
        (learned.count > 0 || learned.suspect.is_some()).then_some(learned)
    }

    //= docs/specs/reps-plus.md#RPP-18 begins with what
    pub(super) fn begin_with(&mut self, now: Now<'_>, learned: &Remembered) {
        if !self.settings.remember {
            return;
        }
        let known = |ev: &Ev| ev.index() < now.path.evs;
        for &ev in learned.good().iter().filter(|ev| known(ev)) {
            self.state.cache(ev, self.settings.depth);
        }
        //= docs/specs/reps-plus.md#RPP-18 at least half
        // Beside a suspect nothing explores. Few values would lead all packets over few paths, for good.
        let paths = if self.paths.is_empty() { MAX_GOOD } else { self.paths.count().into() };
        let is_enough = 2 * usize::from(self.state.filled) >= paths.min(self.settings.depth.into());
        let suspect = learned.suspect.filter(|suspect| now.time < suspect.until && known(&suspect.ev));
        let Some(suspect) = suspect.filter(|_| is_enough) else { return };
        let state = &mut self.state;
        (state.suspect, state.wait, state.probe_at) = (suspect.ev, suspect.wait, now.time);
        if suspect.failed {
            (state.probes, state.thaw_at) = (FROZEN, ticks(suspect.until));
        }
    }

    fn remembered_suspect(&self, now: Now<'_>) -> Option<Suspect> {
        let (state, failed) = (&self.state, self.is_frozen());
        if state.probe_at == Time::NEVER {
            return None;
        }
        let left_ps = match failed {
            true => u64::from(state.thaw_at.wrapping_sub(ticks(now.time))) << TICK_SHIFT,
            false => self.settings.freezing_timeout_ps,
        };
        // A freezing time that is over has wrapped.
        let left_ps = if left_ps > self.settings.freezing_timeout_ps { 0 } else { left_ps };
        let until = now.after(left_ps);
        Some(Suspect { ev: state.suspect, wait: state.wait, failed, until })
    }
}
