//! The receiver's grant (TRN-5, TRN-6), and credit for controls that use it (EQDS-7, EQDS-14).

use spray_wire::{Data, Pull};

use super::state::retry::Awaited;
use super::{Backoff, CongestionControl, Rng, Sender, Time, Transmit};
use crate::path::{Balancer, Ev, draw};

impl Sender {
    /// Takes the grant of an ACK. A grant never shrinks: a reordered ACK carries an old one.
    //= docs/specs/transport.md#TRN-5 the receiver's grant
    #[inline]
    pub(super) fn on_grant(&mut self, now: Time, max_data: u64) {
        if self.retry.awaits(Awaited::Grant) {
            // A peer that answers is alive, even if it grants nothing.
            self.liveness.progress_at = now;
        }
        if max_data > self.grant.max {
            self.grant.max = max_data;
            self.retry.stop(Awaited::Grant);
        }
    }

    /// Starts to wait for a grant, unless it does or acknowledgements are outstanding.
    //= docs/specs/transport.md#TRN-6 requesting a grant
    #[cold]
    pub(super) fn wait_for_grant(&mut self, now: Time) {
        if self.recovery.scoreboard.span() == 0 && !self.retry.awaits(Awaited::Grant) {
            self.retry.start(Awaited::Grant, self.recovery.after_timeout(now, 0));
            self.liveness.progress_at = now;
        }
    }

    /// Creates an empty data frame with the last settled number, which the receiver must answer.
    //= docs/specs/transport.md#TRN-6 requesting a grant
    pub(super) fn request_grant(&mut self, now: Time, rng: &mut Rng) -> Transmit {
        let (psn, ev) = self.path_of_request(now, rng);
        let backoff = self.retry.on_sent_request();
        self.retry.deadline = self.recovery.after_timeout(now, backoff);
        self.liveness.on_first_sent(now);
        self.stats.grant_requests += 1;
        let data = Data { psn, timestamp: now, ack_now: true, retransmit: true, ..Data::default() };
        Transmit::Data { data, ev }
    }

    /// Returns the last settled number and the path that this packet would be retransmitted over.
    fn path_of_request(&mut self, now: Time, rng: &mut Rng) -> (u64, Ev) {
        let psn = self.recovery.scoreboard.cumulative().wrapping_sub(1);
        let packet = self.send_info(psn, self.frames.header_bytes, true);
        (psn, self.balancer.next_ev(self.path.at(now), &packet, rng))
    }

    /// Takes a pull, which grants credit.
    pub fn on_pull(&mut self, now: Time, pull: &Pull) {
        if self.liveness.has_failed() || !self.uses_credit {
            return;
        }
        //= docs/specs/eqds.md#EQDS-14 A sender without credit
        if self.recovery.scoreboard.span() == 0 {
            self.liveness.progress_at = now;
        }
        if self.cc.on_pull(&self.path, pull.credit_bytes) {
            self.stats.pulls += 1;
            self.retry.stop(Awaited::Credit);
        }
    }

    /// Returns a due request for credit: over a random path, then over the balancer's choice.
    //= docs/specs/eqds.md#EQDS-7 announcing the demand
    //= docs/specs/eqds.md#EQDS-18 Paths of requests and pulls
    pub(super) fn poll_pull_request(&mut self, now: Time, rng: &mut Rng) -> Option<Transmit> {
        let is_due = self.retry.is_due(Awaited::Credit);
        let request = self.cc.poll_request(&self.path, is_due)?;
        let mut ev = draw(self.path.evs, rng);
        if is_due {
            ev = self.path_of_request(now, rng).1;
            //= docs/specs/eqds.md#EQDS-14 A sender without credit
            let backoff = self.retry.on_sent_request().min(MAX_CREDIT_BACKOFF);
            self.retry.deadline = self.recovery.after_timeout(now, backoff);
        }
        self.stats.pull_requests += 1;
        Some(Transmit::PullRequest { request, ev })
    }

    //= docs/specs/eqds.md#EQDS-14 A sender without credit
    pub(super) fn credit_admits(&mut self, now: Time) -> bool {
        if self.cc.has_credit() {
            return true;
        }
        if !self.retry.awaits(Awaited::Credit) {
            self.retry.start(Awaited::Credit, self.recovery.after_timeout(now, 0));
            if self.recovery.scoreboard.span() == 0 {
                self.liveness.progress_at = now;
            }
        }
        false
    }
}

/// Maximum doublings of the timeout between requests of a sender without credit.
const MAX_CREDIT_BACKOFF: Backoff = 2;
