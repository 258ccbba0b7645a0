//! The settings of a scenario, declared once. The reader, its messages, `--set`, the JSON Schema and `spray explain` use these
//! types. Users read the comments on fields.

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

/// A scenario as it is written in its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "A scenario of spray")]
pub struct Settings {
    /// Name of the scenario and of its results folder: letters, digits, `-`, `_` and `.`, not beginning with `.`.
    #[schemars(extend("x-single" = true))]
    pub name: String,
    /// What is wrong with the fabric, in two or three words. By default a list of the link events and failures.
    #[serde(default)]
    #[schemars(extend("x-single" = true))]
    pub condition: Option<String>,
    /// Root of every random choice.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 9_223_372_036_854_775_807_u64), extend("x-single" = true))]
    pub seed: u64,
    /// In place of `seed`: one run for each of these seeds.
    #[serde(default)]
    #[schemars(schema_with = "one_or_list_of::<Seeds>")]
    pub seeds: Vec<Seeds>,
    /// Scenario time at which a run is stopped; flows that have not completed by then count as incomplete. By default 50 times
    /// the least time that the flows could take, at least 20000; over the slowest link, if one is slower than all hosts' links from the beginning.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub time_limit_us: Option<Micros>,
    /// How long the bins of scenario time are in which queues, what leaves ports and delivered bytes are counted; a power of two times that
    /// in a run that is long for it. 0 counts nothing over time.
    #[serde(default = "sample_us")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub sample_us: Micros,
    /// Hosts, switches and cables.
    pub topology: Topology,
    /// Who sends what to whom: `[workload]`, or `[[workload]]` for each of several at once.
    #[schemars(schema_with = "one_or_list_of::<WorkloadSettings>")]
    pub workload: Vec<WorkloadSettings>,
    /// How senders and receivers work. Each scheme has a table of its own.
    #[serde(default)]
    pub transport: Transport,
    /// The queue of every port.
    #[serde(default)]
    pub queue: Queue,
    /// How switches choose among ports of equal cost.
    #[serde(default)]
    pub switch: Switch,
    /// A change of a link, and when it happens. The table may be repeated.
    #[serde(default)]
    pub link_event: Vec<LinkEventSettings>,
    /// Links or switches that fail at random. The table may be repeated.
    #[serde(default)]
    pub failure: Vec<FailureSettings>,
    /// How routing learns of failures.
    #[serde(default)]
    pub routing: Routing,
    /// Settings of the `xdp` engine, which runs the scenario on this machine.
    #[serde(default)]
    pub emulation: Emulation,
    /// Settings of the `sim` engine. Of these the `xdp` engine takes the failures only.
    #[serde(default)]
    pub simulation: SimulationSettings,
}

fn one() -> u64 {
    1
}

fn sample_us() -> Micros {
    Micros::new(20)
}

/// The queue of every port.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Queue {
    /// Most data that may wait at a port: from one full packet to less than 4 GiB, on the `xdp` engine at most 16711680 bytes. A BDP is the
    /// longest base RTT of the fabric times the port's own rate; a packet is a full data frame with its headers. Lengths are whole bytes, rounded
    /// down.
    pub limit: QueueLength,
    /// Whether switches mark packets (ECN).
    pub marking: bool,
    /// Queue length below which no packet is marked.
    pub mark_min: QueueLength,
    /// Queue length from which on every packet is marked. Between `mark_min` and this the share of marked packets grows from 0 to
    /// `mark_probability`.
    pub mark_max: QueueLength,
    /// The share of packets that are marked just below `mark_max`: 1 makes RED's curve continuous, DCQCN has less.
    #[schemars(range(min = 0.001, max = 1))]
    pub mark_probability: Ratio,
    /// When a packet is marked. The `xdp` engine marks as packets arrive.
    pub mark_at: MarkAt,
    /// Most bytes of ACKs and trimmed headers that may wait, from one of them to less than 4 GiB. They are sent before data.
    pub control_limit: QueueLength,
    /// Trimming: switches cut a data frame that exceeds the limit to its headers, instead of dropping it.
    pub trimming: bool,
    /// DSCPs of trimmed frames. With 2 the last port of a path, which leads to the host, has one of its own: hosts can tell an incast
    /// from a busy fabric.
    #[schemars(range(min = 1, max = 2))]
    pub trim_dscps: u8,
    /// Memory that the ports of a switch share, at least a full packet. By default every port has `limit` of its own. The `sim` engine only.
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    pub shared_buffer: Option<ByteSize>,
    /// With `shared_buffer`: as much data may wait at a port as this times the memory that is free, at most `limit` (dynamic
    /// thresholds).
    #[schemars(range(min = 0.001, max = 1_000))]
    pub alpha: Ratio,
    /// Whether a switch has the senders of a link pause their data (priority flow control) when more of what came over that link
    /// waits than `limit` or the link's share of `shared_buffer`. No port drops or trims data then. The `sim` engine only.
    pub pfc: bool,
    /// Memory of a switch for the data that comes over a link until a pause stops it; what exceeds it is dropped. By default as
    /// much as that can be.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    pub pfc_headroom: Option<ByteSize>,
}

