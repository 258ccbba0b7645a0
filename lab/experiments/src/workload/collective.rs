//! Collective operations, specified in `docs/specs/collectives.md` (`COL-n`).

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_fabric::{Trigger, TriggerKind};

use super::{Flow, FlowTriggers, Triggers};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// All get the sum of all data: a reduce-scatter, then an all-gather.
    AllReduce,
    /// A layer of FSDP: the messages of [`AllReduce`](Self::AllReduce), but as two collectives.
    Layer,
    /// All get all data.
    AllGather,
    /// Each gets its share of the sum.
    ReduceScatter,
    /// Each sends different data to every other.
    AllToAll,
}

/// The algorithm of a collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Algorithm {
    /// In every step each host sends what it received in the previous one to its neighbour.
    #[default]
    Ring,
    /// Pairs exchange halves at half the distance, then in reverse. Needs a power of two of hosts.
    HalvingDoubling,
    /// Up and down a binary tree, in pieces of 512 KiB. For `all-reduce` only.
    Tree,
}

/// A model trained with fully sharded data parallelism (OFAN §8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Model {
    /// Llama 7B, 32 layers: 104 packets of 4 KiB a message in a ring of 128.
    #[serde(rename = "llama-7b")]
    Llama7B,
    /// Llama 70B, 80 layers: 418 packets.
    #[serde(rename = "llama-70b")]
    Llama70B,
    /// Llama 405B, 126 layers: 1570 packets.
    #[serde(rename = "llama-405b")]
    Llama405B,
}

impl Model {
    /// Returns the bytes of a layer in one of the eight rings.
    //= docs/specs/collectives.md#COL-8 a layer of a ring
    pub const fn bytes(self) -> u64 {
        let packets = match self {
            Self::Llama7B => 104,
            Self::Llama70B => 418,
            Self::Llama405B => 1_570,
        };
        packets * 4_096 * 128
    }

    /// Number of parallel rings.
    pub const RINGS: u32 = 8;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    pub operation: Operation,
    /// The algorithm; not used by `AllToAll`.
    pub algorithm: Algorithm,
    /// Bytes of each host's data; of the result with `AllGather`; of a message with `AllToAll`.
    pub bytes: u64,
    /// Number of independent groups: host `i` is in group `i % groups`.
    pub groups: usize,
    pub rounds: u32,
    /// Computation time of each host between rounds, in ps.
    pub compute_ps: u64,
    /// Start of the first round, in ps.
    pub start_ps: u64,
    /// Whether messages between two hosts share a connection.
    pub persistent: bool,
}

/// A message of a round, by indices within the group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Move {
    from: usize,
    to: usize,
    bytes: u64,
    /// Whether it is part of the all-gather after a reduce-scatter.
    gathers: bool,
    /// Indices of the moves to `from` that it waits for; if empty it waits for the round.
    needs: Vec<usize>,
}

struct Round {
    moves: Vec<Move>,
    /// Whether each host starts its moves in order.
    in_order: bool,
}

impl Collective {
    pub(super) fn flows(&self, members: &[usize]) -> (Vec<Flow>, Option<Triggers>) {
        let mut flows = Vec::new();
        let mut triggers = Triggers::default();
        for group in 0..self.groups {
            let hosts: Vec<usize> = members.iter().copied().skip(group).step_by(self.groups).collect();
            let round = self.round(hosts.len());
            Group { collective: self, hosts: &hosts, round: &round }.add(&mut flows, &mut triggers);
        }
        (flows, Some(triggers).filter(|triggers| !triggers.list.is_empty()))
    }

