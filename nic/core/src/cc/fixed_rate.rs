//! A constant rate, paced packet by packet, regardless of feedback.

use super::fixed_point::{Gaps, after_gap};
use super::{CongestionControl, Now, Path, Scheme, Time, part_rate, settings};
use crate::units::Gbps;

settings! {
    /// The settings of [`FixedRate`].
    pub struct FixedRateConfig {
        /// Wire rate of a connection. By default the rate of the sender's link.
        #[schemars(range(min = 0.000_001, max = 1_000_000))]
        pub rate_gbps: Option<Gbps> = None,
    }
}

/// Paces below a constant window. Late packets shift the next, up to [`Path::catch_up_packets`].
#[derive(Clone, Debug)]
pub struct FixedRate {
    next_at: Time,
    gaps: Gaps,
}

impl Scheme for FixedRate {
    type Config = FixedRateConfig;

    const STATE_BYTES: usize = size_of::<(Time, u32)>();

    fn share(own: &FixedRateConfig, count: u64) -> FixedRateConfig {
        FixedRateConfig { rate_gbps: own.rate_gbps.map(|rate| part_rate(rate, count)) }
    }

    fn make(own: &FixedRateConfig, path: &Path) -> Self {
        let rate_bps = own.rate_gbps.map_or(path.link_bps, Gbps::bps);
        Self { next_at: Time::ZERO, gaps: Gaps::new(rate_bps) }
    }
}

impl CongestionControl for FixedRate {
    fn on_send(&mut self, now: Now<'_>, bytes: u32) {
        let gap_ps = self.gaps.gap_ps(bytes.into());
        self.next_at = after_gap(self.next_at, now.time, gap_ps, now.path.catch_up_packets.into());
    }

    fn window_bytes(&self, path: &Path) -> u64 {
        path.max_window_bytes.max(path.packet_bytes.into())
    }

    fn poll_send(&self, now: Now<'_>) -> Time {
        self.next_at.max(now.time)
    }
}
