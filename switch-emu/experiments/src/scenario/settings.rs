//! The settings of a scenario, declared once: the reader, its messages, `--set`, the JSON Schema and the tables of
//! `docs/reference/settings.md` come from these types. Comments on fields are what people read there.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use spray_core::cc::{CcKind, CcSchemes};
use spray_core::flow::DEFAULT_SACK_GAP_PACKETS;
use spray_core::loss::SackRule;
use spray_core::path::{BalancerKind, Schemes};
use spray_core::units::{ByteSize, Micros};

use super::QueueLength;
use super::link_event::LinkEventSettings;
use super::topology::Topology;
use super::workload::WorkloadSettings;
use crate::sim::FctEnd;

/// A scenario as its file says it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "A scenario of spray")]
pub struct Settings {
    /// Names the scenario and its results folder: letters, digits, `-`, `_` and `.`, no `.` first.
    pub name: String,
    /// Two or three words on what is wrong with the fabric. By default from the link events and failures.
    #[serde(default)]
    pub condition: Option<String>,
    /// Root of every random choice.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 9_223_372_036_854_775_807_u64))]
    pub seed: u64,
    /// Scenario time after which a run is stopped; what has not arrived by then counts as not completed. By default 50 times
    /// the ideal, at least 20000.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub time_limit_us: Option<Micros>,
    /// Scenario time between samples of queues and deliveries; 0 takes none.
    #[serde(default = "sample_us")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub sample_us: Micros,
    /// Hosts, switches and cables.
    pub topology: Topology,
    /// Who sends what to whom.
    pub workload: WorkloadSettings,
    /// How senders and receivers work. Each scheme has a table of its own.
    #[serde(default)]
    pub transport: Transport,
    /// The queue of every port.
    #[serde(default)]
    pub queue: Queue,
    /// What befalls a link, and when. The table may be repeated.
    #[serde(default)]
    pub link_event: Vec<LinkEventSettings>,
    /// How the `xdp` engine plays the scenario.
    #[serde(default)]
    pub emulation: Emulation,
    /// What the `sim` engine alone can do.
    #[serde(default)]
    pub simulation: SimulationSettings,
}

fn one() -> u64 {
    1
}

fn sample_us() -> Micros {
    Micros::new(20)
}

/// How senders and receivers work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Transport {
    /// What chooses paths; with a list each in turn.
    #[schemars(schema_with = "one_or_list")]
    pub balancer: Vec<BalancerKind>,
    /// Congestion control.
    pub cc: CcKind,
    /// Window before the first feedback. By default 1.5 BDP in whole packets.
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    pub initial_window_bytes: Option<ByteSize>,
    /// Largest window of `dctcp`; the whole window of `fixed-rate`. By default 1.5 BDP; under `fixed-rate` without a limit.
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    pub max_window_bytes: Option<ByteSize>,
    /// IP version.
    pub ip: Ip,
    /// Payload of a full packet. At most 3398, with IPv6 3378: XDP on veth carries IP packets of at most 3,498 bytes. Frames of
    /// other sizes (`header_bytes` in `[simulation]`) may carry up to 9000.
    #[schemars(range(min = 64, max = 9_000))]
    pub payload_bytes: u32,
    /// Data packets to one ACK.
    #[schemars(range(min = 1, max = 64))]
    pub ack_every: u32,
    /// Most entropy values in an ACK: that of the packet that triggered it, then those of the latest others that it stands for.
    #[schemars(range(min = 1, max = 16))]
    pub ack_evs: u32,
    /// A packet that arrives marked is acknowledged at once, whatever `ack_every`, as in the published simulations.
    pub ack_marked: bool,
    /// How long an ACK may wait for more packets. By default a quarter of the base RTT.
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub ack_delay_us: Option<Micros>,
    /// Number of entropy values.
    #[schemars(range(min = 1, max = 65_535))]
    pub evs: u32,
    /// Packets between the oldest unacknowledged and the newest; a power of two.
    #[schemars(range(min = 256, max = 16_384))]
    pub window_packets: u32,
    /// A packet is lost when so many sent later have arrived and the largest recent RTT has passed; 0 leaves losses to the timer
    /// and to trims.
    #[schemars(range(min = 0, max = 16_384))]
    pub sack_gap_packets: u32,
    /// What it takes besides.
    pub sack_rule: SackRule,
    /// Messages go in an ideal erasure code: whichever packets arrive, enough of them make a message. The simulator only.
    pub erasure: bool,
    /// Least, and first, retransmission timeout. By default the base RTT and the time that four full queues take to drain.
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub rto_min_us: Option<Micros>,
    /// Largest retransmission timeout. By default 16 times the least; 0 is the least.
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub rto_max_us: Option<Micros>,
    /// Time without any progress after which a connection fails.
    #[schemars(range(min = 0.000_001, max = 3_600_000_000_u64))]
    pub give_up_us: Micros,
    /// Settings of the balancers.
    #[serde(flatten)]
    pub schemes: Schemes,
    /// Settings of the congestion controls.
    #[serde(flatten)]
    pub cc_schemes: CcSchemes,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            balancer: vec![BalancerKind::Reps],
            cc: CcKind::Dctcp,
            initial_window_bytes: None,
            max_window_bytes: None,
            ip: Ip::V4,
            payload_bytes: 3_000,
            ack_every: 1,
            ack_evs: 1,
            ack_marked: false,
            ack_delay_us: None,
            evs: 65_535,
            window_packets: 4_096,
            sack_gap_packets: DEFAULT_SACK_GAP_PACKETS,
            sack_rule: SackRule::Patient,
            erasure: false,
            rto_min_us: None,
            rto_max_us: None,
            give_up_us: Micros::new(20_000),
            schemes: Schemes::default(),
            cc_schemes: CcSchemes::default(),
        }
    }
}

