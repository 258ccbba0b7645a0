//! Segmenters that begin as if many messages had been sent: for tests of what counts beyond limits.

use super::{MESSAGE_SLOTS, Outgoing, Segmenter};

impl Segmenter {
    /// Begins as if so many messages had been delivered. Every slot has been used by then.
    pub(in crate::flow) fn start_at(&mut self, messages: u32) {
        self.slots.resize(MESSAGE_SLOTS, Outgoing { free: true, ..Outgoing::default() });
        (self.oldest, self.cutting, self.newest) = (messages, messages, messages);
    }
}
