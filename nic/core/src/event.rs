//! What the algorithms report: typed events instead of log lines.

use alloc::vec::Vec;

use crate::feedback::LossCause;

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

/// Where events go. `()` drops them at no cost; a `Vec<(now_ps, Event)>` keeps them.
pub trait Publisher {
    /// Takes one event that happened at `now_ps` (picoseconds of scenario time).
    fn on_event(&mut self, now_ps: u64, event: Event);
}

impl Publisher for () {
    fn on_event(&mut self, _now_ps: u64, _event: Event) {}
}

impl Publisher for Vec<(u64, Event)> {
    fn on_event(&mut self, now_ps: u64, event: Event) {
        self.push((now_ps, event));
    }
}
