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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    rerouted: u64,
    held: u64,
    /// At most at once.
    held_bytes: u64,
    /// At most at once.
    queues: u64,
    timeouts: u64,
    no_queue: u64,
    no_memory: u64,
    no_entry: u64,
    /// Frames of its own.
    control: u64,
}

//= docs/specs/conweave.md#CWV-20 counts
super::counted::counters! {
    /// Flows that ConWeave gave another path.
    conweave_rerouted: "rerouted", "Flows rerouted by ConWeave", "", neither, sum,
        |seen| seen.state(|state| state.counts.rerouted);
    /// Packets that a switch held.
    conweave_held: "held", "Packets held by ConWeave", "packets", neither, sum,
        |seen| seen.state(|state| state.counts.held);
    /// Bytes that one switch held at most at once.
    conweave_held_bytes: "held B", "Bytes held by a switch with ConWeave", "bytes", less, most,
        |seen| seen.state(|state| state.counts.held_bytes);
    /// Reordering queues that one switch used at most at once.
    conweave_queues: "held queues", "Reordering queues of a switch with ConWeave", "", less, most,
        |seen| seen.state(|state| state.counts.queues);
    /// Queues given up because their TAIL did not come in time.
    conweave_timeouts: "held timeouts", "Reordering queues of ConWeave given up", "", less, sum,
        |seen| seen.state(|state| state.counts.timeouts);
    /// Packets that were to be held, and for which there was no queue.
    conweave_no_queue: "no queue", "Packets without a queue of ConWeave", "packets", less, sum,
        |seen| seen.state(|state| state.counts.no_queue);
    /// Queues given up for want of memory.
    conweave_no_memory: "no memory", "Queues of ConWeave without memory", "", less, sum,
        |seen| seen.state(|state| state.counts.no_memory);
    /// Packets of flows for which a table had no entry left.
    conweave_no_entry: "no entry", "Packets without an entry of ConWeave", "packets", less, sum,
        |seen| seen.state(|state| state.counts.no_entry);
    /// Frames that switches sent each other: RTT_REPLY, CLEAR and NOTIFY.
    conweave_control: "control", "Control frames of ConWeave", "frames", neither, sum,
        |seen| seen.state(|state| state.counts.control);
}

#[cfg(test)]
mod tests;
