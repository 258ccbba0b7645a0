//! Peer liveness: a sender gives up when it makes no progress (TRN-9).

use crate::Time;

#[derive(Clone, Copy, Debug)]
pub(in crate::flow::sender) struct Liveness {
    /// When the first packet was sent, [`Time::NEVER`] before: no timestamp echo is older.
    pub started_at: Time,
    /// When a packet was last newly acknowledged, or waiting began.
    pub progress_at: Time,
    give_up_ps: u64,
    failure: Failure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    None,
    Unreported,
    Reported,
}

impl Liveness {
    pub fn new(give_up_ps: u64) -> Self {
        Self { started_at: Time::NEVER, progress_at: Time::ZERO, give_up_ps, failure: Failure::None }
    }

    #[inline]
    pub fn on_first_sent(&mut self, now: Time) {
        self.started_at = self.started_at.min(now);
    }

    #[inline]
    pub fn has_failed(&self) -> bool {
        self.failure != Failure::None
    }

    pub fn fail(&mut self) {
        self.failure = Failure::Unreported;
    }

    /// Returns true once after a failure.
    pub fn take_failure(&mut self) -> bool {
        let is_new = self.failure == Failure::Unreported;
        if is_new {
            self.failure = Failure::Reported;
        }
        is_new
    }

    /// When a sender that waits gives up.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.progress_at.after(self.give_up_ps)
    }
}
