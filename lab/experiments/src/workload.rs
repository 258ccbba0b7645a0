//! Workloads: sources, destinations, sizes, times and payload of flows.

mod collective;
mod flow;
mod groups;
mod matrix;
mod members;
mod partners;
mod plan;
mod poisson;
mod sizes;
mod streams;
mod triggers;

use std::collections::HashSet;
use std::path::PathBuf;

use bytes::Bytes;
use rand_core::RngCore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::cc::CcKind;
use spray_core::path::BalancerKind;
use spray_core::rng::{below, stream};

use crate::memory::read_payload;
use spray_fabric::{Network, ShortestPaths, hops};

use streams::{PATTERN_STREAM, PAYLOAD_STREAM};
use triggers::ClosedLoop;

pub use collective::{Algorithm, Model};
pub(crate) use collective::{Collective, Operation};
pub use flow::Flow;
pub(crate) use groups::{leaves, pods};
pub use matrix::{Matrix, parse_matrix};
pub(crate) use members::members;
pub(crate) use partners::Partners;
pub use plan::Plan;
pub(crate) use poisson::Poisson;
pub use sizes::{Distribution, Sizes};
pub(crate) use triggers::{FlowTriggers, Triggers};

/// A workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Name in the results.
    pub name: String,
    /// The traffic pattern.
    pub pattern: Pattern,
    /// Participating hosts in this order; `None` is all.
    pub hosts: Option<Vec<usize>>,
    /// Number of these hosts to draw from the seed, without those drawn by other workloads.
    pub drawn: Option<usize>,
    /// Payload of the flows.
    pub payload: Payload,
    /// Its balancer, congestion control and DSCP.
    pub own: Overrides,
    /// Shares of the sending hosts with separate names and transports.
    pub parts: Vec<WorkloadPart>,
}

/// Settings of flows that override `[transport]`, or those of the whole workload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Overrides {
    /// Balancer, in place of that of the scenario or of the whole workload.
    pub balancer: Option<BalancerKind>,
    /// Congestion control, in place of that of the scenario or of the whole workload.
    pub cc: Option<CcKind>,
    /// DSCP of data packets, in place of that of the scenario or of the whole workload.
    #[schemars(range(min = 0, max = 43))]
    pub dscp: Option<u8>,
}

impl Overrides {
    /// Fills unset settings from `others`.
    fn or(self, others: Self) -> Self {
        let Self { balancer, cc, dscp } = self;
        Self { balancer: balancer.or(others.balancer), cc: cc.or(others.cc), dscp: dscp.or(others.dscp) }
    }
}

/// A share of a workload's sending hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadPart {
    /// Name in the results.
    pub name: String,
    /// The share in ppm.
    pub ppm: u32,
    /// Settings of their flows.
    pub own: Overrides,
}

/// A class of flows with one name and transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowClass {
    /// Name of the workload, or of a part.
    pub name: String,
    /// Index of the workload in the scenario.
    pub workload: usize,
    /// Settings of its flows.
    pub own: Overrides,
}

/// Returns the classes of flows: each workload, followed by its parts.
pub fn classes(workloads: &[Workload]) -> Vec<FlowClass> {
    let of = |(workload, given): (usize, &Workload)| {
        let rest = FlowClass { name: given.name.clone(), workload, own: given.own };
        let part = |part: &WorkloadPart| FlowClass { name: part.name.clone(), workload, own: part.own.or(given.own) };
        std::iter::once(rest).chain(given.parts.iter().map(part)).collect::<Vec<_>>()
    };
    workloads.iter().enumerate().flat_map(of).collect()
}