    /// Returns the number of messages among `hosts` hosts.
    pub fn messages(&self, hosts: usize) -> u64 {
        let n = (hosts / self.groups.max(1)) as u64;
        let steps = u64::from(n.max(2).ilog2());
        let of_group = match (self.operation, self.algorithm) {
            (Operation::AllToAll, _) => n * n.saturating_sub(1),
            (Operation::AllReduce | Operation::Layer, Algorithm::Ring) => 2 * n * n.saturating_sub(1),
            (_, Algorithm::Ring) => n * n.saturating_sub(1),
            (Operation::AllReduce | Operation::Layer, Algorithm::HalvingDoubling) => 2 * n * steps,
            (_, Algorithm::HalvingDoubling) => n * steps,
            (_, Algorithm::Tree) => 2 * n.saturating_sub(1) * self.bytes.div_ceil(PIECE_BYTES),
        };
        of_group.saturating_mul(self.groups as u64).saturating_mul(u64::from(self.rounds))
    }

    /// Returns the number within the workload of the collective of a move.
    //= docs/specs/collectives.md#COL-7 completion time of a collective
    //= docs/specs/collectives.md#COL-8 two collectives
    fn number(&self, round: u32, own: &Move) -> u32 {
        if self.operation == Operation::Layer { 2 * round + u32::from(own.gathers) } else { round }
    }

    fn round(&self, hosts: usize) -> Round {
        let mut moves = Vec::new();
        match (self.operation, self.algorithm) {
            (Operation::AllToAll, _) => {
                //= docs/specs/collectives.md#COL-6 from the one after it on
                let bytes = self.bytes;
                moves.extend(all_pairs(hosts).map(|(from, to)| Move {
                    from,
                    to,
                    bytes,
                    gathers: false,
                    needs: Vec::new(),
                }));
            }
            (operation, Algorithm::Ring) => {
                let parts = if operation.has_both_parts() { 2 } else { 1 };
                for step in 0..parts * (hosts - 1) {
                    moves.extend((0..hosts).map(|host| ring_move(self.bytes, hosts, step, host)));
                }
            }
            (operation, Algorithm::HalvingDoubling) => {
                let steps = hosts.ilog2();
                if operation != Operation::AllGather {
                    (0..steps).for_each(|step| exchange(&mut moves, self.bytes, hosts, hosts >> (step + 1), false));
                }
                if operation != Operation::ReduceScatter {
                    (0..steps).for_each(|step| exchange(&mut moves, self.bytes, hosts, 1 << step, true));
                }
            }
            (_, Algorithm::Tree) => tree(&mut moves, self.bytes, hosts),
        }
        Round { moves, in_order: self.algorithm != Algorithm::Tree }
    }
}

impl Operation {
    fn has_both_parts(self) -> bool {
        matches!(self, Self::AllReduce | Self::Layer)
    }
}

/// Returns the bytes of `count` chunks from chunk `first` on, of `bytes` divided among `hosts`.
//= docs/specs/collectives.md#COL-3 rounded down
fn chunks(bytes: u64, hosts: usize, first: usize, count: usize) -> u64 {
    let edge = |chunk: usize| (u128::from(bytes) * chunk as u128 / hosts as u128) as u64;
    edge(first + count) - edge(first)
}

/// Returns the move of `host` in `step` of a ring: what it received in the step before.
//= docs/specs/collectives.md#COL-3 in step s host i sends
fn ring_move(bytes: u64, hosts: usize, step: usize, host: usize) -> Move {
    let chunk = (host + 2 * hosts - step % hosts) % hosts;
    let before = (host + hosts - 1) % hosts;
    Move {
        from: host,
        to: (host + 1) % hosts,
        bytes: chunks(bytes, hosts, chunk, 1),
        gathers: step >= hosts - 1,
        needs: if step == 0 { Vec::new() } else { vec![(step - 1) * hosts + before] },
    }
}

