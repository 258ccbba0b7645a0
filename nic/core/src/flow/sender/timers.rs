//! What time brings: retransmission timeouts, gaps that became losses, requests for a grant, giving up.

use super::{Failure, Persist, Sender};
use crate::event::{Event, Publisher};
use crate::loss::Backoff;
use crate::path::{Balancer, LossCause};

impl Sender {
    /// Returns when [`Sender::on_timeout`] and [`Sender::poll_transmit`] have something to do without other input.
    ///
    /// May lie in the past. `None` while nothing is outstanding, and after a failure.
    pub fn poll_timeout(&self) -> Option<u64> {
        if self.failure != Failure::None {
            return None;
        }
        [
            self.oldest_deadline(),
            self.gap_deadline(),
            self.paced_until_ps,
            self.persist.deadline_ps,
            self.give_up_deadline(),
            self.balancer.poll_timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Takes the time. Calling early does no harm.
    pub fn on_timeout(&mut self, now_ps: u64, publisher: &mut impl Publisher) {
        if self.failure != Failure::None {
            return;
        }
        //= docs/specs/transport.md#TRN-9
        if self.give_up_deadline().is_some_and(|at_ps| at_ps <= now_ps) {
            self.failure = Failure::Unreported;
            return;
        }
        self.detect_gaps(now_ps, publisher);
        self.expire(now_ps, publisher);
        if self.paced_until_ps.is_some_and(|at_ps| at_ps <= now_ps) {
            self.paced_until_ps = None;
        }
        if self.persist.deadline_ps.is_some_and(|at_ps| at_ps <= now_ps) {
            self.persist.due = true;
            self.persist.backoff = self.persist.backoff.saturating_add(1);
            // Not again before it is sent.
            self.persist.deadline_ps = Some(self.after_rto(now_ps, self.persist.backoff));
        }
    }

    /// Declares lost what later arrivals have overtaken by too much.
    //= docs/specs/transport.md#TRN-35
    #[inline]
    pub(super) fn detect_gaps(&mut self, now_ps: u64, publisher: &mut impl Publisher) {
        while self.gap_deadline().is_some_and(|at_ps| at_ps <= now_ps) {
            let Some((psn, _)) = self.scoreboard.oldest() else { return };
            self.lose(now_ps, psn, LossCause::SackGap, publisher);
        }
    }

    /// Starts the wait for a new grant, unless acknowledgements are still to come or the wait is on.
    //= docs/specs/transport.md#TRN-6
    pub(super) fn wait_for_grant(&mut self, now_ps: u64) {
        if self.scoreboard.span() == 0 && self.persist.deadline_ps.is_none() {
            self.persist = Persist { deadline_ps: Some(self.after_rto(now_ps, 0)), due: false, backoff: 0 };
            self.progress_ps = now_ps;
        }
    }

    pub(super) fn after_rto(&self, now_ps: u64, backoff: Backoff) -> u64 {
        now_ps.saturating_add(self.rto.backed_off_ps(&self.rtt, backoff))
    }

    /// Declares lost every transmission that was made a timeout ago; not the packets after it.
    //= docs/specs/transport.md#TRN-34
    fn expire(&mut self, now_ps: u64, publisher: &mut impl Publisher) {
        while self.oldest_deadline().is_some_and(|at_ps| at_ps <= now_ps) {
            let Some((psn, record)) = self.scoreboard.oldest() else { return };
            //= docs/specs/transport.md#TRN-32
            if record.backoff >= self.backoff {
                self.backoff = self.backoff.saturating_add(1);
            }
            publisher.on_event(now_ps, Event::Timeout { psn });
            self.lose(now_ps, psn, LossCause::Timeout, publisher);
        }
    }

    #[inline]
    fn oldest_deadline(&self) -> Option<u64> {
        let (_, record) = self.scoreboard.oldest()?;
        Some(self.after_rto(record.sent_ps, record.backoff.min(self.backoff)))
    }

    /// When the oldest transmission counts as lost for those after it that have arrived; `None` while too few have.
    #[inline]
    fn gap_deadline(&self) -> Option<u64> {
        let gap = u64::from(self.sack_gap_packets?);
        let (_, record) = self.scoreboard.oldest()?;
        let smoothed_ps = self.rtt.smoothed_ps();
        if self.scoreboard.arrived_after_oldest() < gap || smoothed_ps == 0 {
            return None;
        }
        let patience_ps = self.rtt.recent_max_ps().max(smoothed_ps + smoothed_ps / 8);
        Some(record.sent_ps.saturating_add(patience_ps))
    }

    #[inline]
    fn give_up_deadline(&self) -> Option<u64> {
        let waiting = self.scoreboard.span() > 0 || self.persist.deadline_ps.is_some();
        waiting.then(|| self.progress_ps.saturating_add(self.give_up_ps))
    }
}
