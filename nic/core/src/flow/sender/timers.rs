//! What time brings: retransmission timeouts, gaps that became losses, requests for a grant, giving up.

use super::{Failure, Persist, Sender};
use crate::event::{Event, Publisher};
use crate::loss::{Backoff, Record, overdue_ps};
use crate::path::LossCause;

impl Sender {
    /// Returns when [`Sender::on_timeout`] and [`Sender::poll_transmit`] have something to do without other input.
    ///
    /// May lie in the past. `None` while nothing is outstanding, and after a failure.
    #[inline]
    pub fn poll_timeout(&self) -> Option<u64> {
        if self.failure != Failure::None {
            return None;
        }
        let mut at_ps = self.give_up_deadline().min(self.paced_until_ps.unwrap_or(NEVER));
        at_ps = at_ps.min(self.persist.deadline_ps.unwrap_or(NEVER));
        at_ps = at_ps.min(self.credit_wait.deadline_ps.unwrap_or(NEVER));
        if self.offers.timer() {
            // A balancer that waits for what is not to be had, such as credit, would be woken for the same time for ever.
            let is_to_come = |at_ps: &u64| self.asked_ps.is_none_or(|asked_ps| *at_ps > asked_ps);
            at_ps = at_ps.min(self.balancer.poll_timeout().filter(is_to_come).unwrap_or(NEVER));
        }
        if let Some((_, record)) = self.scoreboard.oldest() {
            at_ps = at_ps.min(self.expiry(record)).min(self.gap_deadline(record));
        }
        (at_ps != NEVER).then_some(at_ps)
    }

    /// Takes the time. Calling early does no harm.
    pub fn on_timeout(&mut self, now_ps: u64, publisher: &mut impl Publisher) {
        if self.failure != Failure::None {
            return;
        }
        //= docs/specs/transport.md#TRN-9
        if self.give_up_deadline() <= now_ps {
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
        self.expire_credit_wait(now_ps);
    }

    /// Declares lost what later arrivals have overtaken by too much.
    //= docs/specs/transport.md#TRN-35
    #[inline]
    pub(super) fn detect_gaps(&mut self, now_ps: u64, publisher: &mut impl Publisher) {
        while let Some((psn, record)) = self.scoreboard.oldest()
            && self.gap_deadline(record) <= now_ps
        {
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
        while let Some((psn, record)) = self.scoreboard.oldest()
            && self.expiry(record) <= now_ps
        {
            //= docs/specs/transport.md#TRN-32
            if record.backoff >= self.backoff {
                self.backoff = self.backoff.saturating_add(1);
            }
            publisher.on_event(now_ps, Event::Timeout { psn });
            self.lose(now_ps, psn, LossCause::Timeout, publisher);
        }
    }

    /// When a transmission times out.
    #[inline]
    fn expiry(&self, record: &Record) -> u64 {
        self.after_rto(record.sent_ps, record.backoff.min(self.backoff))
    }

    /// When the oldest transmission counts as lost for those after it that have arrived, or in a code for its age.
    #[inline]
    fn gap_deadline(&self, oldest: &Record) -> u64 {
        let Self { sack_gap, scoreboard, patience, rtt, .. } = self;
        let arrived_after = scoreboard.arrived_after(oldest);
        let gap_ps = sack_gap.deadline_ps(arrived_after, oldest.sent_ps, patience, rtt).unwrap_or(NEVER);
        if !self.erasure {
            return gap_ps;
        }
        //= docs/specs/erasure.md#ERA-4
        gap_ps.min(overdue_ps(oldest.sent_ps, patience, rtt).unwrap_or(NEVER))
    }

    #[inline]
    fn give_up_deadline(&self) -> u64 {
        let waiting =
            self.scoreboard.span() > 0 || self.persist.deadline_ps.is_some() || self.credit_wait.deadline_ps.is_some();
        if waiting { self.progress_ps.saturating_add(self.give_up_ps) } else { NEVER }
    }
}

/// Later than any time.
const NEVER: u64 = u64::MAX;
