//! Receivers that begin as if much had arrived, to test numbers beyond limits.

use super::{Order, Receiver};
use crate::flow::tests::Before;

impl Receiver {
    /// Begins as if this much had arrived and been consumed.
    pub(in crate::flow) fn start_after(&mut self, before: &Before) {
        let Before { packets, bytes, messages } = *before;
        (self.cumulative, self.highest, self.order) = (packets, packets, Order::starting_at(packets));
        (self.grant.consumed, self.grant.told) = (bytes, self.grant.told + bytes);
        self.expect_message(messages);
        (self.stats.packets, self.stats.bytes) = (packets, bytes);
    }
}
