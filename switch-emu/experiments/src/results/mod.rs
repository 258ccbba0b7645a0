//! A run's results: their types, their folder, and the tables that compare runs.
//!
//! Every time here is *scenario* time from the start of the run, already divided by the dilation: in microseconds, but for samples.

mod collect;
mod columns;
mod evs;
mod figures;
mod files;
mod freezing;
mod matrix;
mod record;
mod shape;
mod sizes;
mod spread;
mod summary;
mod sweep;
mod table;
mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod workloads;

pub use self::freezing::Freezing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::flow::Degrees;
use spray_fabric::Switching;
pub use spray_fabric::{PortCounters, PortOutcome, PortSamples};
use spray_pipeline::scheme::{Entries, conweave, reunion};
use spray_settings::Axis;

pub(crate) use self::collect::{Collect, Ended, given_up, reported};
pub use self::evs::{ConnectionEvs, EvBin};
pub use self::figures::write_figures;
pub use self::files::{PART, WriteError, folder_name, write_overview, write_run};
pub use self::matrix::{BalancerRuns, Matrix};
pub use self::record::{Finished, LayerDrops, Machine, Program, Record};
pub use self::shape::{Shape, ShapeLink, ShapeSwitch};
pub use self::sizes::SizeClass;
pub(crate) use self::sizes::size_classes;
pub use self::spread::Spread;
pub(crate) use self::summary::gbps;
pub use self::summary::{Hash, LayerQueue, Summary};
pub use self::sweep::{compare_table, sweep_table, write_sweep};
pub use self::table::{align, table};
pub(crate) use self::table::{columns, lateness_note, loss_note};
pub use self::tables::{documentation, trace_json, trace_parquet};
pub use self::workloads::{Collectives, SizeSlowdown, WorkloadSummary, workload_table};
pub(crate) use self::workloads::{Lines, workload_lines};

/// All results of one run of one scenario with one balancer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunResult {
    /// Which engine ran it: `xdp` or `sim`.
    pub engine: String,
    /// The scenario's name.
    pub scenario: String,
    /// What is wrong with the fabric, in two or three words: `healthy`, `half-rate uplink`, ...
    pub condition: String,
    /// The balancer's name, as `--balancer` takes it.
    pub balancer: String,
    /// The congestion control's name.
    pub congestion_control: String,
    /// How the switches choose.
    pub switching: Switching,
    /// The root seed.
    pub seed: u64,
    /// The values of the sweep's axes.
    pub axes: Vec<Axis>,
    /// How many times slower than scenario time the machine ran; 1 for the simulator.
    pub dilation: f64,
    /// Real time that the run took, in seconds.
    pub wall_s: f64,
    /// One entry per flow of the workload, completed or not.
    pub flows: Vec<FlowResult>,
    /// One entry per egress port of the fabric.
    pub ports: Vec<PortOutcome>,
    /// The switches and the links between them.
    pub shape: Shape,
    /// What the switches' ports counted over time, with indices into `ports`.
    pub port_samples: Vec<PortSamples>,
    /// Payload bytes that had arrived at the receivers by the end of each bin of time, over all flows, each byte once: (time in ps, bytes so
    /// far), from time 0 on.
    pub delivered: Vec<(u64, u64)>,
    /// The entropy values of the first connections, where the run is sampled.
    pub evs: Vec<ConnectionEvs>,
    /// Failures, reroutes, freezing and the like; times ascend.
    pub events: Vec<EventRow>,
    /// What the endpoints counted, over all hosts.
    pub transport: TransportTotals,
    /// Frames that the testbed itself lost. The emulation does not include them: more than zero makes the run doubtful.
    pub testbed_losses: TestbedLosses,
    /// Frames that arrived after their virtual time: they bound the emulation's error.
    pub late_packets: u64,
    /// 99th percentile, over all received frames, of how far behind their virtual time they were; 0 for punctual ones.
    pub lateness_p99_us: f64,
    /// Whether every delivered message was the message sent, byte for byte; `None` where no payload is carried: in the simulator.
    pub payload_verified: Option<bool>,
    /// Figures that only the simulator has.
    pub sim: Option<SimFigures>,
    /// Of switches that keep entries for flows.
    pub entries: Option<EntryFigures>,
    /// Of switches with Reunion.
    pub reunion: Option<ReunionFigures>,
    /// From the first failure to the last data frame that it dropped; `None` where the scenario fails nothing or no data was
    /// dropped.
    pub recovery_us: Option<f64>,
    /// Whether connections froze when a path of theirs had failed.
    pub freezing: Freezing,
}