/// Adds a step in which hosts at `distance` exchange `distance` chunks: those the receiver keeps,
/// or those the sender has when it `gathers`.
//= docs/specs/collectives.md#COL-4 at half the distance
fn exchange(moves: &mut Vec<Move>, bytes: u64, hosts: usize, distance: usize, gathers: bool) {
    let step = moves.len() / hosts;
    let before = |host: usize| {
        let to = |at: &usize| moves[*at].to == host;
        (step > 0).then(|| ((step - 1) * hosts..step * hosts).find(to)).flatten()
    };
    let own = |host: usize| {
        let keeper = if gathers { host } else { host ^ distance };
        let bytes = chunks(bytes, hosts, keeper / distance * distance, distance);
        Move { from: host, to: host ^ distance, bytes, gathers, needs: before(host).into_iter().collect() }
    };
    moves.extend((0..hosts).map(own).collect::<Vec<Move>>());
}

/// Pieces of a tree, in bytes.
const PIECE_BYTES: u64 = 512 << 10;

/// Moves every piece up and down a binary tree: `2 i + 1` and `2 i + 2` are below host `i`.
//= docs/specs/collectives.md#COL-5 up the tree
fn tree(moves: &mut Vec<Move>, bytes: u64, hosts: usize) {
    for piece in 0..bytes.div_ceil(PIECE_BYTES) {
        let bytes = (bytes - piece * PIECE_BYTES).min(PIECE_BYTES);
        let first = moves.len();
        // The move up of host `i` is number `i - 1` from the last host.
        let up = |host: usize| first + hosts - 1 - host;
        let below = |host: usize| [2 * host + 1, 2 * host + 2].into_iter().filter(|child| *child < hosts);
        for host in (1..hosts).rev() {
            let needs = below(host).map(up).collect();
            moves.push(Move { from: host, to: (host - 1) / 2, bytes, gathers: false, needs });
        }
        for host in 1..hosts {
            let parent = (host - 1) / 2;
            let needs = if parent == 0 { below(0).map(up).collect() } else { vec![first + hosts - 2 + parent] };
            moves.push(Move { from: parent, to: host, bytes, gathers: false, needs });
        }
    }
}

/// A group's hosts and the moves of its rounds.
struct Group<'a> {
    collective: &'a Collective,
    hosts: &'a [usize],
    round: &'a Round,
}

/// Indices of a round's triggers: of shared needs, then of hosts, except in the last round.
struct Places {
    first: usize,
    needs: usize,
    is_last: bool,
}

impl Places {
    fn end(&self, host: usize) -> Option<usize> {
        (!self.is_last).then_some(self.first + self.needs + host)
    }
}

