//! `[workload]` or `[[workload]]`: who sends what to whom.

mod read;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::units::{ByteSize, Micros, Ratio};

pub(super) use self::read::workloads;
use crate::workload::{Algorithm, Model, Own, Sizes};

/// Who sends what to whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadSettings {
    /// Its name in the results: letters, digits, `-`, `_` and `.`. By default its kind.
    #[serde(default)]
    pub name: Option<String>,
    /// Who sends to whom.
    #[serde(flatten)]
    pub pattern: PatternSettings,
    /// The hosts that take part, in this order: names of hosts, or of switches for the hosts at them; `*` stands for any characters.
    /// By default all hosts.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub hosts: Option<Vec<String>>,
    /// So many of these hosts take part: each run's seed draws them and their order. Workloads that draw hosts have none in common.
    #[serde(default)]
    #[schemars(range(min = 2, max = 65_536))]
    pub draw_hosts: Option<usize>,
    /// Its own transport.
    #[serde(flatten)]
    pub own: Own,
    /// A file whose bytes every flow carries, repeated as often as needed. A relative path starts at the scenario's folder. By
    /// default flows carry random bytes.
    #[serde(default)]
    #[schemars(extend("x-file" = true))]
    pub payload: Option<String>,
    /// A share of the sending hosts whose flows have a name and a transport of their own. The table may be repeated.
    #[serde(default)]
    pub part: Vec<PartSettings>,
}

/// A share of a workload's sending hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartSettings {
    /// Its name in the results.
    pub name: String,
    /// The share, to the nearest whole host. Each run's seed draws the hosts; a larger share has those of a smaller one too.
    #[schemars(range(min = 0, max = 1))]
    pub share: Ratio,
    /// Their own transport.
    #[serde(flatten)]
    pub own: Own,
}

/// Who sends to whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PatternSettings {
    /// Every host sends to one under another leaf and receives from one.
    CrossLeafPermutation(EachSettings),
    /// Every host sends to one of another pod and receives from one. A pod are the switches that are joined without passing through the
    /// highest tier.
    CrossPodPermutation(EachSettings),
    /// Every host sends to another one and receives from one.
    Permutation(EachSettings),
    /// Every host sends to every other.
    AllToAll {
        /// Most messages of a host that are open at once: the next one starts when one is delivered. By default all.
        #[serde(default)]
        #[schemars(range(min = 1, max = 65_535))]
        open: Option<u32>,
        /// How often: a host begins the next round when it has all messages of the one before, on the same connections.
        #[serde(default = "one_round")]
        #[schemars(range(min = 1, max = 100_000))]
        rounds: u32,
        /// How long each host computes between two rounds.
        #[serde(default)]
        #[schemars(range(min = 0, max = 3_600_000_000_u64))]
        compute_us: Micros,
        /// Whether messages between two hosts share a connection.
        #[serde(default)]
        connections: Connections,
        /// Bytes and start.
        #[serde(flatten)]
        each: EachSettings,
    },
    /// Host i of n sends to host i + n / 2.
    Tornado(EachSettings),
    /// Several hosts send to one.
    Incast {
        /// How many hosts send. Hosts on the longest paths to the receiver are taken first. By default all other hosts.
        #[serde(default)]
        #[schemars(range(min = 1, max = 65_535))]
        senders: Option<usize>,
        /// Name of the receiving host. By default the first host.
        #[serde(default)]
        receiver: Option<String>,
        /// Bytes and start.
        #[serde(flatten)]
        each: EachSettings,
    },
    /// Every host sends one message after the other: the next one, to another random host, when the one before is delivered
    /// (Flowcut §III-B2).
    PartnerAfterPartner(PartnersSettings),
    /// Every host sends messages to random hosts at random times, whether earlier ones have arrived or not: an open loop.
    Poisson(PoissonSettings),
    /// All hosts get the sum of what all have.
    AllReduce(CollectiveSettings),
    /// All hosts get what all have.
    AllGather(CollectiveSettings),
    /// Each host gets its share of the sum of what all have.
    ReduceScatter(CollectiveSettings),
    /// The backward pass of a model that is trained with fully sharded data parallelism: for each layer a reduce-scatter and an
    /// all-gather, in eight rings beside each other (OFAN §8.4).
    Fsdp {
        /// The model.
        model: Model,
        /// So many of its layers.
        #[serde(default = "one_round")]
        #[schemars(range(min = 1, max = 100_000))]
        layers: u32,
        /// How long each host computes between two layers.
        #[serde(default)]
        #[schemars(range(min = 0, max = 3_600_000_000_u64))]
        compute_us: Micros,
        /// Whether messages between two hosts share a connection.
        #[serde(default)]
        connections: Connections,
        /// When the first layer begins.
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
    /// The kind, as scenarios call it.
    fn kind(&self) -> String {
        let settings = serde_json::to_value(self).expect("settings always serialise");
        settings["kind"].as_str().expect("the kind is a word").into()
    }
}