/// How full the switches' tables of flows became.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EntryFigures {
    /// Flows that had something on their way through one switch at once, at most; see `spray flowcut-memory`.
    pub flowcut_entries: u64,
    /// Packets that passed without an entry, for want of one.
    pub flowcut_entries_missing: u64,
}

impl From<Entries> for EntryFigures {
    fn from(entries: Entries) -> Self {
        Self { flowcut_entries: entries.most, flowcut_entries_missing: entries.missing }
    }
}

/// What switches with Reunion did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReunionFigures {
    /// Flows given another path.
    pub rerouted: u64,
    /// Flows that were to be, and for which there was none.
    pub stuck: u64,
    /// Notifications sent.
    pub notified: u64,
}

impl From<reunion::Counts> for ReunionFigures {
    fn from(counts: reunion::Counts) -> Self {
        let reunion::Counts { rerouted, stuck, notified } = counts;
        Self { rerouted, stuck, notified }
    }
}

/// The simulator's figures about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimFigures {
    /// Frames put on links; a frame counts once for each link.
    pub packet_hops: u64,
    /// `packet_hops` per second of real time.
    pub packet_hops_per_s: f64,
    /// Most memory that the process has held so far, in MB (10^6 bytes). It includes that of runs on other threads.
    pub peak_rss_mb: f64,
    /// Of networks with priority flow control.
    #[serde(flatten)]
    pub pfc: Option<PfcFigures>,
    /// Of switches with ConWeave.
    #[serde(flatten)]
    pub conweave: Option<ConWeaveFigures>,
}

/// What switches with ConWeave did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConWeaveFigures {
    /// Flows given another path.
    pub conweave_rerouted: u64,
    /// Packets that a switch held.
    pub conweave_held: u64,
    /// Bytes that one switch held at most at once.
    pub conweave_held_bytes: u64,
    /// Reordering queues that one switch used at most at once.
    pub conweave_queues: u64,
    /// Queues given up because their TAIL did not come in time.
    pub conweave_timeouts: u64,
    /// Packets that were to be held, and for which there was no queue.
    pub conweave_no_queue: u64,
    /// Queues given up for want of memory.
    pub conweave_no_memory: u64,
    /// Packets of flows for which a table had no entry left.
    pub conweave_no_entry: u64,
    /// Frames that switches sent each other: RTT_REPLY, CLEAR and NOTIFY.
    pub conweave_control: u64,
}

impl From<conweave::Counts> for ConWeaveFigures {
    fn from(counts: conweave::Counts) -> Self {
        Self {
            conweave_rerouted: counts.rerouted,
            conweave_held: counts.held,
            conweave_held_bytes: counts.held_bytes,
            conweave_queues: counts.queues,
            conweave_timeouts: counts.timeouts,
            conweave_no_queue: counts.no_queue,
            conweave_no_memory: counts.no_memory,
            conweave_no_entry: counts.no_entry,
            conweave_control: counts.replies + counts.clears + counts.notifies,
        }
    }
}

/// What priority flow control did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PfcFigures {
    /// How often the sender of a link paused.
    pub pauses: u64,
    /// For how long, over all links.
    pub paused_us: f64,
    /// When links were found that wait for each other.
    pub deadlock_us: Option<f64>,
}

/// One flow: a message from one host to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowResult {
    /// The flow's number in the run, from 0.
    pub flow: u32,
    /// The name of its workload, or of the part of one.
    pub workload: String,
    /// What chose the paths of its packets.
    pub balancer: String,
    /// Its congestion control.
    pub congestion_control: String,
    /// Name of the sending host.
    pub src: String,
    /// Name of the receiving host.
    pub dst: String,
    /// Payload bytes of the message.
    pub bytes: u64,
    /// When the sender was given the message.
    pub start_us: f64,
    /// When the receiver had all of it; `None` if it never did.
    pub end_us: Option<f64>,
    /// Flow completion time, `end_us - start_us`.
    pub fct_us: Option<f64>,
    /// The completion time over that of the same message alone in the fabric.
    pub slowdown: Option<f64>,
    /// The collective that it is part of, by number within the workload.
    pub step: Option<u32>,
    /// Packets sent again.
    pub retransmits: u64,
    /// As [`TransportTotals::reordered_packets`].
    pub reordered: u64,
    /// As [`TransportTotals::unexpected_packets`].
    pub unexpected: u64,
    /// By how many places the reordered ones were behind, in powers of two.
    pub degrees: Degrees,
    /// Time during which the balancer drained the flow, to change its path.
    pub drained_us: f64,
}