/// When a switch marks a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum MarkAt {
    /// When it comes, by the data that waits.
    #[default]
    Arrival,
    /// When its last bit leaves, by the data that waits behind it, as in the published simulations and most switches.
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
    /// The scheme of every switch whose tier has no other.
    pub scheme: Scheme,
    /// The scheme of the switches that have hosts: ToRs, leaves, routers of a dragonfly. By default `scheme`.
    pub tor: Option<Scheme>,
    /// The scheme of the switches above these: aggregation switches, spines. By default `scheme`.
    pub agg: Option<Scheme>,
    /// The scheme of the switches above these: cores. By default `scheme`.
    pub core: Option<Scheme>,
    /// The pause that ends a flowlet, for schemes that move flowlets. Switches note times in steps of 4.096 ns. By default half the longest base
    /// RTT (REPS §4.1).
    #[schemars(range(min = 0.01, max = 1_000_000))]
    pub flowlet_gap_us: Option<Micros>,
    /// How switches with `flowcut-switch` and `flowcut-ingress` work.
    pub flowcut: Flowcut,
    /// By which function switches hash.
    pub hash: HashFunction,
    /// What of a packet they hash. Its flow label, over IPv6, is its entropy value as the source port is.
    pub hash_fields: HashFields,
    /// Which switches hash with the same seed: those that do choose alike, and leave paths unused.
    pub hash_seed: HashSeed,
    /// How switches with `reunion` work, over any base.
    pub reunion: Reunion,
    /// How switches with `conweave` work.
    pub conweave: ConWeave,
}

/// How switches with `flowcut-switch` and `flowcut-ingress` work.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Flowcut {
    /// A flow drains when the average of its normalised round-trip time exceeds this (Flowcut §III-C1).
    #[schemars(range(min = 1, max = 1_000))]
    pub rtt_ratio: Ratio,
    /// Weight of a new sample in that average: alpha (Flowcut §III-C1).
    #[schemars(range(min = 0.001, max = 1))]
    pub weight: Ratio,
    /// A flow drains when that time grows by more than this per acknowledgement, on average. 0 turns it off.
    #[schemars(range(min = 0, max = 1_000))]
    pub trend: Ratio,
    /// Weight of a new sample in that average.
    #[schemars(range(min = 0.001, max = 1))]
    pub trend_weight: Ratio,
    /// A draining flow may go on when at most this many of its packets are on their way. What it sends then goes by its old port if they have
    /// not arrived before.
    pub resume_packets: u32,
}

impl Default for Flowcut {
    /// Those of [`FlowcutConfig`].
    fn default() -> Self {
        let FlowcutConfig { rtt_ratio, weight, trend, trend_weight, .. } = FlowcutConfig::default();
        Self { rtt_ratio, weight, trend, trend_weight, resume_packets: 0 }
    }
}

impl Flowcut {
    /// The settings of a connection that drains by the same rule.
    pub fn config(&self) -> FlowcutConfig {
        let Self { rtt_ratio, weight, trend, trend_weight, .. } = *self;
        FlowcutConfig { rtt_ratio, weight, trend, trend_weight, ..FlowcutConfig::default() }
    }
}

/// How switches with `reunion` work, over any base.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reunion {
    /// The time in which switches count elephants, and after which they tell and move them: the paper's s (Reunion §3.1).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub interval_us: Micros,
    /// Elephants that a link may have without a collision: the paper's t, 1 where they go at the links' rate, the number of slices
    /// where flows are sliced (Reunion §3.1).
    #[schemars(range(min = 1, max = 1_000))]
    pub tolerance: u32,
    /// A pause after which a flow that was moved goes where the base sends it: the fallback (Reunion §4.2). Switches note times in steps of
    /// 1.049 us.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub timeout_us: Micros,
}

