//! Drains: the balancer or a switch holds new packets until nothing is in flight.

use super::{Balancer, Sender, Time};

impl Sender {
    /// Takes a switch's request to pause or to resume. Retransmissions continue; the pause also
    /// ends with a timeout, and when nothing is open.
    //= docs/specs/flowcut-switch.md#FCS-5 draining
    #[inline]
    pub fn on_pause(&mut self, pause: bool) {
        self.paused = pause;
    }

    #[inline]
    pub(super) fn watch_drain(&mut self, now: Time) {
        if self.features.delays_packets || self.paused || self.draining_since.is_some() {
            self.note_drain(now);
        }
    }

    /// Whether a switch's pause is in effect: it ends when nothing is open.
    #[inline]
    pub(super) fn is_paused(&self) -> bool {
        self.paused && self.recovery.scoreboard.span() > 0
    }

    fn note_drain(&mut self, now: Time) {
        let is_held_back = self.is_paused() && self.segmenter.unsent_bytes > 0;
        match (self.draining_since, self.balancer.is_draining() || is_held_back) {
            (None, true) => {
                self.draining_since = Some(now);
                self.stats.drains += 1;
            }
            (Some(since), false) => {
                self.draining_since = None;
                self.stats.drained_ps = self.stats.drained_ps.saturating_add(now.since(since));
            }
            _ => {}
        }
    }
}
