//! Credit from the receiver, for congestion controls that live on it.

use rand_core::RngCore;
use spray_wire::Pull;

use super::{Failure, Persist, Sender, Transmit};
use crate::cc::CongestionControl;
use crate::path::Ev;

impl Sender {
    /// Takes credit.
    pub fn on_pull(&mut self, now_ps: u64, pull: &Pull) {
        if self.failure != Failure::None || !self.uses_credit {
            return;
        }
        //= docs/specs/eqds.md#EQDS-14
        if self.scoreboard.span() == 0 {
            self.progress_ps = now_ps;
        }
        if self.cc.on_pull(pull.credit_bytes) {
            self.stats.pulls += 1;
            self.credit_wait = Persist::default();
        }
    }

    /// Returns a request for credit if one is to go, over any path: none has to be right for it.
    //= docs/specs/eqds.md#EQDS-7
    #[inline]
    pub(super) fn poll_pull_request(&mut self, now_ps: u64, rng: &mut impl RngCore) -> Option<Transmit> {
        let request = self.cc.poll_request(self.credit_wait.due)?;
        if self.credit_wait.due {
            self.credit_wait.due = false;
            self.credit_wait.deadline_ps = Some(self.after_rto(now_ps, self.credit_wait.backoff));
        }
        self.stats.pull_requests += 1;
        Some(Transmit::PullRequest { request, ev: (rng.next_u32() % self.evs) as Ev })
    }

    /// Whether credit lets a packet go; if not, starts to wait for some.
    //= docs/specs/eqds.md#EQDS-14
    #[inline]
    pub(super) fn credit_admits(&mut self, now_ps: u64) -> bool {
        if self.cc.has_credit() {
            return true;
        }
        if self.credit_wait.deadline_ps.is_none() {
            self.credit_wait = Persist { deadline_ps: Some(self.after_rto(now_ps, 0)), due: false, backoff: 0 };
            if self.scoreboard.span() == 0 {
                self.progress_ps = now_ps;
            }
        }
        false
    }

    /// Has the request repeated when credit was long in coming.
    //= docs/specs/eqds.md#EQDS-14
    pub(super) fn expire_credit_wait(&mut self, now_ps: u64) {
        if self.credit_wait.deadline_ps.is_some_and(|at_ps| at_ps <= now_ps) {
            let backoff = self.credit_wait.backoff.saturating_add(1);
            // Not again before it is sent.
            let deadline_ps = Some(self.after_rto(now_ps, backoff));
            self.credit_wait = Persist { deadline_ps, due: true, backoff };
        }
    }
}
