//! A run's results: their types, their folder, and the tables that compare runs.
//!
//! Every time here is *scenario* time from the start of the run, already divided by the dilation: in microseconds, but for samples.

mod collect;
mod columns;
mod documentation;
mod engine_figures;
mod evs;
mod fabric_figures;
mod figures;
mod files;
mod flow_figures;
mod freezing;
mod incomplete;
mod matrix;
pub mod measures;
mod record;
mod shape;
mod sizes;
mod spread;
pub(crate) mod statistics;
mod summary;
mod sweep;
mod table;
mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod workloads;

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::flow::{ReceiverStats, SenderStats};
use spray_fabric::Switching;
pub use spray_fabric::{PortCounters, PortOutcome, PortSamples};
use spray_pipeline::scheme::Counted;
use spray_settings::Axis;

pub(crate) use self::collect::{Collect, given_up, reported};
pub use self::documentation::documentation;
pub use self::engine_figures::{EngineFigures, PfcFigures, SimFigures};
pub use self::evs::{ConnectionEvs, EvBin};
pub use self::fabric_figures::{FabricFigures, LayerFigures};
pub use self::figures::write_figures;
pub use self::files::{Extras, PART, WriteError, folder_name, write_overview, write_run};
pub use self::flow_figures::FlowFigures;
pub(crate) use self::flow_figures::{gbps, slowdown, times};
pub(crate) use self::freezing::drops_all;
pub use self::incomplete::incomplete_notes;
pub use self::matrix::{BalancerRuns, Matrix};
pub use self::record::{Completion, Drops, Finished, Machine, Program, Record};
pub use self::shape::{Shape, ShapeLink, ShapeSwitch};
pub use self::sizes::SizeClass;
pub(crate) use self::sizes::size_classes;
pub use self::spread::Spread;
pub use self::summary::{Hash, Summary};
pub use self::sweep::{compare_table, sweep_table, write_sweep};
pub(crate) use self::table::{WORDS, lateness_note, lines, loss_note};
pub use self::table::{align, table};
pub use self::tables::{trace_json, trace_parquet};
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
    /// When the run ended.
    pub end_us: f64,
    /// The time limit, if it ended the run.
    pub time_limit_us: Option<f64>,
    /// After which time without an acknowledgement connections were given up, if any was; the longest of theirs.
    pub give_up_us: Option<f64>,
    /// What the engine says of it.
    pub engine_figures: EngineFigures,
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
    /// Frames that the testbed itself lost. The emulation does not include them: more than zero makes the run doubtful.
    pub testbed_losses: TestbedLosses,
    /// Whether every delivered message was the message sent, byte for byte; `None` where no payload is carried: in the simulator.
    pub payload_verified: Option<bool>,
    /// Figures that only the simulator has.
    pub sim: Option<SimFigures>,
    /// Of networks with priority flow control.
    pub pfc: Option<PfcFigures>,
    /// What the switches' schemes counted.
    pub counted: Counted,
    /// From the first failure to the last data frame that it dropped; `None` where the scenario fails nothing or no data was
    /// dropped.
    pub loss_duration_us: Option<f64>,
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
    /// Why it did not complete, if it did not.
    pub incomplete: Option<Incomplete>,
    /// Of a flow that started and did not complete: the time from its start until its connection was given up, or the run ended.
    pub had_us: Option<f64>,
    /// When its connection was given up.
    pub given_up_us: Option<f64>,
    /// The collective that it is part of, by number within the workload.
    pub step: Option<u32>,
    /// The time that the message takes alone in the fabric.
    pub alone_us: f64,
    /// For how long the message keeps the slower of the two hosts' links busy.
    pub link_us: f64,
    /// The least time after that until its last bit is at the receiver.
    pub way_us: f64,
    /// What its sender counted.
    pub sender: SenderStats,
    /// What its receiver counted.
    pub receiver: ReceiverStats,
}

impl FlowResult {
    /// The completion time, or the time that it had; `None` if it did not start.
    pub(crate) fn time_us(&self) -> Option<f64> {
        self.fct_us.or(self.had_us)
    }

    /// Payload bytes that arrived.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        if self.fct_us.is_some() { self.bytes } else { self.receiver.bytes }
    }
}

/// Why a flow did not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incomplete {
    /// Its connection was given up: no packet of it was acknowledged for `give_up_us`.
    GivenUp,
    /// It had started when the time limit or an operator ended the run.
    CutOff,
    /// It did not start: it waits for a flow that did not complete, or for a time after the end of the run.
    NotStarted,
}

impl std::fmt::Display for Incomplete {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::GivenUp => "given-up",
            Self::CutOff => "cut-off",
            Self::NotStarted => "not-started",
        })
    }
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
        let percent = self.value.map(|share| format!("{} %", statistics::round3(share * 100.0)));
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

/// Frames lost by the machine that emulates the fabric, by place.
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

/// The values of each key, in the order of the first of each.
pub(crate) fn grouped<K: Clone + Eq + std::hash::Hash, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    let mut places = HashMap::new();
    for (key, value) in pairs {
        let place = *places.entry(key.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, own)) => own.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}