fn one_round() -> u32 {
    1
}

/// Whether messages between two hosts share a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Connections {
    /// They do, and what a balancer has learned stays.
    #[default]
    Persistent,
    /// Each message has a new one.
    New,
}

/// What all collectives have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectiveSettings {
    /// In which steps.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// What each host has; with `all-gather` what each host gets.
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    pub bytes: ByteSize,
    /// Groups of hosts that do it apart from each other: host i is in group i modulo this.
    #[serde(default = "one_group")]
    #[schemars(range(min = 1, max = 32_768))]
    pub groups: usize,
    /// How often: a host begins the next round when it has all of the one before.
    #[serde(default = "one_round")]
    #[schemars(range(min = 1, max = 100_000))]
    pub rounds: u32,
    /// How long each host computes between two rounds.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub compute_us: Micros,
    /// Whether messages between two hosts share a connection.
    #[serde(default)]
    pub connections: Connections,
    /// When the first round begins.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub start_us: Micros,
}

fn one_group() -> usize {
    1
}

/// From what the sizes of messages are drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizesSettings {
    /// A published distribution; this or `sizes_file`.
    #[serde(default)]
    pub sizes: Option<Sizes>,
    /// A CSV file with a line BYTES,SHARE for each point of the distribution, the share being that of the messages of at most so many
    /// bytes, from 0 to 1. A relative path starts at the scenario's folder.
    #[serde(default)]
    #[schemars(extend("x-file" = true))]
    pub sizes_file: Option<String>,
    /// The largest message: larger ones are cut to this. By default none is cut; required for `uniform`.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    pub max_bytes: Option<ByteSize>,
}

/// What arrives at random times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoissonSettings {
    /// Payload that arrives at each host, as a share of the rate of its link.
    #[schemars(range(min = 0.001, max = 1))]
    pub load: f64,
    /// The sizes of messages.
    #[serde(flatten)]
    pub sizes: SizesSettings,
    /// Whether partners are under another leaf, so that all messages cross switches above the leaves.
    #[serde(default)]
    pub cross_leaf: bool,
    /// When messages begin to arrive.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub start_us: Micros,
    /// No message arrives at this time or later.
    #[schemars(range(min = 0.000_001, max = 3_600_000_000_u64))]
    pub until_us: Micros,
}

/// Size and start of all flows of a pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EachSettings {
    /// Payload of each flow. By default the size of the `payload` file; required without such a file.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    pub bytes: Option<ByteSize>,
    /// When all flows start.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub start_us: Micros,
}

/// What hosts send one message after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartnersSettings {
    /// The sizes of messages.
    #[serde(flatten)]
    pub sizes: SizesSettings,
    /// Messages of each host; with `until_us` at most so many.
    #[schemars(range(min = 1, max = 100_000))]
    pub messages: u32,
    /// Whether partners are under another leaf, so that all messages cross switches above the leaves.
    #[serde(default)]
    pub cross_leaf: bool,
    /// When the first messages start.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub start_us: Micros,
    /// No message starts at this time or later. By default all are sent.
    #[serde(default)]
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
    /// Payload of the flow. By default the size of the workload's `payload` file; required without such a file.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    pub bytes: Option<ByteSize>,
    /// When the message is handed to the sender.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub start_us: Micros,
}
