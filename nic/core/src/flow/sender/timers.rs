//! Timers: retransmission timeouts, the gap rule, repeated requests, giving up.

use super::{Balancer, Event, Publisher, Sender, Time};
use crate::feedback::LossCause;
use crate::loss::Repair;

impl Sender {
    /// Returns when [`Sender::on_timeout`] and [`Sender::poll_transmit`] are due without other
    /// input, possibly in the past. `None` while nothing is outstanding, and after a failure.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.liveness.has_failed() {
            return None;
        }
        let mut at = self.give_up_deadline().min(self.paced_until).min(self.retry.deadline);
        if self.features.timer() {
            at = at.min(self.balancer_deadline());
        }
        at = at.min(self.recovery.deadline());
        (at != Time::NEVER).then_some(at)
    }

    /// Handles what is due by `now`. Calling early does no harm.
    pub fn on_timeout(&mut self, now: Time, publisher: &mut impl Publisher) {
        if self.liveness.has_failed() {
            return;
        }
        //= docs/specs/transport.md#TRN-9 giving up
        if self.give_up_deadline() <= now {
            return self.liveness.fail();
        }
        self.detect_gaps(now, publisher);
        self.expire(now, publisher);
        if self.paced_until <= now {
            self.paced_until = Time::NEVER;
        }
        if self.retry.deadline <= now {
            let backoff = self.retry.on_expired();
            // Not due again before it is sent.
            self.retry.deadline = self.recovery.after_timeout(now, backoff);
        }
    }

    //= docs/specs/transport.md#TRN-35 gap rule
    #[inline]
    pub(super) fn detect_gaps(&mut self, now: Time, publisher: &mut impl Publisher) {
        let mut missing = self.recovery.widest_gap();
        while let Some(psn) = missing {
            self.declare_lost(now, psn, LossCause::SackGap, publisher);
            missing = self.recovery.scoreboard.oldest_behind(1);
        }
        while let Some(psn) = self.recovery.overtaken(now) {
            self.declare_lost(now, psn, LossCause::SackGap, publisher);
        }
        //= docs/specs/irn.md#IRN-3 lost packets
        while let Some(psn) = self.recovery.missing_in_recovery() {
            self.declare_lost(now, psn, LossCause::SackGap, publisher);
        }
    }

    //= docs/specs/transport.md#TRN-34 timeout per transmission
    fn expire(&mut self, now: Time, publisher: &mut impl Publisher) {
        while let Some(psn) = self.recovery.take_expired(now) {
            publisher.on_event(now, Event::Timeout { psn });
            self.paused = false;
            //= docs/specs/go-back-n.md#GBN-6 timeouts
            if self.recovery.repair == Repair::GoBackN {
                self.go_back(now, LossCause::Timeout, publisher);
            } else {
                self.declare_lost(now, psn, LossCause::Timeout, publisher);
            }
        }
    }

    /// Returns when to poll the balancer again, except earlier times: a balancer that waits for
    /// something else, such as credit, would wake the sender for ever.
    #[inline(never)]
    fn balancer_deadline(&self) -> Time {
        let is_to_come = |at: &Time| self.blocked_at.is_none_or(|blocked_at| *at > blocked_at);
        self.balancer.poll_timeout(&self.path).filter(is_to_come).unwrap_or(Time::NEVER)
    }

    #[inline]
    fn give_up_deadline(&self) -> Time {
        let is_waiting = self.recovery.scoreboard.span() > 0 || !self.retry.is_idle();
        if is_waiting { self.liveness.deadline() } else { Time::NEVER }
    }
}
