//! A host's own link: one frame after another, each stamped with its arrival at the far end.
//!
//! The rule that the emulated endpoint and the simulator share: control frames go at once, behind the frame in progress and each
//! other; the next data packet, and its path, is chosen only when the link is free.

/// An emulated link that a host sends on. All times are picoseconds of scenario time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLink {
    rate_bps: u64,
    latency_ps: u64,
    free_ps: u64,
}

impl HostLink {
    /// A free link of `rate_bps`, at least 1, and `latency_ps` to the far end.
    pub const fn new(rate_bps: u64, latency_ps: u64) -> Self {
        Self { rate_bps, latency_ps, free_ps: 0 }
    }

    /// When the frame in progress, and all that wait behind it, have left. No data is to be put on the link before.
    #[inline]
    pub const fn free_ps(&self) -> u64 {
        self.free_ps
    }

    /// Puts a frame on the link behind the one in progress; returns when its last bit is at the far end.
    #[inline]
    pub fn send(&mut self, now_ps: u64, bytes: u64) -> u64 {
        self.free_ps = self.free_ps.max(now_ps) + serialisation_ps(bytes, self.rate_bps);
        self.free_ps + self.latency_ps
    }

    /// From now on the link runs at `rate_bps`; frames already put on it keep their times.
    pub fn set_rate(&mut self, rate_bps: u64) {
        self.rate_bps = rate_bps.max(1);
    }
}

/// Picoseconds that a frame takes on a link, rounded up so that the link never carries more than its rate.
#[inline]
pub const fn serialisation_ps(bytes: u64, link_bps: u64) -> u64 {
    (bytes * 8_000_000_000_000).div_ceil(link_bps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_follow_each_other_at_the_rate_of_the_link() {
        let mut link = HostLink::new(400_000_000_000, 1_000_000);
        assert_eq!(link.send(0, 4_150), 83_000 + 1_000_000);
        assert_eq!(link.send(0, 64), 84_280 + 1_000_000);
        assert_eq!(link.free_ps(), 84_280);
        assert_eq!(link.send(100_000, 64), 101_280 + 1_000_000);
    }

    #[test]
    fn a_link_never_carries_more_than_its_rate() {
        assert_eq!(serialisation_ps(1, 3_000_000_000_000), 3);
    }
}
