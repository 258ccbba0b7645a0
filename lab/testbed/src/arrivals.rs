//! Delivered payload over time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spray_fabric::Arrivals;
use spray_nic::Time;
use spray_nic::endpoint::Tap;

/// Counts what a host receives.
#[derive(Debug)]
pub(super) struct Counter {
    pub arrivals: Arc<Arrivals<AtomicU64>>,
    /// Due time of the last received frame: a frame that the machine delayed counts at its due
    /// time.
    pub due_ps: Arc<AtomicU64>,
}

impl Tap for Counter {
    fn on_placed(&mut self, _now: Time, _frame: &[u8], bytes: u64) {
        self.arrivals.add(self.due_ps.load(Ordering::Relaxed), bytes);
    }
}
