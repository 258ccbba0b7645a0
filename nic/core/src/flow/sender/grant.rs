//! The peer's grant: how many payload bytes may be sent over the connection's life (TRN-5, TRN-6).

use rand_core::RngCore;
use spray_wire::Data;

use super::retry::Awaited;
use super::{Sender, Transmit};
use crate::path::Balancer;

/// The bytes that the peer granted, and the bytes used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    /// Payload bytes sent at least once.
    pub sent: u64,
    pub max: u64,
}

impl Grant {
    #[inline]
    pub(super) fn admits(&self, payload_bytes: u16) -> bool {
        u64::from(payload_bytes) <= self.max.saturating_sub(self.sent)
    }

    #[inline]
    pub(super) fn is_used_up(&self) -> bool {
        self.sent >= self.max
    }
}

impl Sender {
    /// Takes the grant of an ACK. A grant never shrinks: a reordered ACK brings an old one.
    //= docs/specs/transport.md#TRN-5 the receiver's grant
    #[inline]
    pub(super) fn on_grant(&mut self, now_ps: u64, max_data: u64) {
        if self.retry.awaits(Awaited::Grant) {
            // A peer that answers is alive, however long it holds its grant back.
            self.liveness.progress_ps = now_ps;
        }
        if max_data > self.grant.max {
            self.grant.max = max_data;
            self.retry.stop(Awaited::Grant);
        }
    }

    /// Begins to wait for a new grant, unless acknowledgements are still to come or the wait has begun.
    //= docs/specs/transport.md#TRN-6 asking for a grant
    #[cold]
    pub(super) fn wait_for_grant(&mut self, now_ps: u64) {
        if self.recovery.scoreboard.span() == 0 && !self.retry.awaits(Awaited::Grant) {
            self.retry.start(Awaited::Grant, self.recovery.after_timeout(now_ps, 0));
            self.liveness.progress_ps = now_ps;
        }
    }

    /// Makes an empty data frame with the last settled number. The receiver must answer it; nothing else follows.
    //= docs/specs/transport.md#TRN-6 asking for a grant
    pub(super) fn ask_for_grant(&mut self, now_ps: u64, rng: &mut impl RngCore) -> Transmit {
        let psn = self.recovery.scoreboard.cumulative().wrapping_sub(1);
        let packet = self.send_info(psn, self.frames.header_bytes, true);
        let ev = self.balancer.next_ev(now_ps, &packet, rng);
        let backoff = self.retry.on_asked();
        self.retry.deadline_ps = self.recovery.after_timeout(now_ps, backoff);
        self.liveness.on_first_sent(now_ps);
        self.stats.grant_requests += 1;
        let data = Data { psn, timestamp_ps: now_ps, ack_now: true, retransmit: true, ..Data::default() };
        Transmit::Data { data, ev }
    }
}
