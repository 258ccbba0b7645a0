//! Segmenters that begin as if many messages had been sent, to test numbers beyond limits.

use super::{MESSAGE_SLOTS, Outgoing, Segmenter};

impl Segmenter {
    /// Begins as if this number of messages had been delivered and every slot been used.
    pub(in crate::flow) fn start_at(&mut self, messages: u32) {
        self.slots.resize(MESSAGE_SLOTS, Outgoing { free: true, ..Outgoing::default() });
        (self.oldest, self.cutting, self.newest) = (messages, messages, messages);
    }
}
