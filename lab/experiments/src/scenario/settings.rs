//! The settings of a scenario, declared once. Users read the comments on fields.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::path::FlowcutConfig;
use spray_core::units::{ByteSize, Micros, Ratio};
use spray_fabric::{HashFields, HashFunction, HashSeed, Scheme, conweave, reunion};
use spray_settings::{Transport, one_or_list_of};

use super::failure::{FailureSettings, Routing};
use super::link_event::LinkEventSettings;
use super::topology::Topology;
use super::workload::WorkloadSettings;
use super::{QueueLength, Seeds};

/// A scenario file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "A scenario of spray")]
pub struct Settings {
    /// Name of the scenario and its results folder: letters, digits, `-`, `_`, `.`, no `.` first.
    #[schemars(extend("x-single" = true))]
    pub name: String,
    /// The fabric's condition in two or three words. By default a list of faults.
    #[schemars(extend("x-single" = true))]
    pub condition: Option<String>,
    /// Root of all random choices.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 9_223_372_036_854_775_807_u64), extend("x-single" = true))]
    pub seed: u64,
    /// In place of `seed`: one run for each of these seeds.
    #[serde(default)]
    #[schemars(schema_with = "one_or_list_of::<Seeds>")]
    pub seeds: Vec<Seeds>,
    /// Scenario time at which a run is stopped; flows are then incomplete. By default 50 times the
    /// least time of the flows, at least 20000; over the slowest link, if that is slower than all
    /// hosts' links from the start.
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub time_limit_us: Option<Micros>,
    /// Sampling interval of time series; long runs use a power of two times that. 0 is off.
    #[serde(default = "sample_us")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub sample_us: Micros,
    /// Hosts, switches and cables.
    pub topology: Topology,
    /// Traffic: `[workload]`, or `[[workload]]` for each of several at once.
    #[schemars(schema_with = "one_or_list_of::<WorkloadSettings>")]
    pub workload: Vec<WorkloadSettings>,
    /// Transport of senders and receivers. Each scheme has a table.
    #[serde(default)]
    pub transport: Transport,
    /// Queues of every port.
    #[serde(default)]
    pub queue: Queue,
    /// How switches choose among ports of equal cost.
    #[serde(default)]
    pub switch: Switch,
    /// A timed change of links. The table may be repeated.
    #[serde(default)]
    pub link_event: Vec<LinkEventSettings>,
    /// Random failures of links or switches. The table may be repeated.
    #[serde(default)]
    pub failure: Vec<FailureSettings>,
    /// Reaction of routing to failures.
    #[serde(default)]
    pub routing: Routing,
    /// Settings of the `xdp` engine, which runs the scenario on this machine.
    #[serde(default)]
    pub emulation: Emulation,
    /// Settings of the `sim` engine; the `xdp` engine uses only the failures.
    #[serde(default)]
    pub simulation: SimulationSettings,
}

fn one() -> u64 {
    1
}

fn sample_us() -> Micros {
    Micros::new(20)
}

/// Queues of every port.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Queue {
    /// Queue limit of a port: from one full packet to less than 4 GiB, on the `xdp` engine at most
    /// 16711680 bytes. A BDP is the longest base RTT of the fabric times the port's rate; a packet
    /// is a full data frame with headers. Lengths are rounded down to bytes.
    pub limit: QueueLength,
    /// Whether switches mark packets (ECN).
    pub marking: bool,
    /// Queue length below which no packet is marked.
    pub mark_min: QueueLength,
    /// Queue length from which every packet is marked. From `mark_min` to this the share of marked
    /// packets grows from 0 to `mark_probability`.
    pub mark_max: QueueLength,
    /// Marking probability just below `mark_max`: 1 makes RED's curve continuous, DCQCN has less.
    #[schemars(range(min = 0.001, max = 1))]
    pub mark_probability: Ratio,
    /// When a packet is marked. The `xdp` engine marks on arrival.
    pub mark_at: MarkAt,
    /// Queue limit of ACKs and trimmed headers, which are sent before data; less than 4 GiB.
    pub control_limit: QueueLength,
    /// Whether switches trim data frames beyond the limit to their headers, or drop them.
    pub trimming: bool,
    /// Number of DSCPs of trimmed frames: 2 let hosts distinguish incasts, at the last port.
    #[schemars(range(min = 1, max = 2))]
    pub trim_dscps: u8,
    /// Memory shared by a switch's ports. By default each port has `limit`. The `sim` engine only.
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    pub shared_buffer: Option<ByteSize>,
    /// With `shared_buffer`: queue limit over free memory (dynamic thresholds), at most `limit`.
    #[schemars(range(min = 0.001, max = 1_000))]
    pub alpha: Ratio,
    /// Priority flow control: whether a switch pauses data on a link when more of its data waits
    /// than `limit` or the link's share of `shared_buffer`. No port drops or trims data then. The
    /// `sim` engine only.
    pub pfc: bool,
    /// Memory for data in flight until a pause takes effect; more is dropped. By default enough.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    pub pfc_headroom: Option<ByteSize>,
}