impl Default for Reunion {
    fn default() -> Self {
        let reunion::Settings { interval_ps, tolerance, timeout_ps, .. } = reunion::Settings::default();
        let micros = |ps| Micros::new(ps / 1_000_000);
        Self { interval_us: micros(interval_ps), tolerance, timeout_us: micros(timeout_ps) }
    }
}

/// How switches with `conweave` work. Defaults are those of the paper's published simulation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConWeave {
    /// By how much a reply may be later than the base RTT between the two switches before its flow takes another path. Both together are
    /// the paper's theta_reply.
    #[schemars(range(min = 0.01, max = 1_000_000))]
    pub reply_extra_us: Micros,
    /// How long a path is not chosen after a marked packet has come over it: theta_path_busy.
    #[schemars(range(min = 0.01, max = 1_000_000))]
    pub path_busy_us: Micros,
    /// A pause of a flow after which it may take another path at once: theta_inactive. By default 300 us where all switches are leaves
    /// and spines, 1 ms with more tiers.
    #[schemars(range(min = 0.01, max = 1_000_000))]
    pub inactive_us: Option<Micros>,
    /// How long a TAIL is waited for beyond the time at which it is expected: theta_resume_extra. By default 16 us; 64 us with more
    /// tiers and priority flow control.
    #[schemars(range(min = 0.01, max = 1_000_000))]
    pub resume_extra_us: Option<Micros>,
    /// How long it is waited for where no packet of the old path has told when: theta_resume_default. By default 200 us; with more tiers 300 us, and
    /// 600 us with priority flow control too.
    #[schemars(range(min = 0.01, max = 1_000_000))]
    pub resume_default_us: Option<Micros>,
    /// Reordering queues of each port to a host.
    #[schemars(range(min = 1, max = 256))]
    pub queues: u32,
    /// What a switch holds at most; beyond that a flow's packets go on, out of order.
    pub held: ByteSize,
}

impl Default for ConWeave {
    fn default() -> Self {
        let conweave::Settings { reply_extra_ps, path_busy_ps, queues, held_bytes, .. } = conweave::Settings::default();
        let micros = |ps| Micros::new(ps / 1_000_000);
        Self {
            reply_extra_us: micros(reply_extra_ps),
            path_busy_us: micros(path_busy_ps),
            inactive_us: None,
            resume_extra_us: None,
            resume_default_us: None,
            queues,
            held: ByteSize::new(held_bytes),
        }
    }
}

/// How the `xdp` engine plays a scenario.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Emulation {
    /// How many times slower than scenario time the fabric runs. By default the engine measures how slow this machine must be to
    /// carry the hosts' full rate.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub dilation: Option<f64>,
    /// Which switches share one XDP program.
    pub chassis: Chassis,
    /// Threads that poll hosts, at most one per host. By default one: hosts send in the order of virtual time, and more threads wait for
    /// each other.
    #[schemars(range(min = 1, max = 256))]
    pub threads: Option<u32>,
}

/// Which switches share one XDP program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Chassis {
    /// All of them.
    #[default]
    Fabric,
    /// None: each has a program and a namespace of its own, and veth pairs join them.
    PerSwitch,
}

/// Settings of the `sim` engine. Of these the `xdp` engine takes the failures only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SimulationSettings {
    /// Bytes of all headers of a data frame. By default those of our own frames.
    #[schemars(range(min = 1, max = 1_000))]
    pub header_bytes: Option<u32>,
    /// Bytes of an ACK, NACK, probe or trimmed frame. By default those of our own frames.
    #[schemars(range(min = 1, max = 1_000))]
    pub control_bytes: Option<u32>,
    /// Whether a link that a `rate` event slows from time 0 on has as much less of its queue, thresholds of marks included, as in the
    /// published simulations.
    pub short_slow_queues: bool,
    /// When a flow counts as complete.
    pub fct_end: FctEnd,
    /// Share of the cables that fail silently from the start, rounded up to a whole cable, each in one direction. The seed of each run draws them.
    #[schemars(range(min = 0.001, max = 99.999))]
    pub dead_cables_percent: Option<f64>,
    /// A failure file: the seed of each run draws the devices that fail. A relative path starts at the scenario's folder.
    #[schemars(extend("x-file" = true))]
    pub failures: Option<String>,
}

/// When a flow counts as complete.
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
