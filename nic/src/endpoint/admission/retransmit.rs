use spray_core::Time;

use crate::endpoint::HandshakeConfig;

/// Retransmission of a handshake frame, with doubling intervals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retransmit {
    sent: u32,
    pub(crate) at: Time,
}

impl Retransmit {
    pub(crate) const OFF: Self = Self { sent: 0, at: Time::NEVER };

    /// Starts with a frame that is due at `now`.
    pub(crate) fn start(now: Time) -> Self {
        Self { sent: 0, at: now }
    }

    /// Repeats nothing; the time is over at `at`.
    pub(crate) fn none_until(at: Time) -> Self {
        Self { sent: u32::MAX, at }
    }

    /// Returns whether a frame was sent before.
    pub(crate) fn is_repeated(&self) -> bool {
        self.sent > 1
    }

    /// Counts a frame that is sent now, and schedules the next. Returns `false` after all attempts.
    //= docs/specs/endpoint.md#END-1 connect is repeated
    pub(crate) fn again(&mut self, now: Time, config: &HandshakeConfig) -> bool {
        if self.sent >= config.attempts {
            return false;
        }
        self.at = now.after(config.retry_ps.saturating_mul(1 << self.sent.min(3)).max(1));
        self.sent += 1;
        true
    }
}
