//! What every engine says during a run, and of flows and ports after it.

use spray_core::flow::{ReceiverStats, SenderStats};
use spray_pipeline::counters::PortCounters;

/// What an engine tells while it works.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// A phase of the work begins; the text names it.
    Phase(String),
    /// Something that the user should know beside the results.
    Remark(String),
    /// Flows are running.
    Running {
        /// Scenario time.
        time_us: f64,
        /// Payload bytes delivered so far.
        delivered_bytes: u64,
        /// Payload bytes of all flows.
        total_bytes: u64,
        /// Flows whose message has arrived.
        flows_completed: u64,
        /// All flows.
        flows_total: u64,
    },
}

/// What came of a flow. Times are scenario time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowOutcome {
    /// When it started; `None` where its trigger never started it.
    pub started_ps: Option<u64>,
    /// When the receiver had the last byte.
    pub received_ps: Option<u64>,
    /// When the sender had the last acknowledgement.
    pub acked_ps: Option<u64>,
    /// When its connection was given up.
    pub given_up_ps: Option<u64>,
    /// What the sender counted.
    pub sender: SenderStats,
    /// What the receiver counted.
    pub receiver: ReceiverStats,
}

/// One port's figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortOutcome {
    /// The link's name.
    pub name: String,
    /// Its layer, see [`Network::layers`](crate::Network::layers).
    pub layer: String,
    /// Whether it joins two switches.
    pub uplink: bool,
    /// Its full rate.
    pub rate_bps: u64,
    /// What it counted.
    pub counters: PortCounters,
    /// Bytes at the port on average, from the start of the first flow to the end of the last.
    pub queue_mean_bytes: f64,
    /// How often priority flow control had its data pause. Only the simulator has it, as [`PortOutcome::paused_ps`].
    pub pauses: u64,
    /// How long its data paused.
    pub paused_ps: u64,
}
