//! ConWeave: a flow whose packets are late takes another path, and its destination's switch holds what overtakes (Song et al., *Network Load
//! Balancing with In-network Reordering Support for RDMA*, SIGCOMM 2023, §3; names of the steps are the paper's).
//!
//! `docs/specs/conweave.md` states the rules (`CWV-n`). What decides is here; who calls it holds the frames.

mod destination;
mod queues;
mod route;
mod source;
mod state;
mod tag;

pub use queues::{Expiry, Order};
pub(super) use route::{route, under_reunion};
pub use state::State;

/// What a switch's memory holds when a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// By how much a reply may take longer than the base RTT before the flow is rerouted.
    pub reply_extra_ps: u64,
    /// How long a path is not chosen after a marked packet has come over it.
    pub path_busy_ps: u64,
    /// A pause of a flow after which it may take another path at once.
    pub inactive_ps: u64,
    /// How long a TAIL is waited for beyond the time at which it is expected.
    pub resume_extra_ps: u64,
    /// How long it is waited for where nothing is known of the old path.
    pub resume_default_ps: u64,
    /// Reordering queues of each host's port, 1 to 256.
    pub queues: u32,
    /// Bytes that a switch holds at most.
    pub held_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self::of(false, false)
    }
}

impl Settings {
    /// Those of the paper's published simulation, where there are more than two tiers or not, and priority flow control or not; the last two
    /// are ours.
    //= docs/specs/conweave.md#CWV-18 settings
    pub const fn of(many_tiers: bool, lossless: bool) -> Self {
        const US: u64 = 1_000_000;
        let (inactive, resume_extra, resume_default) = match (many_tiers, lossless) {
            (false, _) => (300, 16, 200),
            (true, false) => (1_000, 16, 300),
            (true, true) => (1_000, 64, 600),
        };
        Self {
            reply_extra_ps: 4 * US,
            path_busy_ps: 16 * US,
            inactive_ps: inactive * US,
            resume_extra_ps: resume_extra * US,
            resume_default_ps: resume_default * US,
            queues: 32,
            held_bytes: 4 << 20,
        }
    }
}

/// What a switch has done.
//= docs/specs/conweave.md#CWV-20 counts
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Flows given another path.
    pub rerouted: u64,
    /// Packets held.
    pub held: u64,
    /// Bytes held at most at once.
    pub held_bytes: u64,
    /// Reordering queues used at most at once.
    pub queues: u64,
    /// Queues given up because their TAIL did not come in time.
    pub timeouts: u64,
    /// Packets that were to be held, and for which there was no queue.
    pub no_queue: u64,
    /// Queues given up for want of memory.
    pub no_memory: u64,
    /// Packets of flows for which a table had no entry left.
    pub no_entry: u64,
    /// RTT_REPLYs sent.
    pub replies: u64,
    /// CLEARs sent.
    pub clears: u64,
    /// NOTIFYs sent.
    pub notifies: u64,
}

impl Counts {
    /// Counts a frame of this kind that the switch sends.
    fn count(&mut self, kind: tag::Kind) {
        *match kind {
            tag::Kind::Reply => &mut self.replies,
            tag::Kind::Clear => &mut self.clears,
            _ => &mut self.notifies,
        } += 1;
    }

    /// Those of two switches: sums, and of what was most at once the greater.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            rerouted: self.rerouted + other.rerouted,
            held: self.held + other.held,
            held_bytes: self.held_bytes.max(other.held_bytes),
            queues: self.queues.max(other.queues),
            timeouts: self.timeouts + other.timeouts,
            no_queue: self.no_queue + other.no_queue,
            no_memory: self.no_memory + other.no_memory,
            no_entry: self.no_entry + other.no_entry,
            replies: self.replies + other.replies,
            clears: self.clears + other.clears,
            notifies: self.notifies + other.notifies,
        }
    }
}

#[cfg(test)]
mod tests;
