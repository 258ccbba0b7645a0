//! A constant rate, paced packet by packet. Feedback changes nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AckInfo, CcConfig, CongestionControl, PS_PER_SECOND, Scheme, part_rate};
use crate::feedback::LossCause;
use crate::units::Gbps;

/// The settings of [`FixedRate`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct FixedRateConfig {
    /// Wire rate of a connection. By default the rate of the sender's link.
    #[schemars(range(min = 0.000_001, max = 1_000_000))]
    pub rate_gbps: Option<Gbps>,
}

/// Paces at a rate below a window that never moves.
///
/// A sender that comes late does not catch up: the gap to the next packet counts from the late one.
#[derive(Clone, Debug)]
pub struct FixedRate {
    /// Earliest time of the next packet.
    next_ps: u64,
    /// The fraction of a ps that `next_ps` leaves out, in 2^-16 ps.
    fraction: u16,
    /// Time of one byte in units of 2^-16 ps.
    byte_time: u64,
    window_bytes: u64,
}

impl Scheme for FixedRate {
    type Config = FixedRateConfig;

    /// The time of the next packet, with its fraction.
    const STATE_BYTES: usize = size_of::<(u64, u16)>();

    fn share(own: &FixedRateConfig, count: u64) -> FixedRateConfig {
        FixedRateConfig { rate_gbps: own.rate_gbps.map(|rate| part_rate(rate, count)) }
    }

    /// Paces at the configured rate; the window is `max_window_bytes`.
    fn make(own: &FixedRateConfig, config: &CcConfig) -> Self {
        let rate_bps = own.rate_gbps.map_or(config.link_bps, Gbps::bps);
        Self {
            next_ps: 0,
            fraction: 0,
            byte_time: ((8 * PS_PER_SECOND) << 16) / rate_bps.max(1),
            window_bytes: config.max_window_bytes.max(u64::from(config.packet_bytes.max(1))),
        }
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
