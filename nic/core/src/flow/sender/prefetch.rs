//! Prefetches the state of a sender before an event needs it.

use super::{CongestionControl, Sender};

impl Sender {
    /// Reads the state that an acknowledgement or a turn needs, and returns a mix of it.
    #[inline]
    pub fn prefetch(&self) -> u64 {
        let Self { cc, path, segmenter, recovery, liveness, grant, frames, stats, features, .. } = self;
        let oldest = recovery.scoreboard.oldest().map_or(0, |(_, record)| record.message.into());
        cc.window_bytes(path)
            ^ path.base_rtt_ps
            ^ u64::from(path.evs)
            ^ oldest
            ^ recovery.in_flight_bytes
            ^ recovery.rtt.min_ps()
            ^ segmenter.unsent_bytes
            ^ liveness.progress_at.ps()
            ^ grant.sent
            ^ u64::from(frames.header_bytes)
            ^ u64::from(features.packet_feedback)
            ^ stats.acks
            ^ stats.packets_acked
    }
}
