//! Timers: retransmission timeouts, the gap rule, repeated requests, giving up.

use super::{NEVER, Sender};
use crate::event::{Event, Publisher};
use crate::feedback::LossCause;
use crate::loss::Repair;
use crate::path::Balancer;

impl Sender {
    /// Returns when [`Sender::on_timeout`] and [`Sender::poll_transmit`] have something to do without other input.
    ///
    /// May lie in the past. `None` while nothing is outstanding, and after a failure.
    #[inline]
    pub fn poll_timeout(&self) -> Option<u64> {
        if self.liveness.has_failed() {
            return None;
        }
        let mut at_ps = self.give_up_deadline_ps().min(self.paced_until_ps).min(self.retry.deadline_ps);
        if self.offers.timer() {
            at_ps = at_ps.min(self.balancer_deadline_ps());
        }
        at_ps = at_ps.min(self.recovery.deadline_ps());
        (at_ps != NEVER).then_some(at_ps)
    }

    /// Does what is due by `now_ps`. Calling early does no harm.
    pub fn on_timeout(&mut self, now_ps: u64, publisher: &mut impl Publisher) {
        if self.liveness.has_failed() {
            return;
        }
        //= docs/specs/transport.md#TRN-9 giving up
        if self.give_up_deadline_ps() <= now_ps {
            return self.liveness.fail();
        }
        self.detect_gaps(now_ps, publisher);
        self.expire(now_ps, publisher);
        if self.paced_until_ps <= now_ps {
            self.paced_until_ps = NEVER;
        }
        if self.retry.deadline_ps <= now_ps {
            let backoff = self.retry.on_expired();
            // It is not due again before it is sent.
            self.retry.deadline_ps = self.recovery.after_timeout(now_ps, backoff);
        }
    }

    /// Declares lost every transmission that the gap rule finds.
    //= docs/specs/transport.md#TRN-35 gap rule
    #[inline]
    pub(super) fn detect_gaps(&mut self, now_ps: u64, publisher: &mut impl Publisher) {
        let mut missing = self.recovery.widest_gap();
        while let Some(psn) = missing {
            self.lose(now_ps, psn, LossCause::SackGap, publisher);
            missing = self.recovery.scoreboard.oldest_behind(1);
        }
        while let Some(psn) = self.recovery.overtaken(now_ps) {
            self.lose(now_ps, psn, LossCause::SackGap, publisher);
        }
        //= docs/specs/irn.md#IRN-3 what is lost
        while let Some(psn) = self.recovery.missing_in_recovery() {
            self.lose(now_ps, psn, LossCause::SackGap, publisher);
        }
    }

    /// Declares lost every transmission whose own timeout ran out.
    //= docs/specs/transport.md#TRN-34 a timeout of its own
    fn expire(&mut self, now_ps: u64, publisher: &mut impl Publisher) {
        while let Some(psn) = self.recovery.take_expired(now_ps) {
            publisher.on_event(now_ps, Event::Timeout { psn });
            self.paused = false;
            if self.recovery.repair == Repair::GoBack {
                self.go_back(now_ps, LossCause::Timeout, publisher);
            } else {
                self.lose(now_ps, psn, LossCause::Timeout, publisher);
            }
        }
    }

    /// When the balancer wants to be asked again. A time at which it was asked before does not come again: a balancer
    /// that waits for something else, such as credit, would be woken at that time for ever.
    #[inline(never)]
    fn balancer_deadline_ps(&self) -> u64 {
        let is_to_come = |at_ps: &u64| self.asked_ps.is_none_or(|asked_ps| *at_ps > asked_ps);
        self.balancer.poll_timeout(&self.path).filter(is_to_come).unwrap_or(NEVER)
    }

    #[inline]
    fn give_up_deadline_ps(&self) -> u64 {
        let is_waiting = self.recovery.scoreboard.span() > 0 || !self.retry.is_idle();
        if is_waiting { self.liveness.deadline_ps() } else { NEVER }
    }
}
