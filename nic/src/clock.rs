//! The time that drivers go by.

use crate::sys::monotonic_ns;
use spray_core::Time;

/// Tells a driver the time.
pub trait Clock {
    /// The time. It never goes back.
    fn now(&self) -> Time;
}

/// The machine's monotonic clock since it was made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MonotonicClock {
    epoch_ns: u64,
}

impl MonotonicClock {
    /// A clock that is zero now.
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
