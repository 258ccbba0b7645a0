//! What a sender waits for while it sends nothing, and for how long.

use crate::Time;

/// What keeps a sender from sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The application: everything that it handed over is sent.
    Application,
    /// The congestion window, or the window of packet numbers that both ends agreed on (TRN-3, TRN-4).
    Window,
    /// The pacing of the congestion control, or of packets that were trimmed again (TRN-66).
    Pacing,
    /// The receiver: its grant (TRN-5) or its credit is used up.
    Receiver,
    /// The balancer: it drains a path, or its own windows are full.
    Balancer,
}

/// How long a sender could not send, by what it waited for.
///
/// Time in which neither of these held it back is that of the host: its link was busy, or its thread was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    waited_ps: [u64; 5],
    /// What the present wait, if there is one, is for.
    pub(in crate::flow::sender) present: Limit,
}

impl Limits {
    /// How long the sender waited for this, in picoseconds, up to the last [`Sender::poll_transmit`](crate::flow::sender::Sender::poll_transmit);
    /// `u64::MAX`, which is 213 days, for all that is longer.
    pub fn waited_ps(&self, limit: Limit) -> u64 {
        self.waited_ps[limit as usize]
    }

    /// A wait goes on at `now`, or ends.
    #[inline]
    pub(in crate::flow::sender) fn on_waited(&mut self, since: Time, now: Time) {
        let waited_ps = &mut self.waited_ps[self.present as usize];
        *waited_ps = waited_ps.saturating_add(now.since(since));
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { waited_ps: [0; 5], present: Limit::Application }
    }
}
