//! `[workload]`: who sends what to whom.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::units::{ByteSize, Micros};
use spray_settings::{Document, Mistake};

use super::{list, read_file};
use crate::workload::{
    Each, Flow, Matrix, Partners, Pattern, Payload, Sizes, Workload, can_cross, leaves, parse_matrix, pods,
};
use spray_fabric::limits::{MAX_FLOWS, MAX_MESSAGE_BYTES};
use spray_fabric::{Network, Node};

/// Who sends what to whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadSettings {
    /// Who sends to whom.
    #[serde(flatten)]
    pub pattern: PatternSettings,
    /// A file whose bytes every flow carries, repeated as often as needed. A relative path starts at the scenario's folder. By
    /// default flows carry random bytes.
    #[serde(default)]
    #[schemars(extend("x-file" = true))]
    pub payload: Option<String>,
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
    /// From what the sizes of messages are drawn.
    pub sizes: Sizes,
    /// Messages of each host; with `until_us` at most so many.
    #[schemars(range(min = 1, max = 100_000))]
    pub messages: u32,
    /// The largest message: larger ones are cut to this. By default none is cut; required for `uniform`.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    pub max_bytes: Option<ByteSize>,
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

impl WorkloadSettings {
    /// Builds the workload on `network`.
    ///
    /// # Errors
    /// A setting that does not fit the network, with its place in `document`.
    pub(super) fn workload(&self, document: &Document, network: &Network) -> Result<Workload, Mistake> {
        let mut workload = Workload { pattern: Pattern::Flows(Vec::new()), payload: Payload::Generated };
        if let Some(name) = &self.payload {
            let path = document.folder("workload.payload").join(name);
            workload.set_payload_file(path.clone()).map_err(|error| {
                let message = format!("`{}`: {error}; allowed: a file that is not empty", path.display());
                document.mistake("workload.payload", message)
            })?;
        }
        let reader = Reader { document, network, payload: &workload.payload };
        workload.pattern = reader.pattern(&self.pattern)?;
        Ok(workload)
    }
}

struct Reader<'a> {
    document: &'a Document,
    network: &'a Network,
    payload: &'a Payload,
}