/// Version of the Internet Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Ip {
    /// IPv4.
    #[serde(rename = "4")]
    V4,
    /// IPv6.
    #[serde(rename = "6")]
    V6,
}

fn one_or_list(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<BalancerKind>();
    json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
}

/// The queue of every port.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Queue {
    /// Data that may wait at a port; less than 4 GiB, at most 8323072 bytes on the `xdp` engine. A BDP is the longest base RTT of
    /// the fabric times the port's own rate; a packet is a full data frame, headers included.
    pub limit: QueueLength,
    /// Switches mark packets.
    pub marking: bool,
    /// Below it nothing is marked.
    pub mark_min: QueueLength,
    /// From it on everything is marked; in between a growing share.
    pub mark_max: QueueLength,
    /// ACKs and trimmed headers that may wait; they go first.
    pub control_limit: QueueLength,
    /// Cut a data frame over the limit to its headers, instead of dropping it.
    pub trimming: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            limit: QueueLength::Bdp(1.0),
            marking: true,
            mark_min: QueueLength::Percent(20.0),
            mark_max: QueueLength::Percent(80.0),
            control_limit: QueueLength::Percent(100.0),
            trimming: true,
        }
    }
}

/// How the `xdp` engine plays a scenario.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Emulation {
    /// How many times slower than scenario time the machine runs. By default as slowly as it takes to carry the hosts' full rate,
    /// which is measured.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub dilation: Option<f64>,
    /// Which switches share a program.
    pub chassis: Chassis,
    /// Threads that poll hosts. By default one a core, at most one a host.
    #[schemars(range(min = 1, max = 256))]
    pub threads: Option<u32>,
}

/// Which switches share a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Chassis {
    /// All of them.
    #[default]
    Fabric,
    /// Each has its own, in a namespace of its own, joined with others by veth.
    PerSwitch,
}

/// What the `sim` engine alone can do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SimulationSettings {
    /// All headers of a data frame. By default as many as our own frames have.
    #[schemars(range(min = 1, max = 1_000))]
    pub header_bytes: Option<u32>,
    /// Size of ACKs, NACKs, probes and trimmed frames. By default that of our own frames.
    #[schemars(range(min = 1, max = 1_000))]
    pub control_bytes: Option<u32>,
    /// When a flow counts as complete.
    pub fct_end: FctEnd,
    /// Share of the cables of which one direction fails silently from the start; which ones is drawn from the seed of each run.
    #[schemars(range(min = 0.001, max = 99.999))]
    pub dead_cables_percent: Option<f64>,
    /// A failure file, whose victims are drawn from the seed of each run; a relative path starts at the scenario's folder.
    pub failures: Option<String>,
}
