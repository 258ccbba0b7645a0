//! Clocks of drivers.

use crate::sys::monotonic_ns;
use spray_core::Time;

/// A driver's clock.
pub trait Clock {
    /// Returns the time, which never decreases.
    fn now(&self) -> Time;
}

/// The machine's monotonic clock, relative to its creation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MonotonicClock {
    epoch_ns: u64,
}

impl MonotonicClock {
    /// Creates a clock that is zero now.
    #[must_use]
    pub fn new() -> Self {
        Self { epoch_ns: monotonic_ns() }
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Time {
        Time::from_ns(monotonic_ns() - self.epoch_ns)
    }
}
