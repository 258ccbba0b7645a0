//! The peer's grant: payload bytes over the connection's life (TRN-5, TRN-6).

#[derive(Clone, Copy, Debug)]
pub(in crate::flow::sender) struct Grant {
    /// Payload bytes sent at least once.
    pub sent: u64,
    pub max: u64,
}

impl Grant {
    #[inline]
    pub fn admits(&self, payload_bytes: u16) -> bool {
        u64::from(payload_bytes) <= self.max.saturating_sub(self.sent)
    }

    #[inline]
    pub fn is_used_up(&self) -> bool {
        self.sent >= self.max
    }
}
