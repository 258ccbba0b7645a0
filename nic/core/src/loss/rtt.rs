//! Smoothed round-trip time and its variation (RFC 6298 §2), and the recent maximum.

use crate::Time;

/// Estimates a connection's round-trip time from samples, in picoseconds, with integers only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttEstimator {
    srtt_ps: u64,
    rttvar_ps: u64,
    min_ps: u64,
    recent: RecentMax,
    before_timeout: RecentMax,
}

impl RttEstimator {
    /// Takes a round-trip time, clamped to 1 ps to 36 hours, and the present retransmission
    /// timeout.
    //= docs/specs/transport.md#TRN-33 largest recent round-trip time
    pub fn on_sample(&mut self, now: Time, rtt_ps: u64, timeout_ps: u64) {
        let rtt_ps = rtt_ps.clamp(1, MAX_SAMPLE_PS);
        self.smooth(rtt_ps);
        self.recent.on_sample(now, rtt_ps, self.srtt_ps);
        self.before_timeout.on_sample(now, rtt_ps, timeout_ps);
    }

    /// The smoothed round-trip time (SRTT); 0 before the first sample.
    pub fn smoothed_ps(&self) -> u64 {
        self.srtt_ps
    }

    /// The least round-trip time; 0 before the first sample.
    pub fn min_ps(&self) -> u64 {
        self.min_ps
    }

    /// The largest sample of one to two smoothed RTTs before the latest one; 0 before the first.
    #[inline]
    pub fn recent_max_ps(&self) -> u64 {
        self.recent.max_ps()
    }

    /// The same over one to two retransmission timeouts, for timed-out packets (REPS appendix A).
    #[inline]
    pub fn max_before_timeout_ps(&self) -> u64 {
        self.before_timeout.max_ps()
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
        // RFC 6298 §2.3 uses the old SRTT for RTTVAR, so the order matters.
        let deviation_ps = self.srtt_ps.abs_diff(rtt_ps);
        self.rttvar_ps = self.rttvar_ps - self.rttvar_ps / 4 + deviation_ps / 4;
        self.srtt_ps = (self.srtt_ps - self.srtt_ps / 8 + rtt_ps / 8).max(1);
        self.min_ps = self.min_ps.min(rtt_ps);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RecentMax {
    epoch_start: Time,
    epoch_max_ps: u64,
    last_epoch_max_ps: u64,
}

impl RecentMax {
    #[inline]
    fn on_sample(&mut self, now: Time, rtt_ps: u64, epoch_ps: u64) {
        let age_ps = now.since(self.epoch_start);
        if age_ps >= epoch_ps {
            let gone = age_ps >= epoch_ps.saturating_mul(2);
            self.last_epoch_max_ps = if gone { 0 } else { self.epoch_max_ps };
            self.epoch_start = now;
            self.epoch_max_ps = 0;
        }
        self.epoch_max_ps = self.epoch_max_ps.max(rtt_ps);
    }

    #[inline]
    fn max_ps(&self) -> u64 {
        self.epoch_max_ps.max(self.last_epoch_max_ps)
    }
}

/// Largest sample: 36 hours. Sums of a few samples do not overflow.
pub const MAX_SAMPLE_PS: u64 = 1 << 57;