/// When a switch marks a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum MarkAt {
    /// On arrival, by the data that waits.
    #[default]
    Arrival,
    /// On departure, by the data behind it, as in the published simulations and most switches.
    Departure,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            limit: QueueLength::Bdp(1.0),
            marking: true,
            mark_min: QueueLength::Percent(20.0),
            mark_max: QueueLength::Percent(80.0),
            mark_probability: Ratio::permille(1_000),
            mark_at: MarkAt::Arrival,
            control_limit: QueueLength::Percent(100.0),
            trimming: true,
            trim_dscps: 1,
            shared_buffer: None,
            alpha: Ratio::permille(1_000),
            pfc: false,
            pfc_headroom: None,
        }
    }
}

/// How switches choose among ports of equal cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Switch {
    /// Scheme of switches in tiers without their own.
    pub scheme: Scheme,
    /// Scheme of switches with hosts: ToRs, leaves, dragonfly routers. By default `scheme`.
    pub tor: Option<Scheme>,
    /// Scheme of the next tier: aggregation switches, spines. By default `scheme`.
    pub agg: Option<Scheme>,
    /// Scheme of the top tier: cores. By default `scheme`.
    pub core: Option<Scheme>,
    /// Gap that ends a flowlet, in steps of 4.096 ns. By default half the longest base RTT (REPS
    /// §4.1).
    #[schemars(range(min = 0.01, max = 1_000_000))]
    pub flowlet_gap_us: Option<Micros>,
    /// Settings of `flowcut-switch` and `flowcut-ingress`.
    pub flowcut: Flowcut,
    /// Hash function of switches.
    pub hash: HashFunction,
    /// Hashed fields of a packet. An IPv6 flow label has the entropy value, like the source port.
    pub hash_fields: HashFields,
    /// Which switches share a hash seed: they choose alike, and leave paths unused.
    pub hash_seed: HashSeed,
    /// Settings of `reunion`, over any base.
    pub reunion: Reunion,
    /// Settings of `conweave`.
    pub conweave: ConWeave,
}

/// Settings of `flowcut-switch` and `flowcut-ingress`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Flowcut {
    /// A flow drains when its average normalised round-trip time exceeds this (Flowcut §III-C1).
    #[schemars(range(min = 1, max = 1_000))]
    pub rtt_ratio: Ratio,
    /// Weight of a new sample in that average: alpha (Flowcut §III-C1).
    #[schemars(range(min = 0.001, max = 1))]
    pub weight: Ratio,
    /// A flow drains when that time grows by more than this per ACK, on average. 0 is off.
    #[schemars(range(min = 0, max = 1_000))]
    pub trend: Ratio,
    /// Weight of a new sample in that average.
    #[schemars(range(min = 0.001, max = 1))]
    pub trend_weight: Ratio,
    /// A draining flow resumes when at most this many of its packets are in flight; it keeps its
    /// old port until they have arrived.
    pub resume_packets: u32,
}

impl Default for Flowcut {
    /// Returns the defaults of [`FlowcutConfig`].
    fn default() -> Self {
        let FlowcutConfig { rtt_ratio, weight, trend, trend_weight, .. } = FlowcutConfig::default();
        Self { rtt_ratio, weight, trend, trend_weight, resume_packets: 0 }
    }
}

impl Flowcut {
    /// Returns the settings of a connection that drains by the same rule.
    pub fn config(&self) -> FlowcutConfig {
        let Self { rtt_ratio, weight, trend, trend_weight, .. } = *self;
        FlowcutConfig { rtt_ratio, weight, trend, trend_weight, ..FlowcutConfig::default() }
    }
}

