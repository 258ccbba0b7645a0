//! Workloads: who sends how much to whom, when, and which bytes.

mod matrix;
mod partners;
mod sizes;
mod triggers;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::PathBuf;

use bytes::Bytes;
use rand_core::RngCore;
use spray_core::rng::stream;

use crate::scenario::limits::read_payload;
use spray_fabric::Network;

pub use matrix::{Matrix, parse_matrix};
pub use partners::Partners;
pub use sizes::Sizes;
pub use triggers::{ClosedLoop, FlowTriggers, Triggers, flow_specs};

/// One flow: a message from one host to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Number within the workload, from 0.
    pub flow: u32,
    /// Sending host.
    pub src: usize,
    /// Receiving host, another one.
    pub dst: usize,
    /// Payload bytes.
    pub bytes: u64,
    /// When the sender gets the message, in ps of scenario time.
    pub start_ps: u64,
}

impl Flow {
    /// The seed of the flow's lasting choice of a path ([`PathConfig::seed`]): the same on every engine in a run of this seed.
    ///
    /// [`PathConfig::seed`]: spray_core::path::PathConfig::seed
    pub fn path_seed(&self, seed: u64) -> u64 {
        stream(seed, PATH_STREAM + u64::from(self.flow)).next_u64()
    }
}

/// Who sends what to whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Who sends to whom.
    pub pattern: Pattern,
    /// What the flows carry.
    pub payload: Payload,
}

/// Who sends to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// Every host sends to one host under another leaf and receives from one. The pairs are drawn from the seed.
    CrossLeafPermutation(Each),
    /// Every host sends to one host of another pod and receives from one. The pairs are drawn from the seed.
    CrossPodPermutation(Each),
    /// Every host sends to another host and receives from one. The pairs are drawn from the seed.
    Permutation(Each),
    /// Every host sends to every other, from the one after it on.
    AllToAll {
        /// Bytes and start.
        each: Each,
        /// Most messages of a host that are open at once; `None` is all.
        open: Option<u32>,
    },
    /// Host `i` of `n` sends to host `i + n / 2`.
    Tornado(Each),
    /// Several hosts send to one.
    Incast {
        /// How many send. Those on the longest paths are taken first.
        senders: usize,
        /// The receiving host.
        receiver: usize,
        /// Bytes and start.
        each: Each,
    },
    /// Every host sends one message after the other, each to another random host.
    PartnerAfterPartner(Partners),
    /// The listed flows.
    Flows(Vec<Flow>),
    /// Flows and triggers of a `.cm` file.
    Matrix(Matrix),
}

/// Size and start of all flows of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Each {
    /// Payload bytes.
    pub bytes: u64,
    /// When they start.
    pub start_ps: u64,
}

/// The bytes of the largest flow; 0 without flows.
pub fn largest_bytes(flows: &[Flow]) -> u64 {
    flows.iter().map(|flow| flow.bytes).max().unwrap_or(0)
}

/// What flows carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Random bytes drawn from the seed, different for each flow.
    Generated,
    /// The bytes of a file, repeated.
    File {
        /// The file.
        path: PathBuf,
        /// Its bytes, at least one.
        bytes: Bytes,
    },
}

impl Workload {
    /// The flows of a run with root `seed`, numbered from 0.
    pub fn flows(&self, network: &Network, seed: u64) -> Vec<Flow> {
        let hosts = network.hosts.len();
        let pairs = |to: Vec<usize>, each: Each| number((0..hosts).zip(to), each);
        match &self.pattern {
            Pattern::CrossLeafPermutation(each) => pairs(permutation(&leaves(network), seed), *each),
            Pattern::CrossPodPermutation(each) => pairs(permutation(&pods(network), seed), *each),
            Pattern::AllToAll { each, .. } => {
                let all = (1..hosts).flat_map(|step| (0..hosts).map(move |host| (host, (host + step) % hosts)));
                number(all, *each)
            }
            Pattern::Permutation(each) => pairs(permutation(&(0..hosts).collect::<Vec<_>>(), seed), *each),
            Pattern::Tornado(each) => pairs((0..hosts).map(|host| (host + hosts / 2) % hosts).collect(), *each),
            Pattern::Incast { senders, receiver, each } => {
                let far = farthest(network, *receiver);
                number(far.into_iter().take(*senders).map(|sender| (sender, *receiver)), *each)
            }
            Pattern::PartnerAfterPartner(partners) => partners.flows(network, seed),
            Pattern::Flows(flows) | Pattern::Matrix(Matrix { flows, .. }) => flows.clone(),
        }
    }

