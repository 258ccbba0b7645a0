//! Credit from the receiver, for congestion controls that use it (EQDS-7, EQDS-14).

use rand_core::RngCore;
use spray_wire::Pull;

use super::retry::Awaited;
use super::{Sender, Transmit};
use crate::cc::CongestionControl;
use crate::path::draw;

impl Sender {
    /// Takes a pull, which brings credit.
    pub fn on_pull(&mut self, now_ps: u64, pull: &Pull) {
        if self.liveness.has_failed() || !self.uses_credit {
            return;
        }
        //= docs/specs/eqds.md#EQDS-14 A sender without credit
        if self.recovery.scoreboard.span() == 0 {
            self.liveness.progress_ps = now_ps;
        }
        if self.cc.on_pull(pull.credit_bytes) {
            self.stats.pulls += 1;
            self.retry.stop(Awaited::Credit);
        }
    }

    /// Returns a request for credit if one is due. It goes over a random path.
    //= docs/specs/eqds.md#EQDS-7 telling the demand
    pub(super) fn poll_pull_request(&mut self, now_ps: u64, rng: &mut impl RngCore) -> Option<Transmit> {
        let is_due = self.retry.is_due(Awaited::Credit);
        let request = self.cc.poll_request(is_due)?;
        if is_due {
            let backoff = self.retry.on_asked();
            self.retry.deadline_ps = self.recovery.after_timeout(now_ps, backoff);
        }
        self.stats.pull_requests += 1;
        Some(Transmit::PullRequest { request, ev: draw(self.frames.evs, rng) })
    }

    /// Whether credit lets a packet go. If not, begins to wait for credit.
    //= docs/specs/eqds.md#EQDS-14 A sender without credit
    pub(super) fn credit_admits(&mut self, now_ps: u64) -> bool {
        if self.cc.has_credit() {
            return true;
        }
        if !self.retry.awaits(Awaited::Credit) {
            self.retry.start(Awaited::Credit, self.recovery.after_timeout(now_ps, 0));
            if self.recovery.scoreboard.span() == 0 {
                self.liveness.progress_ps = now_ps;
            }
        }
        false
    }
}
