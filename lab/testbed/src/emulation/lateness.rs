//! Lateness of frames.

use hdrhistogram::Histogram;

/// Histogram of lateness in picoseconds of scenario time.
#[derive(Debug, Clone)]
pub struct Lateness {
    histogram: Histogram<u64>,
    frames: u64,
}

impl Lateness {
    /// Upper bound of recorded values: 10 s of scenario time.
    const MAX_PS: u64 = 10_000_000_000_000;

    /// Records a frame; 0 = on time.
    pub fn record(&mut self, late_ps: u64) {
        self.frames += 1;
        if late_ps > 0 {
            self.histogram.saturating_record(late_ps);
        }
    }

    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("all have the same bounds");
        self.frames += other.frames;
    }

    pub fn late_frames(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the quantile (0 to 1) of the lateness of *all* frames; 0 if that share was on time.
    pub fn quantile_ps(&self, quantile: f64) -> u64 {
        let on_time = self.frames - self.histogram.len();
        let rank = (quantile * self.frames as f64).ceil() as u64;
        if self.histogram.is_empty() || rank <= on_time {
            return 0;
        }
        self.histogram.value_at_quantile((rank - on_time) as f64 / self.histogram.len() as f64)
    }
}

impl Default for Lateness {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, Self::MAX_PS, 2).expect("constant bounds are valid");
        Self { histogram, frames: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_counts_frames_on_time_as_zero() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile_ps(0.99), 0);
        (0..985).for_each(|_| lateness.record(0));
        (1..=15).for_each(|n| lateness.record(n * 1_000));
        assert_eq!((lateness.frames, lateness.late_frames(), lateness.quantile_ps(0.98)), (1000, 15, 0));
        let p99 = lateness.quantile_ps(0.99);
        assert!((5_000..5_100).contains(&p99), "{p99}");
        let mut both = lateness.clone();
        both.merge(&lateness);
        assert_eq!((both.frames, both.late_frames()), (2000, 30));
        assert!((5_000..5_100).contains(&both.quantile_ps(0.99)));
    }
}