    /// What starts flows at the end of others, of `flows` between `hosts` hosts; `None` if no flow waits for another.
    pub fn triggers(&self, flows: usize, hosts: usize) -> Option<Cow<'_, Triggers>> {
        match &self.pattern {
            Pattern::Matrix(matrix) => matrix.triggers.as_ref().map(Cow::Borrowed),
            _ => self.closed_loop().map(|closed| Cow::Owned(closed.triggers(flows, hosts))),
        }
    }

    /// Whether flows wait for others.
    pub fn is_chained(&self) -> bool {
        matches!(&self.pattern, Pattern::Matrix(Matrix { triggers: Some(_), .. })) || self.closed_loop().is_some()
    }

    /// How hosts send message after message, where they do.
    pub fn closed_loop(&self) -> Option<ClosedLoop> {
        match &self.pattern {
            Pattern::AllToAll { open: Some(open), .. } => Some(ClosedLoop { open: *open, until_ps: None }),
            Pattern::PartnerAfterPartner(partners) => Some(ClosedLoop { open: 1, until_ps: partners.until_ps }),
            _ => None,
        }
    }

    /// Sentences about parts of the file that are ignored.
    pub fn warnings(&self) -> &[String] {
        match &self.pattern {
            Pattern::Matrix(matrix) => &matrix.warnings,
            _ => &[],
        }
    }

    /// The bytes that `flow` carries in a run with root `seed`.
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

    /// Gives every flow the bytes of `path` as payload.
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

/// The random stream of the first flow's payload. Hosts and switches use other streams.
const PAYLOAD_STREAM: u64 = 1 << 32;
/// Stream that permutations are drawn from. Those after it, by host, draw partners and sizes.
const PATTERN_STREAM: u64 = 1 << 33;
/// Paths of flows.
const PATH_STREAM: u64 = 1 << 34;

fn number(pairs: impl Iterator<Item = (usize, usize)>, each: Each) -> Vec<Flow> {
    let flow = |(flow, (src, dst)): (usize, _)| Flow {
        flow: flow as u32,
        src,
        dst,
        bytes: each.bytes,
        start_ps: each.start_ps,
    };
    pairs.enumerate().map(flow).collect()
}

/// A random permutation in which every host sends into another group. No group may hold more than half of the hosts.
///
/// It begins with a rotation of the hosts in group order, and makes random swaps that leave every host sending into another
/// group.
fn permutation(group: &[usize], seed: u64) -> Vec<usize> {
    let hosts = group.len();
    let mut rng = stream(seed, PATTERN_STREAM);
    let mut below = |bound: usize| ((u64::from(rng.next_u32()) * bound as u64) >> 32) as usize;
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

/// Swaps tried for each host: enough to hide the rotation.
const SWAPS: usize = 32;

/// All hosts but `receiver`, those on the longest paths first. Hosts on equally long paths
/// follow in the order of their numbers, from `receiver + n / 2` on and around.
fn farthest(network: &Network, receiver: usize) -> Vec<usize> {
    let routes = spray_fabric::ShortestPaths::new(network, |_| true);
    let hosts = network.hosts.len();
    let turned = |host: usize| (2 * hosts + host - receiver - hosts / 2) % hosts;
    let mut others: Vec<_> = (0..hosts).filter(|host| *host != receiver).collect();
    let length = |host: usize| spray_fabric::hops(network, &routes, host, receiver).len();
    others.sort_by_cached_key(|host| (std::cmp::Reverse(length(*host)), turned(*host)));
    others
}

/// The leaf of every host.
pub(crate) fn leaves(network: &Network) -> Vec<usize> {
    (0..network.hosts.len()).map(|host| network.leaf_of(host)).collect()
}

/// The pod of every host.
pub(crate) fn pods(network: &Network) -> Vec<usize> {
    let tiers = network.tiers();
    leaves(network).into_iter().map(|leaf| tiers.pod[leaf]).collect()
}

/// Whether no group has more than half of the hosts, so that a permutation across groups exists.
pub(crate) fn can_cross(group: &[usize]) -> bool {
    let mut members: HashMap<usize, usize> = HashMap::new();
    group.iter().for_each(|own| *members.entry(*own).or_default() += 1);
    members.values().all(|count| 2 * count <= group.len())
}

#[cfg(test)]
mod tests;
