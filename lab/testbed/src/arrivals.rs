//! The payload that arrives at hosts, by the time at which it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spray_fabric::Arrivals;
use spray_nic::Time;
use spray_nic::endpoint::Tap;

/// Counts what arrives at a host among what arrives at all.
#[derive(Debug)]
pub(super) struct Counter {
    pub arrivals: Arc<Arrivals<AtomicU64>>,
    /// When the frame that came last should have.
    pub due_ps: Arc<AtomicU64>,
}

impl Tap for Counter {
    /// A frame that the machine has made late arrives when it should have.
    fn on_placed(&mut self, _now: Time, _frame: &[u8], bytes: u64) {
        self.arrivals.add(self.due_ps.load(Ordering::Relaxed), bytes);
    }
}
