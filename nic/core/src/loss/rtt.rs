//! Smoothed round-trip time and its variation (RFC 6298 §2), and the largest one seen lately.

use crate::Time;

/// Estimates a connection's round-trip time from samples, in picoseconds, with integers only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttEstimator {
    srtt_ps: u64,
    rttvar_ps: u64,
    min_ps: u64,
    epoch_start: Time,
    epoch_max_ps: u64,
    last_epoch_max_ps: u64,
}

impl RttEstimator {
    /// Takes a round-trip time measured at `now`, brought into the range of 1 ps to 36 hours.
    pub fn on_sample(&mut self, now: Time, rtt_ps: u64) {
        let rtt_ps = rtt_ps.clamp(1, MAX_SAMPLE_PS);
        self.smooth(rtt_ps);
        self.track_max(now, rtt_ps);
    }

    /// The smoothed round-trip time (SRTT); 0 before the first sample.
    #[inline]
    pub fn smoothed_ps(&self) -> u64 {
        self.srtt_ps
    }

    /// The least round-trip time seen; 0 before the first sample.
    #[inline]
    pub fn min_ps(&self) -> u64 {
        self.min_ps
    }

    /// The largest round-trip time among samples of the last one to two smoothed RTTs before the latest sample;
    /// 0 before the first.
    ///
    /// Silence does not age it. After a timeout the times just before it count (REPS appendix A).
    #[inline]
    pub fn recent_max_ps(&self) -> u64 {
        self.epoch_max_ps.max(self.last_epoch_max_ps)
    }

    /// Returns `SRTT + 4 RTTVAR`, or `None` before the first sample.
    #[inline]
    pub fn timeout_ps(&self) -> Option<u64> {
        //= docs/specs/transport.md#TRN-30 smoothed round-trip time
        (self.srtt_ps != 0).then(|| self.srtt_ps + 4 * self.rttvar_ps)
    }

    //= docs/specs/transport.md#TRN-30 smoothed round-trip time
    fn smooth(&mut self, rtt_ps: u64) {
        if self.srtt_ps == 0 {
            (self.srtt_ps, self.rttvar_ps, self.min_ps) = (rtt_ps, rtt_ps / 2, rtt_ps);
            return;
        }
        // RFC 6298 §2.3 uses the old SRTT for RTTVAR, so this order matters.
        let deviation_ps = self.srtt_ps.abs_diff(rtt_ps);
        self.rttvar_ps = self.rttvar_ps - self.rttvar_ps / 4 + deviation_ps / 4;
        self.srtt_ps = (self.srtt_ps - self.srtt_ps / 8 + rtt_ps / 8).max(1);
        self.min_ps = self.min_ps.min(rtt_ps);
    }

    //= docs/specs/transport.md#TRN-33 largest recent round-trip time
    fn track_max(&mut self, now: Time, rtt_ps: u64) {
        let age_ps = now.since(self.epoch_start);
        if age_ps >= self.srtt_ps {
            let gone = age_ps >= 2 * self.srtt_ps;
            self.last_epoch_max_ps = if gone { 0 } else { self.epoch_max_ps };
            self.epoch_start = now;
            self.epoch_max_ps = 0;
        }
        self.epoch_max_ps = self.epoch_max_ps.max(rtt_ps);
    }
}

/// Largest sample: 36 hours. Sums of a few samples stay far from overflow.
pub const MAX_SAMPLE_PS: u64 = 1 << 57;
