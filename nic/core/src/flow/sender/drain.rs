//! Counts a balancer's drains and their time.

use super::Sender;

impl Sender {
    /// Notices the beginning and the end of a drain.
    #[inline]
    pub(super) fn watch_drain(&mut self, now_ps: u64) {
        if self.offers.hold_back {
            self.note_drain(now_ps);
        }
    }

    fn note_drain(&mut self, now_ps: u64) {
        match (self.draining_since_ps, self.balancer.is_draining()) {
            (None, true) => {
                self.draining_since_ps = Some(now_ps);
                self.stats.drains += 1;
            }
            (Some(since_ps), false) => {
                self.draining_since_ps = None;
                self.stats.drained_ps += now_ps.saturating_sub(since_ps);
            }
            _ => {}
        }
    }
}
