//! Observers of all frames.

use spray_core::Time;
use std::fmt::Debug;

/// Sees all frames of an endpoint, for a capture. Boxed: what becomes of that is not of this crate.
pub trait Tap: Debug + Send {
    /// The endpoint sends a frame at `now`.
    fn on_sent(&mut self, _now: Time, _frame: &[u8]) {}

    /// A frame has come at `now`, before anything of it is looked at.
    fn on_received(&mut self, _now: Time, _frame: &[u8]) {}

    /// So many `bytes` of the payload of a frame that came had not come before, and are in their place at `now`.
    fn on_placed(&mut self, _now: Time, _frame: &[u8], _bytes: u64) {}
}
