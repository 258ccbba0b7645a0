//! What losses tell: whether a path has failed (probes of a suspect, freezing once they stay unanswered), and whether packets are to explore.

use super::{FROZEN, PROBES, RecycledEvs, RepsPlus, TICK_SHIFT, overdue_ps};
use crate::Time;
use crate::event::{Event, FreezeReason, Publisher};
use crate::now::Now;
use crate::path::{AckInfo, Ev, LossCause, LossInfo, ProbeInfo};

impl RepsPlus {
    /// Freezes if the suspect's path has failed.
    #[inline(never)]
    pub(super) fn judge(&mut self, now: Now<'_>, ack: &AckInfo, publisher: &mut dyn Publisher) {
        let state = &self.state;
        //= docs/specs/reps-plus.md#RPP-12 freezing
        let sent_at = now.time.before(ack.rtt_ps);
        if state.probes == PROBES && now.time >= state.probe_at && sent_at >= state.probe_at.before(state.wait_ps() / 2)
        {
            self.freeze(now, publisher);
        }
    }

    /// Suspects nothing any more, and so is not frozen.
    fn clear(&mut self, now: Now<'_>, publisher: &mut dyn Publisher) {
        if self.state.is_frozen() {
            publisher.on_event(now.time, Event::FreezeExited);
        }
        (self.state.probes, self.state.scouts, self.state.probe_at) = (0, 0, Time::NEVER);
    }

    /// Begins to probe the path of a lost packet, unless it probes another.
    //= docs/specs/reps-plus.md#RPP-10 a suspect
    pub(super) fn suspect_path(&mut self, now: Now<'_>, loss: &LossInfo) {
        let state = &mut self.state;
        state.count_loss(loss.ev);
        let by_timer = loss.cause == LossCause::Timeout;
        //= docs/specs/reps-plus.md#RPP-19 exploring by probes
        state.scouts = state.scouts.max(if by_timer { TIMER_SCOUTS } else { 1 });
        if state.probe_at != Time::NEVER {
            return;
        }
        let wait_ps = loss.max_rtt_ps.saturating_add(loss.max_rtt_ps / 8).max(overdue_ps(now.path));
        state.suspect = loss.ev;
        state.wait = ((wait_ps >> TICK_SHIFT) + 1).min(u32::MAX.into()) as u32;
        state.probes = 0;
        state.probe_at = now.time;
    }

    /// The suspect's path has failed.
    fn freeze(&mut self, now: Now<'_>, publisher: &mut dyn Publisher) {
        let state = &mut self.state;
        state.forget(state.suspect, self.settings.buffer);
        state.probes = FROZEN;
        state.probe_at = now.after(FROZEN_WAITS * state.wait_ps());
        publisher.on_event(now.time, Event::FreezeEntered { reason: FreezeReason::Probes });
    }
}

//= docs/specs/reps-plus.md#RPP-11 probes
impl RepsPlus {
    /// The suspect, if its next probe is due.
    pub(super) fn probe_suspect(&mut self, now: Now<'_>) -> Option<Ev> {
        let state = &mut self.state;
        if now.time < state.probe_at || state.probes == PROBES {
            return None;
        }
        if !state.is_frozen() {
            state.probes += 1;
        }
        let wait_ps = match state.probes {
            FROZEN => FROZEN_WAITS * state.wait_ps(),
            PROBES => state.wait_ps(),
            _ => state.wait_ps() / 2,
        };
        state.probe_at = now.after(wait_ps);
        Some(state.suspect)
    }

    pub(super) fn has_probed_suspect(&self) -> bool {
        self.suspect().is_some() && self.state.probes > 0
    }

    /// The value for a probe that explores, if one is to go.
    //= docs/specs/reps-plus.md#RPP-19 exploring by probes
    pub(super) fn scout(&mut self, now: Now<'_>) -> Option<Ev> {
        if self.state.scouts == 0 || self.state.probes < 2 {
            return None;
        }
        self.state.scouts -= 1;
        Some(self.state.next_of_set(now.path.evs))
    }

    /// A probe was answered.
    pub(super) fn on_answer(&mut self, now: Now<'_>, answer: &ProbeInfo, publisher: &mut dyn Publisher) {
        //= docs/specs/reps-plus.md#RPP-19 exploring by probes
        if self.suspect() != Some(answer.ev) {
            let is_bad = answer.marked || !self.state.is_reused(now.path, answer.rtt_ps);
            self.cache_if_good(now.path, answer.ev, is_bad);
            return;
        }
        //= docs/specs/reps-plus.md#RPP-13 thawing
        self.clear(now, publisher);
    }
}

/// What losses say of exploring.
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

    /// Whether packets without a valid value use what the buffer holds in place of exploring.
    //= docs/specs/reps-plus.md#RPP-7 reuse beside a suspect
    //= docs/specs/reps-plus.md#RPP-20 many losses
    #[inline]
    pub(super) fn keeps_to_buffer(&self) -> bool {
        let is_probing = self.probe_at != Time::NEVER && !self.is_frozen();
        (is_probing || self.losses >= MANY_LOSSES) && self.filled > 0
    }
}

/// What a loss adds: so many packets that arrive make up for it.
const LOSS: u8 = 16;
/// From this count on packets do not explore.
const MANY_LOSSES: u8 = 8 * LOSS;
/// Probes that explore after a loss by the timer.
const TIMER_SCOUTS: u8 = 4;
/// Probes of a failed path wait so many times longer than those of a suspect.
const FROZEN_WAITS: u64 = 8;