/// The traffic pattern.
#[derive(Debug, Clone, PartialEq)]
pub enum Pattern {
    /// Every host sends to a random one under another leaf and receives from one.
    CrossLeafPermutation(FlowTemplate),
    /// Every host sends to a random one in another pod and receives from one.
    CrossPodPermutation(FlowTemplate),
    /// Every host sends to a random other one and receives from one.
    Permutation(FlowTemplate),
    /// Every host sends to every other, starting with the next one.
    AllToAll {
        /// Bytes and start.
        each: FlowTemplate,
        /// Maximum number of concurrent messages of a host; `None` is all.
        open: Option<u32>,
    },
    /// Host `i` of `n` sends to host `i + n / 2`.
    Tornado(FlowTemplate),
    /// Several hosts send to one.
    Incast {
        /// Number of senders, those on the longest paths first.
        senders: usize,
        /// Receiving host; `None` is the first participant.
        receiver: Option<usize>,
        /// Bytes and start.
        each: FlowTemplate,
    },
    /// Every host sends one message after the other, each to a random host.
    ClosedLoop(Partners),
    /// Every host sends messages to random hosts at random times.
    Poisson(Poisson),
    /// Hosts repeat a collective operation.
    Collective(Collective),
    /// The listed flows.
    Flows(Vec<Flow>),
    /// Flows and triggers of a `.cm` file.
    Matrix(Matrix),
}

/// Size and start of all flows of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowTemplate {
    /// Payload bytes.
    pub bytes: u64,
    /// Start time in ps.
    pub start_ps: u64,
}

/// Returns the bytes of the largest flow; 0 without flows.
pub fn largest_bytes(flows: &[Flow]) -> u64 {
    flows.iter().map(|flow| flow.bytes).max().unwrap_or(0)
}

/// Payload of flows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Random bytes from the seed, different for each flow.
    Generated,
    /// The bytes of a file, repeated.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Contents; not empty.
        bytes: Bytes,
    },
}

impl Workload {
    /// Creates a workload of `pattern` among all hosts, with generated payload.
    pub fn new(pattern: Pattern) -> Self {
        let (hosts, drawn, payload, own, parts) = (None, None, Payload::Generated, Overrides::default(), Vec::new());
        Self { name: "flows".into(), pattern, hosts, drawn, payload, own, parts }
    }

    /// Returns the flows among `members`, numbered from 0, and their triggers.
    fn flows(&self, network: &Network, members: &[usize], seed: u64) -> (Vec<Flow>, Option<Triggers>) {
        let hosts = members.len();
        let pairs =
            |to: Vec<usize>, of: FlowTemplate| number((0..hosts).zip(to).map(|(a, b)| (members[a], members[b])), of);
        let group = |of: Vec<usize>| members.iter().map(|host| of[*host]).collect::<Vec<_>>();
        let flows = match &self.pattern {
            Pattern::CrossLeafPermutation(each) => pairs(permutation(&group(leaves(network)), seed), *each),
            Pattern::CrossPodPermutation(each) => pairs(permutation(&group(pods(network)), seed), *each),
            Pattern::AllToAll { each, .. } => {
                number(collective::all_pairs(hosts).map(|(a, b)| (members[a], members[b])), *each)
            }
            Pattern::Permutation(each) => pairs(permutation(&(0..hosts).collect::<Vec<_>>(), seed), *each),
            Pattern::Tornado(each) => pairs((0..hosts).map(|host| (host + hosts / 2) % hosts).collect(), *each),
            Pattern::Incast { senders, receiver, each } => {
                let receiver = receiver.unwrap_or(members[0]);
                let own: HashSet<usize> = members.iter().copied().collect();
                let far = farthest(network, receiver).into_iter().filter(|host| own.contains(host));
                number(far.take(*senders).map(|sender| (sender, receiver)), *each)
            }
            Pattern::ClosedLoop(partners) => partners.flows(network, members, seed),
            Pattern::Poisson(poisson) => poisson.flows(network, members, seed),
            Pattern::Collective(collective) => return collective.flows(members),
            Pattern::Flows(flows) => flows.clone(),
            Pattern::Matrix(matrix) => return (matrix.flows.clone(), matrix.triggers.clone()),
        };
        let triggers = self.closed_loop().map(|closed| closed.triggers(flows.len(), hosts));
        (flows, triggers)
    }

