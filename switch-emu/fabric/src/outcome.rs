//! Progress and outcomes that are common to all engines.

use spray_core::flow::{ReceiverStats, SenderStats};
use spray_pipeline::counters::PortCounters;

/// Progress of an engine.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// A phase begins; the text names it.
    Phase(String),
    /// A notice for the user.
    Notice(String),
    /// Flows are running.
    Running {
        /// Scenario time.
        time_us: f64,
        /// Payload bytes delivered so far.
        delivered_bytes: u64,
        /// Payload bytes of all flows.
        total_bytes: u64,
        /// Flows with a received message.
        flows_completed: u64,
        /// All flows.
        flows_total: u64,
    },
}

/// The outcome of a flow. Times are scenario time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowOutcome {
    /// Start; `None` if its trigger never started it.
    pub started_ps: Option<u64>,
    /// When the receiver had the last byte.
    pub received_ps: Option<u64>,
    /// When the sender had the last acknowledgement.
    pub acked_ps: Option<u64>,
    /// When its connection gave up.
    pub given_up_ps: Option<u64>,
    /// Counters of the sender.
    pub sender: SenderStats,
    /// Counters of the receiver.
    pub receiver: ReceiverStats,
}

/// The figures of a port.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortOutcome {
    /// The link's name.
    pub name: String,
    /// Layer, see [`Network::layers`](crate::Network::layers).
    pub layer: String,
    /// Whether it joins two switches.
    pub uplink: bool,
    /// Full rate.
    pub rate_bps: u64,
    /// Counters of the port.
    pub counters: PortCounters,
    /// Mean queue in bytes, from the start of the first flow to the end of the last.
    pub queue_mean_bytes: f64,
    /// Number of pauses by priority flow control; simulator only, like [`PortOutcome::paused_ps`].
    pub pauses: u64,
    /// Total time of the pauses.
    pub paused_ps: u64,
}
