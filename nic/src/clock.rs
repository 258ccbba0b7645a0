//! The time that drivers go by.

use crate::sys::monotonic_ns;

/// Tells a driver the time.
pub trait Clock {
    /// The time in picoseconds; it goes back only by [`restart`](Self::restart).
    fn now_ps(&self) -> u64;

    /// Begins again at 0.
    fn restart(&mut self);
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
    fn now_ps(&self) -> u64 {
        (monotonic_ns() - self.epoch_ns) * 1000
    }

    fn restart(&mut self) {
        *self = Self::new();
    }
}