impl Reader<'_> {
    fn pattern(&self, settings: &PatternSettings) -> Result<Pattern, Mistake> {
        Ok(match settings {
            PatternSettings::CrossLeafPermutation(each) => {
                self.check_halves("leaf", &leaves(self.network))?;
                Pattern::CrossLeafPermutation(self.each(each)?)
            }
            PatternSettings::CrossPodPermutation(each) => {
                self.check_halves("pod", &pods(self.network))?;
                Pattern::CrossPodPermutation(self.each(each)?)
            }
            PatternSettings::Permutation(each) => Pattern::Permutation(self.each(each)?),
            PatternSettings::AllToAll { open, each } => {
                let hosts = self.network.hosts.len();
                if hosts * (hosts - 1) > MAX_FLOWS {
                    let message = format!(
                        "all to all of {hosts} hosts; allowed: at most {MAX_FLOWS} flows, which 316 hosts have"
                    );
                    return Err(self.document.mistake("workload.kind", message));
                }
                Pattern::AllToAll { each: self.each(each)?, open: *open }
            }
            PatternSettings::Tornado(each) => Pattern::Tornado(self.each(each)?),
            PatternSettings::Incast { senders, receiver, each } => Pattern::Incast {
                senders: self.senders(*senders)?,
                receiver: receiver.as_ref().map_or(Ok(0), |name| self.host("workload.receiver", name))?,
                each: self.each(each)?,
            },
            PatternSettings::PartnerAfterPartner(partners) => Pattern::PartnerAfterPartner(self.partners(partners)?),
            PatternSettings::Flows { flow } => {
                if flow.len() > MAX_FLOWS {
                    let message = format!("{} flows; allowed: at most {MAX_FLOWS}", flow.len());
                    return Err(self.document.mistake("workload.flow", message));
                }
                let flows = flow.iter().enumerate().map(|(index, flow)| self.flow(index, flow));
                Pattern::Flows(flows.collect::<Result<_, _>>()?)
            }
            PatternSettings::Matrix { file } => Pattern::Matrix(self.matrix(file)?),
        })
    }

    fn partners(&self, settings: &PartnersSettings) -> Result<Partners, Mistake> {
        let PartnersSettings { sizes, messages, max_bytes, cross_leaf, start_us, until_us } = *settings;
        let mistake = |field: &str, message: String| Err(self.document.mistake(&format!("workload.{field}"), message));
        let hosts = self.network.hosts.len();
        if messages as usize * hosts > MAX_FLOWS {
            let most = MAX_FLOWS / hosts;
            return mistake(
                "messages",
                format!("`messages` is {messages} for each of {hosts} hosts; allowed: at most {most}"),
            );
        }
        if sizes == Sizes::Uniform && max_bytes.is_none() {
            return mistake("sizes", "`uniform` needs `max_bytes`; allowed: a size such as \"1 MiB\"".into());
        }
        if until_us.is_some_and(|until| until <= start_us) {
            return mistake("until_us", "`until_us` is not after `start_us`; allowed: later".into());
        }
        let leaf = leaves(self.network);
        if cross_leaf && leaf.iter().all(|other| *other == leaf[0]) {
            return mistake("cross_leaf", "all hosts are under one leaf; allowed: false, or another topology".into());
        }
        Ok(Partners {
            messages,
            sizes,
            max_bytes: max_bytes.map_or(MAX_MESSAGE_BYTES, ByteSize::bytes),
            cross_leaf,
            start_ps: start_us.ps(),
            until_ps: until_us.map(Micros::ps),
        })
    }

    /// A permutation across groups needs groups of at most half of the hosts.
    fn check_halves(&self, what: &str, group: &[usize]) -> Result<(), Mistake> {
        if can_cross(group) {
            return Ok(());
        }
        let message =
            format!("one {what} has more than half of the hosts; allowed: `permutation`, or another topology");
        Err(self.document.mistake("workload.kind", message))
    }

    fn each(&self, each: &EachSettings) -> Result<Each, Mistake> {
        let bytes = self.bytes(each.bytes, "workload", "[workload]")?;
        Ok(Each { bytes, start_ps: each.start_us.ps() })
    }

    fn bytes(&self, bytes: Option<ByteSize>, path: &str, table: &str) -> Result<u64, Mistake> {
        match (bytes, self.payload) {
            (Some(bytes), _) => Ok(bytes.bytes()),
            (None, Payload::File { bytes, .. }) => Ok(bytes.len() as u64),
            (None, Payload::Generated) => {
                let allowed = "a size such as \"4 MiB\", or a file as `payload`, which has one";
                Err(self.document.mistake(path, format!("{table} needs `bytes`; allowed: {allowed}")))
            }
        }
    }

    fn senders(&self, senders: Option<usize>) -> Result<usize, Mistake> {
        let others = self.network.hosts.len() - 1;
        match senders {
            Some(senders) if senders > others => {
                let message = format!("`senders` is {senders}; allowed: at most the {others} other hosts");
                Err(self.document.mistake("workload.senders", message))
            }
            senders => Ok(senders.unwrap_or(others)),
        }
    }

    fn host(&self, path: &str, name: &str) -> Result<usize, Mistake> {
        match self.network.node(name) {
            Some(Node::Host(host)) => Ok(host),
            _ => {
                let message = format!("there is no host `{name}`; allowed: {}", list(&self.network.hosts));
                Err(self.document.mistake(path, message))
            }
        }
    }

    fn flow(&self, index: usize, flow: &FlowSettings) -> Result<Flow, Mistake> {
        let path = format!("workload.flow.{index}");
        let (src, dst) = (self.host(&format!("{path}.src"), &flow.src)?, self.host(&format!("{path}.dst"), &flow.dst)?);
        if src == dst {
            let message = "a host sends to itself; allowed: another host";
            return Err(self.document.mistake(&format!("{path}.dst"), message));
        }
        let bytes = self.bytes(flow.bytes, &path, "[[workload.flow]]")?;
        Ok(Flow { flow: index as u32, src, dst, bytes, start_ps: flow.start_us.ps() })
    }

    fn matrix(&self, name: &str) -> Result<Matrix, Mistake> {
        let parse = |text: &str| parse_matrix(text, self.network.hosts.len());
        let (mut matrix, file) = read_file((self.document, "workload.file"), name, "a .cm file", parse)?;
        matrix.warnings.iter_mut().for_each(|warning| *warning = format!("{}: {warning}", file.display()));
        Ok(matrix)
    }
}

#[cfg(test)]
mod tests;
