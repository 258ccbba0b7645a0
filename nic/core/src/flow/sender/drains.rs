//! Drains: times at which new packets wait until nothing is in flight, because the balancer or a switch wants it so.

use super::Sender;
use crate::Time;
use crate::path::Balancer;

impl Sender {
    /// A switch wants the sender to pause, or to go on. Lost packets are sent again meanwhile; the pause ends with a timeout, and when
    /// nothing is open any more.
    //= docs/specs/flowcut-switch.md#FCS-5 draining
    #[inline]
    pub fn on_pause(&mut self, pause: bool) {
        self.paused = pause;
    }

    /// Notices the beginning and the end of a drain.
    #[inline]
    pub(super) fn watch_drain(&mut self, now: Time) {
        if self.offers.hold_back || self.paused || self.draining_since.is_some() {
            self.note_drain(now);
        }
    }

    /// Whether a switch's pause holds: it ends when nothing is open any more.
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
