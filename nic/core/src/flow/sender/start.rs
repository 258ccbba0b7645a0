//! Senders that begin as if much had been sent: for tests of what counts beyond limits.

use super::Sender;
use crate::flow::tests::Before;

impl Sender {
    /// Begins as if so much had been sent and acknowledged.
    pub(in crate::flow) fn start_after(&mut self, before: &Before) {
        let Before { packets, messages, bytes } = *before;
        self.recovery.scoreboard.start_at(packets);
        self.segmenter.start_at(messages);
        (self.grant.sent, self.grant.max) = (bytes, self.grant.max + bytes);
        (self.stats.packets_sent, self.stats.packets_acked) = (packets, packets);
        (self.stats.bytes_sent, self.stats.bytes_acked) = (bytes, bytes);
    }
}