    fn closed_loop(&self) -> Option<ClosedLoop> {
        match &self.pattern {
            Pattern::AllToAll { open: Some(open), .. } => Some(ClosedLoop { open: *open, until_ps: None }),
            Pattern::ClosedLoop(partners) => Some(ClosedLoop { open: 1, until_ps: partners.until_ps }),
            _ => None,
        }
    }

    /// Returns the total computation time of each host in ps.
    fn compute_ps(&self) -> u64 {
        match &self.pattern {
            Pattern::Collective(collective) => collective.compute_ps.saturating_mul(collective.rounds.into()),
            _ => 0,
        }
    }

    /// Returns warnings about ignored parts of the file.
    pub fn warnings(&self) -> &[String] {
        match &self.pattern {
            Pattern::Matrix(matrix) => &matrix.warnings,
            _ => &[],
        }
    }

    /// Returns the payload of `flow` in a run with root `seed`.
    pub fn payload(&self, flow: &Flow, seed: u64) -> Bytes {
        let length = flow.bytes as usize;
        match &self.payload {
            Payload::Generated => {
                let mut bytes = vec![0; length];
                stream(seed, PAYLOAD_STREAM + u64::from(flow.flow)).fill_bytes(&mut bytes);
                bytes.into()
            }
            Payload::File { bytes, .. } if length <= bytes.len() => bytes.slice(..length),
            Payload::File { bytes, .. } => bytes.iter().copied().cycle().take(length).collect::<Vec<_>>().into(),
        }
    }

    /// Sets the contents of `path` as payload of every flow.
    ///
    /// # Errors
    /// When the file cannot be read or is empty.
    pub fn set_payload_file(&mut self, path: PathBuf) -> std::io::Result<()> {
        let bytes = Bytes::from(read_payload(&path)?);
        if bytes.is_empty() {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "the payload file is empty"));
        }
        self.payload = Payload::File { path, bytes };
        Ok(())
    }
}

fn number(pairs: impl Iterator<Item = (usize, usize)>, each: FlowTemplate) -> Vec<Flow> {
    let FlowTemplate { bytes, start_ps } = each;
    (0..).zip(pairs).map(|(flow, (src, dst))| Flow { flow, src, dst, bytes, start_ps, ..Flow::default() }).collect()
}

/// Returns a random permutation across groups, of at most half of the hosts each.
///
/// It starts with a rotation in group order, and makes random swaps that keep the property.
fn permutation(group: &[usize], seed: u64) -> Vec<usize> {
    let hosts = group.len();
    let mut rng = stream(seed, PATTERN_STREAM);
    let mut below = |bound: usize| below(bound, &mut rng);
    let mut order: Vec<_> = (0..hosts).collect();
    order.sort_by_key(|host| group[*host]);
    let largest = order.chunk_by(|a, b| group[*a] == group[*b]).map(<[usize]>::len).max().unwrap_or(0);
    let mut to = vec![0; hosts];
    (0..hosts).for_each(|index| to[order[index]] = order[(index + largest) % hosts]);
    for _ in 0..hosts * SWAPS {
        let (a, b) = (below(hosts), below(hosts));
        if group[a] != group[to[b]] && group[b] != group[to[a]] {
            to.swap(a, b);
        }
    }
    to
}

/// Swaps per host, enough to hide the rotation.
const SWAPS: usize = 32;

/// Returns the other hosts, most distant first, then cyclically from `receiver + n / 2` on.
fn farthest(network: &Network, receiver: usize) -> Vec<usize> {
    let routes = ShortestPaths::new(network, |_| true);
    let hosts = network.hosts.len();
    let turned = |host: usize| (2 * hosts + host - receiver - hosts / 2) % hosts;
    let mut others: Vec<_> = (0..hosts).filter(|host| *host != receiver).collect();
    let length = |host: usize| hops(network, &routes, host, receiver).count();
    others.sort_by_cached_key(|host| (std::cmp::Reverse(length(*host)), turned(*host)));
    others
}

#[cfg(test)]
mod tests;
