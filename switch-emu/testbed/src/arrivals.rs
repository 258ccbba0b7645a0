//! The payload that arrives at hosts, by the time at which it does.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use spray_fabric::Arrivals;
use spray_nic::endpoint::Tap;
use spray_wire::peek_virtual_time;

/// Counts what arrives at a host among what arrives at all; `next` sees all of its frames as well.
#[derive(Debug)]
pub(super) struct Counter {
    pub arrivals: Arc<Arrivals<AtomicU64>>,
    pub next: Option<Box<dyn Tap>>,
}

impl Tap for Counter {
    fn on_sent(&mut self, now_ps: u64, frame: &[u8], carried: bool) {
        if let Some(next) = &mut self.next {
            next.on_sent(now_ps, frame, carried);
        }
    }

    fn on_received(&mut self, now_ps: u64, frame: &[u8]) {
        if let Some(next) = &mut self.next {
            next.on_received(now_ps, frame);
        }
    }

    /// A frame that the machine has made late arrives when it should have.
    fn on_placed(&mut self, now_ps: u64, frame: &[u8], bytes: u64) {
        let due_ps = peek_virtual_time(frame).filter(|due_ps| *due_ps > 0);
        self.arrivals.add(due_ps.unwrap_or(now_ps).min(now_ps), bytes);
    }
}
