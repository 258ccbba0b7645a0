//! A host's own link, shared by testbed and simulator. Frames are serialised one after another.
//! Control frames are sent at once; data and its path are chosen only when the link is free.

use spray_core::link::serialisation_ceil_ps;

/// An emulated link that a host sends on. Times are picoseconds of scenario time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLink {
    rate_bps: u64,
    latency_ps: u64,
    free_ps: u64,
}

impl HostLink {
    /// Creates a free link of `rate_bps`, at least 1, and `latency_ps` to the far end.
    pub const fn new(rate_bps: u64, latency_ps: u64) -> Self {
        Self { rate_bps, latency_ps, free_ps: 0 }
    }

    /// Returns when the last frame has left. No data is put on the link earlier.
    pub const fn free_ps(&self) -> u64 {
        self.free_ps
    }

    /// Puts a frame on the link; returns when it has arrived at the far end.
    pub fn send(&mut self, now_ps: u64, bytes: u64) -> u64 {
        self.free_ps = self.free_ps.max(now_ps) + serialisation_ceil_ps(bytes, self.rate_bps);
        self.free_ps + self.latency_ps
    }

    /// Sets the rate of later frames.
    pub fn set_rate(&mut self, rate_bps: u64) {
        self.rate_bps = rate_bps.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_spaced_by_the_rate_of_the_link() {
        let mut link = HostLink::new(400_000_000_000, 1_000_000);
        assert_eq!(link.send(0, 4_150), 83_000 + 1_000_000);
        assert_eq!(link.send(0, 64), 84_280 + 1_000_000);
        assert_eq!(link.free_ps(), 84_280);
        assert_eq!(link.send(100_000, 64), 101_280 + 1_000_000);
    }
}
