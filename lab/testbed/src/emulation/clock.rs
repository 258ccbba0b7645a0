//! The clock of an emulation: slowed down, and waiting for late threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spray_nic::sys::monotonic_ns;

/// The machine's monotonic clock, slowed by a factor: `scenario_ps = (CLOCK_MONOTONIC - epoch) /
/// dilation`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DilatedClock {
    epoch_ns: u64,
    dilation: f64,
}

impl DilatedClock {
    /// Creates a clock that is 0 at `epoch_ns` of [`monotonic_ns`]. The dilation is at least 1e-3.
    pub fn new(epoch_ns: u64, dilation: f64) -> Self {
        Self { epoch_ns, dilation: dilation.max(1e-3) }
    }

    /// Returns the time now; 0 before the epoch.
    pub fn now_ps(&self) -> u64 {
        let elapsed_ns = monotonic_ns().saturating_sub(self.epoch_ns);
        (elapsed_ns as f64 * (1000.0 / self.dilation)) as u64
    }
}

/// A dilated clock at most one step ahead of what all drivers have handled.
///
/// If the machine stalls, the clock stops, so that frames do not become late; it does not catch up.
/// With steps below the latency between two hosts, a frame is always *sent* before its receiver
/// handles later events. Whether it has also *arrived* depends on the dilation.
//= docs/specs/emulation.md#EMU-6 bounded clock
#[derive(Debug, Clone)]
pub struct PatientClock {
    shared: Arc<Shared>,
    driver: usize,
    last_ps: u64,
}

#[derive(Debug)]
struct Shared {
    clock: DilatedClock,
    max_step_ps: u64,
    /// Lag behind the dilated clock.
    lag_ps: AtomicU64,
    /// The time up to which each driver has handled everything; `u64::MAX` after its end.
    handled_ps: Box<[AtomicU64]>,
}

impl PatientClock {
    /// Creates one clock for each of `drivers` threads.
    pub fn new(clock: DilatedClock, max_step_ps: u64, drivers: usize) -> Vec<Self> {
        let handled_ps = (0..drivers).map(|_| AtomicU64::new(0)).collect();
        let shared = Arc::new(Shared { clock, max_step_ps, lag_ps: AtomicU64::new(0), handled_ps });
        (0..drivers).map(|driver| Self { shared: Arc::clone(&shared), driver, last_ps: 0 }).collect()
    }

    /// Returns the scenario time, which never decreases. The driver is done up to `handled_ps`.
    pub fn tick(&mut self, handled_ps: u64) -> u64 {
        let shared = &*self.shared;
        shared.handled_ps[self.driver].store(handled_ps, Ordering::Relaxed);
        let slowest = shared.handled_ps.iter().map(|handled| handled.load(Ordering::Relaxed)).min().unwrap_or(0);
        let limit_ps = slowest.saturating_add(shared.max_step_ps);
        let dilated_ps = shared.clock.now_ps();
        let excess_ps = dilated_ps.saturating_sub(limit_ps);
        let lag_ps = shared.lag_ps.fetch_max(excess_ps, Ordering::Relaxed).max(excess_ps);
        self.last_ps = self.last_ps.max(dilated_ps.saturating_sub(lag_ps));
        self.last_ps
    }
}

/// A driver that has ended must not stop the others' clocks.
impl Drop for PatientClock {
    fn drop(&mut self) {
        self.shared.handled_ps[self.driver].store(u64::MAX, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::{thread::sleep, time::Duration};

    use super::*;

    #[test]
    fn dilation_slows_time() {
        let clock = DilatedClock::new(monotonic_ns(), 1000.0);
        sleep(Duration::from_millis(5));
        let now_ps = clock.now_ps();
        assert!((5_000_000..500_000_000).contains(&now_ps), "{now_ps}");
        assert_eq!(DilatedClock::new(u64::MAX, 1.0).now_ps(), 0);
    }

    #[test]
    fn patience_bounds_the_step_and_does_not_catch_up() {
        let mut clocks = PatientClock::new(DilatedClock::new(monotonic_ns(), 1.0), 1_000_000, 2);
        sleep(Duration::from_millis(2));
        let first = clocks[0].tick(0);
        assert_eq!(first, 1_000_000, "one step from the other driver's zero");
        assert!(clocks[0].tick(first) <= 1_000_000 + 1_000_000);
        let mut now = [first; 2];
        for _ in 0..10 {
            sleep(Duration::from_millis(1));
            for driver in 0..2 {
                let next = clocks[driver].tick(now[driver]);
                assert!(next >= now[driver] && next <= now[0].min(now[1]) + 1_000_000);
                now[driver] = next;
            }
        }
        assert!(clocks[0].shared.lag_ps.load(Ordering::Relaxed) > 5_000_000_000);
        clocks.truncate(1);
        let alone = clocks[0].tick(now[0]);
        assert!(alone <= now[0] + 1_000_000);
    }
}
