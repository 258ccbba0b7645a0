//! Events that the algorithms report, typed in place of log lines.

use alloc::vec::Vec;
use core::fmt;

use crate::Time;
use crate::feedback::{Ev, LossCause};

/// An event in an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A balancer entered freezing mode: it uses only entropy values that worked (REPS §3.2).
    FreezeEntered {
        /// The reason.
        reason: FreezeReason,
    },
    /// A balancer left freezing mode and explores again (REPS §3.2).
    FreezeExited,
    /// A packet's retransmission timer ran out.
    Timeout {
        /// Sequence number of the oldest unacknowledged packet.
        psn: u64,
    },
    /// A packet that was declared lost is retransmitted.
    Retransmit {
        /// Its sequence number.
        psn: u64,
        /// What declared it lost.
        cause: LossCause,
    },
}

/// What a balancer treated as a failed path, so that it froze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreezeReason {
    /// A packet that was declared lost for this cause.
    Loss(LossCause),
    /// Probes of a lost packet's path were not answered.
    Probes,
    /// A setting, not a failure.
    Setting,
}

/// How the entropy value of a data packet was chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// By a rule that uses no feedback.
    #[default]
    Chosen,
    /// A new one, to explore its path.
    Explored,
    /// One that came back unmarked.
    Recycled,
    /// One that worked, while the balancer is frozen or suspects a path.
    Frozen,
}

impl Choice {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::Chosen, Self::Explored, Self::Recycled, Self::Frozen];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chosen => "chosen",
            Self::Explored => "explored",
            Self::Recycled => "recycled",
            Self::Frozen => "frozen",
        }
    }
}

/// Receives events. `()` drops them at no cost; a `Vec<(now, Event)>` stores them.
pub trait Publisher {
    /// Takes an event that occurred at `now`.
    fn on_event(&mut self, now: Time, event: Event);

    /// Whether [`Publisher::on_choice`] is to be called for each data packet.
    #[inline]
    fn wants_choices(&self) -> bool {
        false
    }

    /// Takes the entropy value, one of `evs`, of the data packet that is sent now.
    fn on_choice(&mut self, _now: Time, _ev: Ev, _evs: u32, _choice: Choice) {}
}

/// Observes how one connection chooses the entropy values of its data packets.
pub trait ChoiceTap: fmt::Debug + Send {
    /// Takes the entropy value, one of `evs`, of the data packet that is sent now.
    fn on_choice(&mut self, now: Time, ev: Ev, evs: u32, choice: Choice);
}

impl Publisher for () {
    fn on_event(&mut self, _now: Time, _event: Event) {}
}

impl Publisher for Vec<(Time, Event)> {
    fn on_event(&mut self, now: Time, event: Event) {
        self.push((now, event));
    }
}
