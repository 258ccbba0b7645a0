//! Observers of all frames.

use spray_core::Time;
use std::fmt::Debug;

/// Sees all frames of an endpoint, for captures.
pub trait Tap: Debug + Send {
    /// The endpoint sends a frame at `now`.
    fn on_sent(&mut self, _now: Time, _frame: &[u8]) {}

    /// A frame has arrived at `now`; it is not checked yet.
    fn on_received(&mut self, _now: Time, _frame: &[u8]) {}

    /// `bytes` of the payload of an arrived frame were stored at `now`; duplicates are not counted.
    fn on_stored(&mut self, _now: Time, _frame: &[u8], _bytes: u64) {}
}
