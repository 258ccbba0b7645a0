//! What delays a sender, and for how long.

use crate::Time;

/// The cause of a delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// The application has queued nothing more.
    #[default]
    Application,
    /// The congestion window, or the agreed window of packet numbers (TRN-3, TRN-4).
    Window,
    /// Pacing by the congestion control, or of packets that were trimmed again (TRN-66).
    Pacing,
    /// The receiver's grant (TRN-5) or credit is used up.
    Receiver,
    /// The balancer drains a path, or its own windows are full.
    Balancer,
}

/// Time in which a sender could not send, by cause. The rest is the host's, busy link or thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    waited_ps: [u64; 5],
    /// The cause of the present wait, if there is one.
    pub present: Limit,
}

impl Limits {
    /// Returns the picoseconds lost to `limit` until the last `poll_transmit`, at most 213 days.
    pub fn waited_ps(&self, limit: Limit) -> u64 {
        self.waited_ps[limit as usize]
    }

    /// Adds the wait until `now`.
    #[inline]
    pub fn on_waited(&mut self, since: Time, now: Time) {
        let waited_ps = &mut self.waited_ps[self.present as usize];
        *waited_ps = waited_ps.saturating_add(now.since(since));
    }
}
