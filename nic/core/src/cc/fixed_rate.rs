//! A constant rate, paced packet by packet, whatever the network says.

use super::{AckInfo, CcConfig, CongestionControl, PS_PER_SECOND, Scheme};
use crate::feedback::LossCause;

/// Paces at a rate below a window that never moves.
///
/// A sender that comes late does not catch up: the gap to the next packet counts from the late one.
#[derive(Clone, Debug)]
pub struct FixedRate {
    /// Earliest time of the next packet.
    next_ps: u64,
    /// What `next_ps` leaves out, in 2^-16 ps.
    fraction: u16,
    /// Time of one byte in units of 2^-16 ps.
    byte_time: u64,
    window_bytes: u64,
}

impl FixedRate {
    /// Paces at the configured rate; the window is `max_window_bytes`.
    pub fn new(config: &CcConfig) -> Self {
        Self {
            next_ps: 0,
            fraction: 0,
            byte_time: ((8 * PS_PER_SECOND) << 16) / config.fixed_rate_bps.max(1),
            window_bytes: config.max_window_bytes.max(u64::from(config.packet_bytes.max(1))),
        }
    }
}

impl Scheme for FixedRate {
    /// The time of the next packet, with its fraction.
    const STATE_BYTES: usize = size_of::<(u64, u16)>();

    fn make(config: &CcConfig) -> Self {
        Self::new(config)
    }
}

impl CongestionControl for FixedRate {
    fn on_ack(&mut self, _now_ps: u64, _ack: &AckInfo) {}

    fn on_loss(&mut self, _now_ps: u64, _bytes: u32, _cause: LossCause) {}

    fn on_send(&mut self, now_ps: u64, bytes: u32) {
        let gap = u128::from(bytes) * u128::from(self.byte_time) + u128::from(self.fraction);
        let gap_ps = u64::try_from(gap >> 16).unwrap_or(u64::MAX);
        self.fraction = gap as u16;
        self.next_ps = self.next_ps.max(now_ps).saturating_add(gap_ps);
    }

    #[inline]
    fn window_bytes(&self) -> u64 {
        self.window_bytes
    }

    #[inline]
    fn poll_send(&self, now_ps: u64) -> u64 {
        self.next_ps.max(now_ps)
    }
}