impl Group<'_> {
    /// A need's trigger waits for the inputs of some messages of a host, and starts them. A host's
    /// last trigger of a round waits for everything it receives, and starts its next round after
    /// the computation.
    //= docs/specs/collectives.md#COL-1 waits for its inputs
    fn add(&self, flows: &mut Vec<Flow>, triggers: &mut Triggers) {
        let Self { collective, hosts, round } = *self;
        let shared = Shared::new(&round.moves);
        let mut connections: HashMap<(usize, usize), u32> = HashMap::new();
        // By host, the trigger that starts the round.
        let mut begin: Vec<Option<usize>> = vec![None; hosts.len()];
        for number in 0..collective.rounds {
            let is_last = number + 1 == collective.rounds;
            let places = Places { first: triggers.list.len(), needs: shared.needs.len(), is_last };
            for (place, own) in round.moves.iter().enumerate() {
                let need = |need: usize| Some(places.first + need);
                let start = shared.of_move[place].map_or(begin[own.from], need);
                let on_received = shared.for_move[place].map_or_else(|| places.end(own.to), need);
                triggers.of_flow.push(FlowTriggers { start, on_sent: None, on_received });
                let flow = flows.len() as u32;
                //= docs/specs/collectives.md#COL-9 connections
                let connection = *connections.entry((own.from, own.to)).or_insert(flow);
                flows.push(self.flow(number, own, flow, connection));
            }
            let [needs, ends] = self.triggers(&shared, &places, &begin, &mut triggers.list);
            triggers.list.extend(needs);
            if !is_last {
                triggers.list.extend(ends);
                begin = (0..hosts.len()).map(|host| places.end(host)).collect();
            }
        }
    }

    /// Returns the flow of a move, on the connection that flow number `connection` opened.
    fn flow(&self, number: u32, own: &Move, flow: u32, connection: u32) -> Flow {
        Flow {
            flow,
            src: self.hosts[own.from],
            dst: self.hosts[own.to],
            bytes: own.bytes,
            start_ps: self.collective.start_ps,
            connection: Some(connection).filter(|earlier| self.collective.persistent && *earlier != flow),
            step: Some(self.collective.number(number, own)),
            ..Flow::default()
        }
    }

    /// Returns a round's triggers: of needs and of hosts. If hosts start their moves in order, the
    /// trigger in `list` that starts a host's round signals its first need, each need the next.
    fn triggers(
        &self,
        shared: &Shared,
        places: &Places,
        begin: &[Option<usize>],
        list: &mut [Trigger],
    ) -> [Vec<Trigger>; 2] {
        let hosts = self.hosts.len();
        let mut signals: Vec<u32> = shared.needs.iter().map(|need| need.len() as u32).collect();
        let mut then: Vec<Option<usize>> = vec![None; signals.len()];
        let mut last: Vec<Option<usize>> = vec![None; hosts];
        for (need, host) in shared.host.iter().copied().enumerate().filter(|_| self.round.in_order) {
            match (last[host].replace(need), begin[host]) {
                (Some(before), _) => then[before] = Some(places.first + need),
                (None, Some(begin)) => list[begin].then = Some(places.first + need),
                (None, None) => continue,
            }
            signals[need] += 1;
        }
        // Signals that a host has received everything: messages and needs without a successor.
        let mut ends: Vec<u32> = vec![0; hosts];
        let lone = self.round.moves.iter().zip(&shared.for_move).filter(|(_, need)| need.is_none());
        lone.for_each(|(own, _)| ends[own.to] += 1);
        for (then, host) in then.iter_mut().zip(&shared.host).filter(|(then, _)| then.is_none()) {
            *then = places.end(*host);
            ends[*host] += 1;
        }
        let barrier = |count: &u32| Trigger::new(TriggerKind::Barrier(*count));
        let needs = signals.iter().zip(then).map(|(count, then)| Trigger { then, ..barrier(count) });
        //= docs/specs/collectives.md#COL-2 computes between rounds
        let delay_ps = self.collective.compute_ps;
        let ends = ends.iter().map(|count| Trigger { delay_ps, ..barrier(count) });
        [needs.collect(), ends.collect()]
    }
}

/// The needs of a round: sets of moves that other moves wait for. Equal needs are shared.
struct Shared {
    /// Indices of the needed moves, in the order of the first move with the need.
    needs: Vec<Vec<usize>>,
    /// By need, its host.
    host: Vec<usize>,
    /// By move, its need, if it waits for moves.
    of_move: Vec<Option<usize>>,
    /// By move, the need it is part of.
    for_move: Vec<Option<usize>>,
}

impl Shared {
    fn new(moves: &[Move]) -> Self {
        let mut known: HashMap<&[usize], usize> = HashMap::new();
        let (mut needs, mut host, mut of_move) = (Vec::new(), Vec::new(), Vec::new());
        let mut for_move = vec![None; moves.len()];
        for step in moves {
            if step.needs.is_empty() {
                of_move.push(None);
                continue;
            }
            let need = *known.entry(&step.needs).or_insert_with(|| {
                needs.push(step.needs.clone());
                host.push(step.from);
                needs.len() - 1
            });
            of_move.push(Some(need));
            step.needs.iter().for_each(|needed| for_move[*needed] = Some(need));
        }
        Self { needs, host, of_move, for_move }
    }
}

/// Returns all (source, destination), by distance from the source.
pub(super) fn all_pairs(hosts: usize) -> impl Iterator<Item = (usize, usize)> {
    (1..hosts).flat_map(move |step| (0..hosts).map(move |host| (host, (host + step) % hosts)))
}

#[cfg(test)]
mod tests;
