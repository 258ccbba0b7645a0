//! Whether the peer is alive: progress, and giving up without any (TRN-9).

/// When something was last heard, and what follows from silence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Liveness {
    /// When the first packet was sent: no echo is older. `NEVER` before.
    pub started_ps: u64,
    /// When something was last newly acknowledged, or waiting began.
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

    /// Whether a failure is to be reported; true once.
    pub(super) fn take_failure(&mut self) -> bool {
        let is_new = self.failure == Failure::Unreported;
        if is_new {
            self.failure = Failure::Reported;
        }
        is_new
    }

    /// When a sender that waits for its peer gives up.
    #[inline]
    pub(super) fn deadline_ps(&self) -> u64 {
        self.progress_ps.saturating_add(self.give_up_ps)
    }
}
