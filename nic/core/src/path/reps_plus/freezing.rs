//! Reactions to losses: probes of a suspect, freezing, and whether packets explore.

use super::{RecycledEvs, RepsPlus, Suspicion};
use crate::event::{Event, FreezeReason, Publisher};
use crate::now::Now;
use crate::path::suspicion::wait_ticks;
use crate::path::{AckInfo, Ev, LossCause, LossInfo, ProbeInfo};

impl RepsPlus {
    //= docs/specs/reps-plus.md#RPP-12 freezing
    #[inline(never)]
    pub(super) fn freeze_if_confirmed(&mut self, now: Now<'_>, ack: &AckInfo, publisher: &mut dyn Publisher) {
        let state = &mut self.state;
        if !state.suspicion.is_confirmed_by(now, ack) {
            return;
        }
        if let Some(suspect) = state.suspicion.suspect() {
            state.forget(suspect, self.settings.buffer);
        }
        state.suspicion.fail(now.time);
        publisher.on_event(now.time, Event::FreezeEntered { reason: FreezeReason::Probes });
    }

    /// Starts to probe the path of a lost packet, unless it probes another.
    //= docs/specs/reps-plus.md#RPP-10 a suspect
    pub(super) fn suspect_path(&mut self, now: Now<'_>, loss: &LossInfo) {
        let state = &mut self.state;
        state.count_loss(loss.ev);
        if state.suspicion.suspect().is_none() {
            state.suspicion = Suspicion::of(now.time, loss.ev, wait_ticks(now.path, loss), false);
        }
        //= docs/specs/reps-plus.md#RPP-19 exploration by probes
        state.suspicion.raise_scouts(if loss.cause == LossCause::Timeout { TIMER_SCOUTS } else { 1 });
    }

    /// Returns the value for a probe that explores, if one is due.
    //= docs/specs/reps-plus.md#RPP-19 exploration by probes
    pub(super) fn scout(&mut self, now: Now<'_>) -> Option<Ev> {
        self.state.suspicion.take_scout().then(|| self.state.next_of_set(now.path.evs))
    }

    pub(super) fn on_answer(&mut self, now: Now<'_>, answer: &ProbeInfo, publisher: &mut dyn Publisher) {
        let state = &mut self.state;
        //= docs/specs/reps-plus.md#RPP-19 exploration by probes
        if state.suspicion.suspect() != Some(answer.ev) {
            let is_bad = answer.marked || !state.is_reused(now.path, answer.rtt_ps);
            return self.cache_if_good(now.path, answer.ev, is_bad);
        }
        if state.suspicion.on_answer() {
            //= docs/specs/reps-plus.md#RPP-13 thawing
            if state.is_frozen() {
                publisher.on_event(now.time, Event::FreezeExited);
            }
            state.suspicion = Suspicion::NONE;
        }
    }
}

impl RecycledEvs {
    //= docs/specs/reps-plus.md#RPP-20 many losses
    fn count_loss(&mut self, ev: Ev) {
        self.losses = if self.holds(ev) {
            0
        } else if self.losses >= MANY_LOSSES - LOSS {
            u8::MAX
        } else {
            self.losses + LOSS
        };
    }

    /// Whether packets without a valid value reuse buffered ones in place of exploring.
    //= docs/specs/reps-plus.md#RPP-7 reuse with a suspect
    //= docs/specs/reps-plus.md#RPP-20 many losses
    pub(super) fn reuses_buffer(&self) -> bool {
        (self.suspicion.forbids_exploring() || self.losses >= MANY_LOSSES) && self.filled > 0
    }
}

/// Weight of a loss, made up for by this number of arrivals.
const LOSS: u8 = 16;
/// Packets do not explore from this count.
const MANY_LOSSES: u8 = 8 * LOSS;
/// Probes that explore after a loss by timeout.
const TIMER_SCOUTS: u8 = 4;
