//! ConWeave: reroutes flows with late packets, and restores their order (Song et al., *Network Load
//! Balancing with In-network Reordering Support for RDMA*, SIGCOMM 2023, §3).
//!
//! `docs/specs/conweave.md` states the rules (`CWV-n`). The caller stores the frames.

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
pub use state::{QueueAction, State};

//= docs/specs/conweave.md#CWV-20 counts
super::counter::scheme_counters! {
    /// Flows that ConWeave rerouted.
    conweave_rerouted: "rerouted", "Flows rerouted by ConWeave", "", neither, sum,
        |seen| seen.state(|state| state.counts.rerouted);
    /// Packets that a switch held.
    conweave_held: "held", "Packets held by ConWeave", "packets", neither, sum,
        |seen| seen.state(|state| state.counts.held);
    /// Maximum number of bytes held by one switch at once.
    conweave_held_bytes: "held B", "Bytes held by a switch with ConWeave", "bytes", less, most,
        |seen| seen.state(|state| state.counts.held_bytes);
    /// Maximum number of reordering queues of one switch at once.
    conweave_queues: "held queues", "Reordering queues of a switch with ConWeave", "", less, most,
        |seen| seen.state(|state| state.counts.queues);
    /// Queues given up because their TAIL did not arrive in time.
    conweave_timeouts: "held timeouts", "Reordering queues of ConWeave given up", "", less, sum,
        |seen| seen.state(|state| state.counts.timeouts);
    /// Packets not held because no queue was free.
    conweave_no_queue: "no queue", "Packets without a queue of ConWeave", "packets", less, sum,
        |seen| seen.state(|state| state.counts.no_queue);
    /// Queues given up for lack of memory.
    conweave_no_memory: "no memory", "Queues of ConWeave without memory", "", less, sum,
        |seen| seen.state(|state| state.counts.no_memory);
    /// Packets of flows without an entry because a table was full.
    conweave_no_entry: "no entry", "Packets without an entry of ConWeave", "packets", less, sum,
        |seen| seen.state(|state| state.counts.no_entry);
    /// Control frames between switches: RTT_REPLY, CLEAR and NOTIFY.
    conweave_control: "control", "Control frames of ConWeave", "frames", neither, sum,
        |seen| seen.state(|state| state.counts.control);
}

#[cfg(test)]
mod tests;
