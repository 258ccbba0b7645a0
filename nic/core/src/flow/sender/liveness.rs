//! Whether the peer is alive: a sender gives up when it makes no progress (TRN-9).

/// When the sender last made progress, and whether it has given up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Liveness {
    /// When the first packet was sent: no timestamp echo is older. `NEVER` before.
    pub started_ps: u64,
    /// When a packet was last newly acknowledged, or waiting began.
    pub progress_ps: u64,
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
    pub(super) fn new(give_up_ps: u64) -> Self {
        Self { started_ps: super::NEVER, progress_ps: 0, give_up_ps, failure: Failure::None }
    }

    #[inline]
    pub(super) fn on_first_sent(&mut self, now_ps: u64) {
        self.started_ps = self.started_ps.min(now_ps);
    }

    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.failure != Failure::None
    }

    pub(super) fn fail(&mut self) {
        self.failure = Failure::Unreported;
    }

    /// Returns true once after a failure, so that it is reported once.
    pub(super) fn take_failure(&mut self) -> bool {
        let is_new = self.failure == Failure::Unreported;
        if is_new {
            self.failure = Failure::Reported;
        }
        is_new
    }

    /// When a sender that waits gives up.
    #[inline]
    pub(super) fn deadline_ps(&self) -> u64 {
        self.progress_ps.saturating_add(self.give_up_ps)
    }
}
