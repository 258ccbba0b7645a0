//! ConWeave: a flow whose packets are late takes another path, and its destination's switch holds what overtakes (Song et al., *Network Load
//! Balancing with In-network Reordering Support for RDMA*, SIGCOMM 2023, §3; names of the steps are the paper's).
//!
//! `docs/specs/conweave.md` states the rules (`CWV-n`). What decides is here; who calls it holds the frames.

mod destination;
mod queues;
mod route;
mod settings;
mod source;
pub(super) mod state;
mod tag;

pub use queues::Expiry;
pub(super) use route::{route, under_reunion};
pub use settings::Settings;
pub use state::{Order, State};

//= docs/specs/conweave.md#CWV-20 counts
super::counter::scheme_counters! {
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
