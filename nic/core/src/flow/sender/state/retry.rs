//! The retry timer: repeats requests for a grant or credit, which may be lost.

use crate::Time;
use crate::loss::Backoff;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::flow::sender) enum Awaited {
    /// Room in the peer's grant (TRN-6).
    Grant,
    /// Credit from the receiver (EQDS-14).
    Credit,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::flow::sender) struct Retry {
    awaited: Option<Awaited>,
    /// When to repeat the request; [`Time::NEVER`] while the sender does not wait.
    pub deadline: Time,
    due: bool,
    backoff: Backoff,
}

impl Retry {
    pub const IDLE: Self = Self { awaited: None, deadline: Time::NEVER, due: false, backoff: 0 };

    pub fn start(&mut self, awaited: Awaited, deadline: Time) {
        *self = Self { awaited: Some(awaited), deadline, ..Self::IDLE };
    }

    /// Ends the wait if it is for this.
    #[inline]
    pub fn stop(&mut self, awaited: Awaited) {
        if self.awaited == Some(awaited) {
            *self = Self::IDLE;
        }
    }

    #[inline]
    pub fn awaits(&self, awaited: Awaited) -> bool {
        self.awaited == Some(awaited)
    }

    #[inline]
    pub fn is_idle(&self) -> bool {
        self.awaited.is_none()
    }

    #[inline]
    pub fn is_due(&self, awaited: Awaited) -> bool {
        self.due && self.awaits(awaited)
    }

    /// Records that the request was sent. Returns the backoff of the next deadline.
    pub fn on_sent_request(&mut self) -> Backoff {
        self.due = false;
        self.backoff
    }

    /// Records that the deadline passed. Returns the backoff of the next one.
    pub fn on_expired(&mut self) -> Backoff {
        self.due = true;
        self.backoff = self.backoff.saturating_add(1);
        self.backoff
    }
}
