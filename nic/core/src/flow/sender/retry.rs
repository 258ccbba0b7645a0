//! The retry timer: a sender that waits for a grant or for credit asks again, since the answer may have been lost.

use crate::Time;
use crate::loss::Backoff;

/// What a sender waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// Room in the peer's grant (TRN-6).
    Grant,
    /// Credit from the receiver (EQDS-14).
    Credit,
}

/// The timer. It runs while the sender waits, for one thing at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    awaited: Option<Awaited>,
    /// When to ask again; [`Time::NEVER`] while the sender does not wait.
    pub deadline: Time,
    due: bool,
    backoff: Backoff,
}

impl Retry {
    pub(super) const IDLE: Self = Self { awaited: None, deadline: Time::NEVER, due: false, backoff: 0 };

    /// Begins to wait; the sender asks again at `deadline`.
    pub(super) fn start(&mut self, awaited: Awaited, deadline: Time) {
        *self = Self { awaited: Some(awaited), deadline, ..Self::IDLE };
    }

    /// Ends the wait, if the sender waits for this.
    #[inline]
    pub(super) fn stop(&mut self, awaited: Awaited) {
        if self.awaited == Some(awaited) {
            *self = Self::IDLE;
        }
    }

    #[inline]
    pub(super) fn awaits(&self, awaited: Awaited) -> bool {
        self.awaited == Some(awaited)
    }

    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.awaited.is_none()
    }

    /// Whether it is time to ask for this again.
    #[inline]
    pub(super) fn is_due(&self, awaited: Awaited) -> bool {
        self.due && self.awaits(awaited)
    }

    /// Records that the sender asked. Returns the backoff of the next deadline.
    pub(super) fn on_asked(&mut self) -> Backoff {
        self.due = false;
        self.backoff
    }

    /// Records that the deadline passed. Returns the backoff of the next one.
    pub(super) fn on_expired(&mut self) -> Backoff {
        self.due = true;
        self.backoff = self.backoff.saturating_add(1);
        self.backoff
    }
}
