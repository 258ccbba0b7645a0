use spray_core::feedback::LossCause;
use spray_core::summed;
use spray_nic::{Event, FreezeReason};

summed! {
    /// The number of freezes of balancers (REPS §3.2), by cause.
    pub struct Freezes {
        pub all: u64,
        pub by_timeout: u64,
        pub by_gap: u64,
        pub by_probes: u64,
    }
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