/// Settings of `reunion`, over any base.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reunion {
    /// Interval after which switches report and move elephants: the paper's s (Reunion §3.1).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub interval_us: Micros,
    /// Elephants per link without a collision: the paper's t, 1 at the links' rate, the number of
    /// slices for sliced flows (Reunion §3.1).
    #[schemars(range(min = 1, max = 1_000))]
    pub tolerance: u32,
    /// Pause after which a moved flow returns to the base's path, in steps of 1.049 us (Reunion
    /// §4.2).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub timeout_us: Micros,
}

impl Default for Reunion {
    fn default() -> Self {
        let reunion::Settings { interval_ps, tolerance, timeout_ps, .. } = reunion::Settings::default();
        Self { interval_us: Micros::from_ps(interval_ps), tolerance, timeout_us: Micros::from_ps(timeout_ps) }
    }
}

/// Settings of `conweave`. Defaults are those of the paper's published simulation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConWeave {
    /// Delay of a reply beyond the base RTT between the two switches after which its flow takes
    /// another path. Their sum is the paper's theta_reply.
    #[schemars(range(min = 0.01, max = 1_000_000))]
    pub reply_extra_us: Micros,
    /// Time for which a path is avoided after a marked packet: theta_path_busy.
    #[schemars(range(min = 0.01, max = 1_000_000))]
    pub path_busy_us: Micros,
    /// Pause of a flow after which it may change its path at once: theta_inactive. By default 300
    /// us with two tiers of switches, 1 ms with more.
    #[schemars(range(min = 0.01, max = 1_000_000))]
    pub inactive_us: Option<Micros>,
    /// Time to wait for a TAIL beyond its expected arrival: theta_resume_extra. By default 16 us;
    /// 64 us with more than two tiers and priority flow control.
    #[schemars(range(min = 0.01, max = 1_000_000))]
    pub resume_extra_us: Option<Micros>,
    /// Time to wait for it without an expected arrival: theta_resume_default. By default 200 us;
    /// with more than two tiers 300 us, or 600 us with priority flow control.
    #[schemars(range(min = 0.01, max = 1_000_000))]
    pub resume_default_us: Option<Micros>,
    /// Reordering queues of each port to a host.
    #[schemars(range(min = 1, max = 256))]
    pub queues: u32,
    /// Maximum bytes held by a switch; beyond that packets are forwarded out of order.
    pub reorder_buffer: ByteSize,
}

impl Default for ConWeave {
    fn default() -> Self {
        let conweave::Settings { reply_extra_ps, path_busy_ps, queues, held_bytes, .. } = conweave::Settings::default();
        Self {
            reply_extra_us: Micros::from_ps(reply_extra_ps),
            path_busy_us: Micros::from_ps(path_busy_ps),
            inactive_us: None,
            resume_extra_us: None,
            resume_default_us: None,
            queues,
            reorder_buffer: ByteSize::new(held_bytes),
        }
    }
}

/// Settings of the `xdp` engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Emulation {
    /// Factor by which the fabric runs slower than scenario time. By default measured, so that this
    /// machine carries the hosts' full rate.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub dilation: Option<f64>,
    /// Which switches share an XDP program.
    pub chassis: Chassis,
}

/// Which switches share an XDP program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Chassis {
    /// All of them.
    #[default]
    Fabric,
    /// None: each has a program and a namespace, connected by veth pairs.
    PerSwitch,
}

/// Settings of the `sim` engine; the `xdp` engine uses only the failures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SimulationSettings {
    /// Header bytes of a data frame. By default those of our frames.
    #[schemars(range(min = 1, max = 1_000))]
    pub header_bytes: Option<u32>,
    /// Bytes of an ACK, NACK, probe or trimmed frame. By default those of our frames.
    #[schemars(range(min = 1, max = 1_000))]
    pub control_bytes: Option<u32>,
    /// Whether a `rate` event at time 0 scales the link's queue limit and marking thresholds too,
    /// as in the published simulations.
    pub short_slow_queues: bool,
    /// When a flow is complete.
    pub fct_end: FctEnd,
    /// Share of the cables that fail silently from the start, rounded up to a cable, each in one
    /// direction, drawn from the seed of each run.
    #[schemars(range(min = 0.001, max = 99.999))]
    pub dead_cables_percent: Option<f64>,
    /// A failure file: devices that fail are drawn from the seed of each run. A relative path
    /// starts at the scenario's folder.
    #[schemars(extend("x-file" = true))]
    pub failures: Option<String>,
}

/// When a flow is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum FctEnd {
    /// When the receiver has the last byte, as in the testbed.
    #[default]
    Received,
    /// When the sender has the last acknowledgement, as in the published simulations.
    Acked,
}