/// Something that happened at one moment of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventRow {
    /// When.
    pub time_us: f64,
    /// What happened.
    pub kind: EventKind,
    /// The port, host or flow that it happened to.
    pub subject: String,
    /// What a link does, as in `[[link_event]]`; `given-up` of a connection; otherwise empty.
    pub action: &'static str,
    /// The action's figure: the share of the rate that is left, of frames that are lost, or of the time that the link is down.
    pub value: Option<f64>,
    /// Of a failure: when it ends. Of the last drop: when the failure began.
    pub until_us: Option<f64>,
    /// Of a timeout: the packet's sequence number.
    pub packet: Option<u64>,
    /// What the other fields do not say; may be empty.
    pub detail: String,
}

impl EventRow {
    /// What the fields say, in words.
    #[must_use]
    pub fn words(&self) -> String {
        let percent = self.value.map(|share| format!("{} %", summary::round3(share * 100.0)));
        let action = match (self.action, percent) {
            (action, None) => action.into(),
            ("rate", Some(percent)) => format!("rate: {percent} left"),
            ("flap", Some(percent)) => format!("flap: down {percent} of the time"),
            (action, Some(percent)) => format!("{action}: {percent}"),
        };
        let until = match (self.kind, self.until_us) {
            (EventKind::LastDrop, Some(began)) => format!("{:.1} us after the failure began", self.time_us - began),
            _ => String::new(),
        };
        let packet = self.packet.map_or_else(String::new, |packet| format!("packet {packet}"));
        let parts = [action, until, packet, self.detail.clone()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// The kinds of [`EventRow`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A link began to fail: down, dropping, slow, lossy or flapping. Or a connection was given up.
    #[default]
    Failure,
    /// Links that pause wait for each other.
    Deadlock,
    /// A sender's balancer entered freezing mode (REPS §3.2).
    FreezeEntered,
    /// A sender's balancer left freezing mode.
    FreezeExited,
    /// The last frame that a failure dropped.
    LastDrop,
    /// A failed link works again.
    Recovered,
    /// Routing changed.
    Reroute,
    /// A retransmission timer ran out.
    Timeout,
}

impl std::fmt::Display for EventKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Failure => "failure",
            Self::Deadlock => "deadlock",
            Self::FreezeEntered => "freeze_entered",
            Self::FreezeExited => "freeze_exited",
            Self::LastDrop => "last_drop",
            Self::Recovered => "recovered",
            Self::Reroute => "reroute",
            Self::Timeout => "timeout",
        })
    }
}

/// What all endpoints counted together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportTotals {
    /// Data packets sent, retransmissions among them.
    pub packets_sent: u64,
    /// Data packets sent again, for whatever reason.
    pub retransmits: u64,
    /// Retransmission timers that ran out.
    pub timeouts: u64,
    /// Data packets that arrived after one with a higher sequence number. Retransmissions and duplicates do not count (TRN-58).
    pub reordered_packets: u64,
    /// Data packets whose sequence number is not one more than that of the packet before. Retransmissions and duplicates neither count
    /// nor are a packet before; a lost packet counts once (TRN-60).
    pub unexpected_packets: u64,
    /// By how many places the reordered ones were behind, in powers of two.
    pub reordering_degrees: Degrees,
    /// Data packets that arrived more than once.
    pub duplicates: u64,
    /// Frames thrown away as malformed, corrupted or forged.
    pub invalid_frames: u64,
    /// Times that a balancer entered freezing mode.
    pub freeze_entries: u64,
}

/// Frames lost by the machine that plays the fabric, by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestbedLosses {
    /// Dropped by a veth ring (256 frames each) or by a failed redirect.
    pub veth: u64,
    /// Dropped because an AF_XDP receive ring was full.
    pub rx_ring_full: u64,
    /// Dropped because a fill ring had no frame to offer.
    pub fill_ring_empty: u64,
    /// Dropped by the kernel or a program for any other reason.
    pub other: u64,
}

impl TestbedLosses {
    /// All of them together.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.veth + self.rx_ring_full + self.fill_ring_empty + self.other
    }
}

/// Picoseconds as microseconds.
pub(crate) fn us(ps: u64) -> f64 {
    ps as f64 / 1e6
}
