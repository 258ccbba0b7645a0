//! How fast the time of an engine goes whose clock waits for the view.

use std::fmt;
use std::time::Duration;

use super::keys::Key;

/// Real time between two looks.
pub const LOOK: Duration = Duration::from_millis(50);
/// Scenario time in a second at first: 100 us, in which a packet of a small fabric makes some ten round trips.
const FIRST_PS: u64 = 100_000_000;
const LEAST_PS: u64 = 1_000_000;
const MOST_PS: u64 = 1_000_000_000_000;

/// The pace.
#[derive(Debug)]
pub struct Pace {
    /// Scenario time in a second.
    ps: u64,
    paused: bool,
    /// One look goes on although the pace is paused.
    step: bool,
}

impl Pace {
    pub fn new() -> Self {
        Self { ps: FIRST_PS, paused: false, step: false }
    }

    /// Scenario time until the next look; `None` while it is paused. A step that was asked for is taken by this.
    pub fn step_ps(&mut self) -> Option<u64> {
        let goes = std::mem::take(&mut self.step) || !self.paused;
        goes.then_some(self.ps / 1000 * LOOK.as_millis() as u64)
    }

    pub fn on_key(&mut self, key: Key) {
        match key {
            Key::Pause => self.paused = !self.paused,
            Key::Step => (self.paused, self.step) = (true, true),
            Key::Faster => self.ps = (self.ps * 2).min(MOST_PS),
            Key::Slower => self.ps = (self.ps / 2).max(LEAST_PS),
            _ => {}
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.ps as f64 / 1e6;
        if self.paused { write!(f, "paused") } else { write!(f, "{us} us a second") }
    }
}
