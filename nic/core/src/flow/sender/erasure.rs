//! Sending in an ideal erasure code: `docs/specs/erasure.md`.

use spray_wire::Ack;

use super::{Sender, Time};
use crate::loss::Repair;

impl Sender {
    /// Uses the code, as the receiver must, from the first packet. No payload may travel.
    //= docs/specs/erasure.md#ERA-1 fresh coded packets
    pub fn erasure_coded(mut self) -> Self {
        self.recovery.set_repair(Repair::ErasureCode);
        self
    }

    /// Whether a cumulative number beyond the packets sent is valid: it covers queued messages.
    //= docs/specs/erasure.md#ERA-5 settling numbers never sent
    pub(super) fn accepts_cumulative(&self, cumulative: u64) -> bool {
        let beyond = cumulative - self.recovery.scoreboard.next_psn();
        self.recovery.repair == Repair::ErasureCode && beyond <= self.segmenter.unsegmented_packets()
    }

    /// Skips packets of messages that the receiver has. All packets sent are settled.
    //= docs/specs/erasure.md#ERA-5 settling numbers never sent
    #[cold]
    pub(super) fn skip_delivered(&mut self, now: Time, ack: &Ack) {
        while self.recovery.scoreboard.next_psn() < ack.cumulative
            && let Some(segment) = self.segmenter.next()
        {
            self.segmenter.on_sent(&segment, self.recovery.scoreboard.skip());
            self.grant.sent += u64::from(segment.payload_bytes);
            self.stats.packets_spared += 1;
            self.stats.messages_delivered += u64::from(self.segmenter.settle(segment.slot, now));
            self.liveness.progress_at = now;
        }
    }
}
