//! `[workload]` or `[[workload]]`: the traffic.

mod read;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::units::{ByteSize, Micros, Ratio};

pub(super) use self::read::workloads;
use crate::workload::{Algorithm, Model, Overrides, Sizes};

/// A workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadSettings {
    /// Name in the results: letters, digits, `-`, `_` and `.`. By default the kind.
    pub name: Option<String>,
    /// The traffic pattern.
    #[serde(flatten)]
    pub pattern: PatternSettings,
    /// Participating hosts in this order: names of hosts, or of switches for their hosts; `*`
    /// matches any text. By default all hosts.
    #[schemars(length(min = 1))]
    pub hosts: Option<Vec<String>>,
    /// Number of these hosts to draw from each run's seed, without those drawn by other workloads.
    #[schemars(range(min = 2, max = 65_536))]
    pub draw_hosts: Option<usize>,
    /// Transport of the workload.
    #[serde(flatten)]
    pub own: Overrides,
    /// A file whose bytes every flow carries, repeated as needed. A relative path starts at the
    /// scenario's folder. By default flows carry random bytes.
    #[schemars(extend("x-file" = true))]
    pub payload: Option<String>,
    /// A share of the sending hosts with a separate name and transport. The table may be repeated.
    #[serde(default)]
    pub part: Vec<PartSettings>,
}

/// A share of a workload's sending hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartSettings {
    /// Name in the results.
    pub name: String,
    /// The share, rounded to a host and drawn from each run's seed. Larger shares include smaller.
    #[schemars(range(min = 0, max = 1))]
    pub share: Ratio,
    /// Transport of the part.
    #[serde(flatten)]
    pub own: Overrides,
}

/// The traffic pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PatternSettings {
    /// Every host sends to one under another leaf and receives from one.
    CrossLeafPermutation(FlowTemplateSettings),
    /// Every host sends to one of another pod (the switches connected below the top tier).
    CrossPodPermutation(FlowTemplateSettings),
    /// Every host sends to another one and receives from one.
    Permutation(FlowTemplateSettings),
    /// Every host sends to every other.
    AllToAll {
        /// Maximum number of concurrent messages of a host. By default all.
        #[schemars(range(min = 1, max = 65_535))]
        concurrent_messages: Option<u32>,
        /// Number of rounds. A host begins the next one when it has received all messages of the
        /// last.
        #[serde(default = "one::<u32>")]
        #[schemars(range(min = 1, max = 100_000))]
        rounds: u32,
        /// Computation time of each host between two rounds.
        #[serde(default)]
        #[schemars(range(min = 0, max = 3_600_000_000_u64))]
        compute_us: Micros,
        /// Whether messages between two hosts share a connection.
        #[serde(default)]
        connections: Connections,
        /// Bytes and start.
        #[serde(flatten)]
        each: FlowTemplateSettings,
    },
    /// Host i of n sends to host i + n / 2.
    Tornado(FlowTemplateSettings),
    /// Several hosts send to one.
    Incast {
        /// Number of senders, most distant hosts first. By default all other hosts.
        #[schemars(range(min = 1, max = 65_535))]
        senders: Option<usize>,
        /// Name of the receiving host. By default the first host.
        receiver: Option<String>,
        /// Bytes and start.
        #[serde(flatten)]
        each: FlowTemplateSettings,
    },
    /// Every host sends messages to random hosts, each after the previous one (Flowcut §III-B2).
    ClosedLoop(ClosedLoopSettings),
    /// Every host sends messages to random hosts at random times: an open loop.
    Poisson(PoissonSettings),
    /// All hosts get the sum of all hosts' data.
    AllReduce(CollectiveSettings),
    /// All hosts get all hosts' data.
    AllGather(CollectiveSettings),
    /// Each host gets its share of the sum of all hosts' data.
    ReduceScatter(CollectiveSettings),
    /// The backward pass of fully sharded data parallelism: for each layer a reduce-scatter and an
    /// all-gather, in eight parallel rings (OFAN §8.4).
    Fsdp {
        /// The model.
        model: Model,
        /// Number of layers.
        #[serde(default = "one::<u32>")]
        #[schemars(range(min = 1, max = 100_000))]
        layers: u32,
        /// Computation time of each host between two layers.
        #[serde(default)]
        #[schemars(range(min = 0, max = 3_600_000_000_u64))]
        compute_us: Micros,
        /// Whether messages between two hosts share a connection.
        #[serde(default)]
        connections: Connections,
        /// Start of the first layer.
        #[serde(default)]
        #[schemars(range(min = 0, max = 3_600_000_000_u64))]
        start_us: Micros,
    },
    /// The flows that `[[workload.flow]]` lists.
    Flows {
        /// A flow. The table may be repeated.
        #[schemars(length(min = 1))]
        flow: Vec<FlowSettings>,
    },
    /// The flows of a `.cm` file.
    Matrix {
        /// A `.cm` file; a relative path starts at the scenario's folder.
        #[schemars(extend("x-file" = true))]
        file: String,
    },
}

