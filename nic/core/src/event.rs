//! What the algorithms report: typed events instead of log lines.

use alloc::vec::Vec;
use core::fmt;

use crate::Time;
use crate::feedback::{Ev, LossCause};

/// Something that an algorithm did or noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A balancer froze: it uses only entropy values that it knows (REPS §3.2).
    FreezeEntered {
        /// Why.
        reason: FreezeReason,
    },
    /// A balancer left freezing mode and explores again (REPS §3.2).
    FreezeExited,
    /// A packet's retransmission timer ran out.
    Timeout {
        /// Packet sequence number of the oldest unacknowledged packet.
        psn: u64,
    },
    /// A packet that was declared lost is sent again.
    Retransmit {
        /// Packet sequence number that is sent again.
        psn: u64,
        /// What declared it lost.
        cause: LossCause,
    },
}

/// What a balancer took for a failed path, so that it froze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreezeReason {
    /// The loss of a packet that was declared lost by this.
    Loss(LossCause),
    /// Probes of a lost packet's path that stayed unanswered.
    Probes,
    /// Nothing: a setting made it freeze.
    Setting,
}

/// How the entropy value of a data packet was chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// By the rule of a scheme that does not go by what comes back.
    #[default]
    Chosen,
    /// A new one, to find out how its path is.
    Explored,
    /// One that came back unmarked.
    Recycled,
    /// One that is known to work, while the balancer is frozen or suspects a path.
    Frozen,
}

impl Choice {
    /// All of them.
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

/// Where events go. `()` drops them at no cost; a `Vec<(now, Event)>` keeps them.
pub trait Publisher {
    /// Takes one event that happened at `now`.
    fn on_event(&mut self, now: Time, event: Event);

    /// Whether it is to be told of the entropy value of each data packet.
    #[inline]
    fn wants_choices(&self) -> bool {
        false
    }

    /// Takes the entropy value of the data packet that is sent now, one of `evs`. Called if it wants to be told.
    fn on_choice(&mut self, _now: Time, _ev: Ev, _evs: u32, _choice: Choice) {}
}

/// Sees how one connection chooses the entropy values of its data packets.
pub trait ChoiceTap: fmt::Debug + Send {
    /// The value `ev`, one of `evs`, is chosen for a data packet that is sent now.
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
