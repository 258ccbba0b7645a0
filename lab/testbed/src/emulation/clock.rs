//! The clock of an emulation: slowed down, and waiting for late hosts.

use spray_nic::sys::monotonic_ns;

/// The machine's monotonic clock, slowed by a factor, and at most one step ahead of what all hosts
/// have handled.
///
/// If the machine stalls, the clock stops, so that frames do not become late; it does not catch up.
/// With steps below the latency between two hosts, a frame is always *sent* before its receiver
/// handles later events. Whether it has also *arrived* depends on the dilation.
//= docs/specs/emulation.md#EMU-6 bounded clock
#[derive(Debug)]
pub struct DilatedClock {
    epoch_ns: u64,
    /// Real over scenario time.
    dilation: f64,
    max_step_ps: u64,
    /// Lag behind the dilated clock.
    lag_ps: u64,
    last_ps: u64,
}

impl DilatedClock {
    /// Creates a clock that is 0 now. The dilation is at least 1e-3.
    pub fn new(dilation: f64, max_step_ps: u64) -> Self {
        Self { epoch_ns: monotonic_ns(), dilation: dilation.max(1e-3), max_step_ps, lag_ps: 0, last_ps: 0 }
    }

    /// Returns the scenario time, which never decreases. Everything up to `handled_ps` is handled.
    pub fn tick(&mut self, handled_ps: u64) -> u64 {
        let elapsed_ns = monotonic_ns().saturating_sub(self.epoch_ns);
        let dilated_ps = (elapsed_ns as f64 * (1000.0 / self.dilation)) as u64;
        let limit_ps = handled_ps.saturating_add(self.max_step_ps);
        self.lag_ps = self.lag_ps.max(dilated_ps.saturating_sub(limit_ps));
        self.last_ps = self.last_ps.max(dilated_ps.saturating_sub(self.lag_ps));
        self.last_ps
    }
}

#[cfg(test)]
mod tests {
    use std::{thread::sleep, time::Duration};

    use super::*;

    #[test]
    fn dilation_slows_time() {
        let mut clock = DilatedClock::new(1000.0, u64::MAX);
        sleep(Duration::from_millis(5));
        let now_ps = clock.tick(0);
        assert!((5_000_000..500_000_000).contains(&now_ps), "{now_ps}");
    }

    #[test]
    fn patience_bounds_the_step_and_does_not_catch_up() {
        let mut clock = DilatedClock::new(1.0, 1_000_000);
        sleep(Duration::from_millis(2));
        let first = clock.tick(0);
        assert_eq!(first, 1_000_000, "one step from zero");
        assert_eq!(clock.tick(0), first);
        let mut now = first;
        for _ in 0..10 {
            sleep(Duration::from_millis(1));
            let next = clock.tick(now);
            assert!(next >= now && next <= now + 1_000_000);
            now = next;
        }
        assert!(clock.lag_ps > 5_000_000_000);
    }
}
