//! How often balancers froze.

use std::iter::Sum;

use spray_core::feedback::LossCause;
use spray_nic::{Event, FreezeReason};

/// Times that a balancer froze (REPS §3.2), and why: for a loss by timeout, for one by a gap, for unanswered probes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Freezes {
    pub all: u64,
    pub by_timeout: u64,
    pub by_gap: u64,
    pub by_probes: u64,
}

impl Freezes {
    pub fn take(&mut self, event: &Event) {
        let Event::FreezeEntered { reason } = event else { return };
        self.all += 1;
        match reason {
            FreezeReason::Loss(LossCause::Timeout) => self.by_timeout += 1,
            FreezeReason::Loss(_) => self.by_gap += 1,
            FreezeReason::Probes => self.by_probes += 1,
            FreezeReason::Setting => {}
        }
    }
}

impl Sum for Freezes {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            all: sum.all + one.all,
            by_timeout: sum.by_timeout + one.by_timeout,
            by_gap: sum.by_gap + one.by_gap,
            by_probes: sum.by_probes + one.by_probes,
        })
    }
}