impl PatternSettings {
    /// Returns the kind as scenarios name it.
    fn kind(&self) -> String {
        let settings = serde_json::to_value(self).expect("settings always serialise");
        settings["kind"].as_str().expect("the kind is a word").into()
    }
}

fn one<T: From<u8>>() -> T {
    1.into()
}

/// Whether messages between two hosts share a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Connections {
    /// They do, and balancers keep their state.
    #[default]
    Persistent,
    /// Each message has a new one.
    New,
}

/// Settings of all collectives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectiveSettings {
    /// The algorithm.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// Data of each host; with `all-gather`, the result.
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    pub bytes: ByteSize,
    /// Number of independent groups: host i is in group i modulo this.
    #[serde(default = "one::<usize>")]
    #[schemars(range(min = 1, max = 32_768))]
    pub groups: usize,
    /// Number of rounds: a host begins the next one when it has received all of the last.
    #[serde(default = "one::<u32>")]
    #[schemars(range(min = 1, max = 100_000))]
    pub rounds: u32,
    /// Computation time of each host between two rounds.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub compute_us: Micros,
    /// Whether messages between two hosts share a connection.
    #[serde(default)]
    pub connections: Connections,
    /// Start of the first round.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub start_us: Micros,
}

/// Distribution of message sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizesSettings {
    /// A published distribution; this or `sizes_file`.
    pub sizes: Option<Sizes>,
    /// A file with lines BYTES SHARE: the share, up to 1 or in percent, of messages of at most that
    /// size. A relative path starts at the scenario's folder.
    #[schemars(extend("x-file" = true))]
    pub sizes_file: Option<String>,
    /// Maximum message size, to which larger ones are cut. Required for `uniform`.
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    pub max_bytes: Option<ByteSize>,
}

/// Random arrivals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoissonSettings {
    /// Payload sent by each host, as a share of its link's rate.
    #[schemars(range(min = 0.001, max = 1))]
    pub load: f64,
    /// Message sizes.
    #[serde(flatten)]
    pub sizes: SizesSettings,
    /// Whether partners are under another leaf, so that all messages cross the switches above.
    #[serde(default)]
    pub cross_leaf: bool,
    /// Start of arrivals.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub start_us: Micros,
    /// End of arrivals.
    #[schemars(range(min = 0.000_001, max = 3_600_000_000_u64))]
    pub until_us: Micros,
}

/// Size and start of all flows of a pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowTemplateSettings {
    /// Payload of each flow. By default the size of the `payload` file; required without one.
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    pub bytes: Option<ByteSize>,
    /// Start of all flows.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub start_us: Micros,
}

/// Closed-loop messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClosedLoopSettings {
    /// Message sizes.
    #[serde(flatten)]
    pub sizes: SizesSettings,
    /// Number of messages of each host; with `until_us` the maximum.
    #[schemars(range(min = 1, max = 100_000))]
    pub messages: u32,
    /// Whether partners are under another leaf, so that all messages cross the switches above.
    #[serde(default)]
    pub cross_leaf: bool,
    /// Start of the first messages.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub start_us: Micros,
    /// End of message starts. By default all are sent.
    #[schemars(range(min = 0.000_001, max = 3_600_000_000_u64))]
    pub until_us: Option<Micros>,
}

/// One flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSettings {
    /// Name of the sending host.
    pub src: String,
    /// Name of the receiving host, another one.
    pub dst: String,
    /// Payload of the flow. By default the size of the `payload` file; required without one.
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    pub bytes: Option<ByteSize>,
    /// Start of the flow.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub start_us: Micros,
}
