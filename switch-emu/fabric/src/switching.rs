//! Schemes of switches, and their tables: groups of ports, weights, pointers.

mod locations;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use rand_core::RngCore;
use spray_pipeline::flow_hash::{FlowHash, HashSeed};
use spray_pipeline::routes::{Group, SwitchConfig};
use spray_pipeline::scheme::{FlowcutRule, Layout, MAX_GROUPS, Pointers, State};
pub use spray_pipeline::scheme::{Groups, Scheme, conweave, reunion};

use spray_core::rng::stream;

pub(crate) use self::locations::Locations;
use super::Tiers;
use crate::node::Node;
use crate::salt::{mix, salt};

/// The schemes of a network's switches, and their parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switching {
    /// By tier from the hosts up; the last one also applies to higher tiers. Empty = ECMP.
    pub schemes: Vec<Scheme>,
    /// Gap that ends a flowlet.
    pub flowlet_gap_ps: u64,
    /// Longest time of a frame in flight over a port that routing has removed, for schemes that
    /// [drain](Scheme::drains); otherwise 0, so that fabrics do not depend on failures.
    pub longest_ps: u64,
    /// A draining flow resumes when at most this number of its packets are in flight.
    pub resume_packets: u32,
    /// When a flow drains.
    pub flowcut: FlowcutRule,
    /// Hash function and fields of switches.
    pub hash: FlowHash,
    /// Which switches hash alike.
    pub hash_seed: HashSeed,
    /// Parameters of Reunion.
    pub reunion: reunion::Settings,
    /// Parameters of ConWeave.
    pub conweave: conweave::Settings,
}

impl Switching {
    /// Returns one scheme for all switches.
    pub fn all(scheme: Scheme) -> Self {
        Self { schemes: vec![scheme], ..Self::default() }
    }

    /// Whether an entropy value determines a path: all switches hash.
    pub fn hashes(&self) -> bool {
        self.schemes.iter().all(|scheme| scheme.hashes())
    }

    /// Whether switches inform others about frames, which requires a single chassis.
    pub fn uses_trail(&self) -> bool {
        self.schemes.iter().any(|scheme| scheme.uses_trail())
    }

    /// Checks that the schemes can run in a fabric with these groups.
    //= docs/specs/switching.md#SWC-34 supported fabrics
    pub fn check(&self, groups: Groups) -> Result<(), SwitchingError> {
        match self.schemes.iter().find(|scheme| scheme.needs_groups()) {
            Some(scheme) if !groups.exist() => Err(SwitchingError(format!(
                "scheme `{scheme}` needs groups for its detours; allowed: dragonflies, or another scheme"
            ))),
            Some(scheme) if groups.count > MAX_GROUPS => Err(SwitchingError(format!(
                "switches with `{scheme}` in a dragonfly of {} groups; allowed: at most {MAX_GROUPS} groups",
                groups.count
            ))),
            _ => Ok(()),
        }
    }

    /// Whether some switches send frames to each other.
    pub fn has_notices(&self) -> bool {
        self.schemes.iter().any(|scheme| scheme.sends())
    }

    /// Returns the scheme of the switches of a tier.
    pub fn scheme(&self, tier: usize) -> Scheme {
        self.schemes.get(tier).or(self.schemes.last()).copied().unwrap_or_default()
    }

    /// Returns the hash seed of a switch in a run with `seed`; `own` is the switch's salt.
    //= docs/specs/switching.md#SWC-25 seeds
    fn hash_seed(&self, seed: u64, tier: usize, own: u32) -> u32 {
        match self.hash_seed {
            HashSeed::Switch => own,
            HashSeed::Tier => salt(mix(seed), tier.wrapping_add(1)),
            HashSeed::Same => salt(mix(seed), 0),
        }
    }

    /// Returns the bits by which the switches of a tier rotate a hash.
    //= docs/specs/switching.md#SWC-25 seeds
    fn hash_offset(&self, tier: usize) -> u32 {
        if self.hash_seed == HashSeed::Same { 0 } else { OFFSET_BITS.wrapping_mul(tier as u32) }
    }
}

impl fmt::Display for Switching {
    /// Formats the scheme of all tiers, or of each tier in the syntax of `--switch`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.scheme(0);
        if self.schemes.iter().all(|scheme| *scheme == first) {
            return f.pad(first.name());
        }
        let tiers = ["tor", "agg", "core"].iter().zip(&self.schemes);
        f.pad(&tiers.map(|(tier, scheme)| format!("{tier}={scheme}")).collect::<Vec<_>>().join(","))
    }
}

/// Rotation per tier, so that three tiers of up to 32 ports use different bits of CRC-16.
const OFFSET_BITS: u32 = 5;

/// A reason why a scheme cannot run in a fabric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SwitchingError(String);

/// Layout of the switches' tables. All routing epochs share it, so that pointers persist.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    seed: u64,
    tiers: Tiers,
    /// By switch.
    pub(crate) switches: Vec<SwitchConfig>,
    layouts: Vec<Layout>,
    /// Ports; groups are ranges of these.
    pub(crate) members: Vec<u32>,
    /// Initial memory of the switches.
    pub(crate) words: Vec<u64>,
    /// By switch the initial state of its scheme; empty if no scheme holds packets.
    pub(crate) states: Vec<Option<State>>,
    /// Start of the members, by shuffle (see `run`) and ports.
    runs: HashMap<Option<u64>, HashMap<Vec<u32>, u32>>,
    pointers: HashMap<(usize, Destination), u32>,
    /// By switch and leaf, of resilient groups.
    latest: HashMap<(usize, usize), Group>,
    /// Successors of a resilient group (first place, count) by its next ports.
    after: HashMap<(u32, u16), HashMap<Vec<u32>, Group>>,
    /// By switch, leaf, and the least rate on the way to the switch; cleared in each epoch.
    capacities: HashMap<(usize, usize, u64), u64>,
}

/// What a switch has pointers for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Destination {
    Ports(Vec<u32>),
    Leaf(usize),
    Pod(usize),
}

/// Ways from a switch toward a leaf.
pub(crate) struct LeafPaths<'a> {
    /// Ports of a switch on shortest paths to the leaf.
    pub(crate) next: &'a dyn Fn(usize) -> Vec<u32>,
    /// End of a port's cable, and its rate in bits per second.
    pub(crate) port: &'a dyn Fn(u32) -> (Node, u64),
}

impl Plan {
    pub(crate) fn new(
        seed: u64,
        tiers: Tiers,
        salts: &[u32],
        switching: &Switching,
        groups: Groups,
        locations: &Locations,
    ) -> Self {
        let schemes: Vec<Scheme> = tiers.tier.iter().map(|tier| switching.scheme(*tier)).collect();
        let layouts: Vec<Layout> = schemes.iter().map(|scheme| scheme.layout()).collect();
        // Word 0 is unused.
        let mut words = vec![0];
        let size = locations.size();
        let uses_trail = schemes.iter().any(|scheme| scheme.uses_trail());
        let up_ports = if uses_trail { locations.uplinks(&tiers) } else { Vec::new() };
        let shared = if uses_trail { locations.lay_out(&up_ports, &size, &mut words) } else { SwitchConfig::default() };
        let config = |(switch, scheme): (usize, &Scheme)| {
            let memory = words.len() as u32;
            words.resize(words.len() + scheme.words(&size) as usize, 0);
            if let Some(base) = scheme.reunion_base() {
                let first = (memory + base.words(&size)) as usize;
                switching.reunion.words(&up_ports[switch]).for_each(|(at, word)| words[first + at as usize] = word);
            }
            let gap_ps = if scheme.drains() { switching.longest_ps } else { switching.flowlet_gap_ps };
            let (resume_packets, flowcut, group) =
                (switching.resume_packets, switching.flowcut, groups.of_switch(switch));
            let hash_seed = switching.hash_seed(seed, tiers.tier[switch], salts[switch]);
            let offset = switching.hash_offset(tiers.tier[switch]);
            let config = SwitchConfig::new(salts[switch], *scheme).hashed_by(switching.hash, hash_seed, offset);
            let leaf = if uses_trail { locations.leaf(switch) } else { 0 };
            let config = SwitchConfig { gap_ps, memory, groups, group, resume_packets, flowcut, leaf, ..config };
            let SwitchConfig { uses_trail, hosts, leaves, uplinks, .. } = shared;
            SwitchConfig { uses_trail, hosts, leaves, uplinks, ..config }
        };
        let switches = schemes.iter().enumerate().map(config).collect();
        let state = |(switch, scheme): (usize, &Scheme)| {
            let leaf = locations.leaf(switch) < size.leaves;
            let rtts_ps = if leaf { locations.base_rtts_ps(switch, schemes.len()) } else { Vec::new() };
            scheme.holds().then(|| State::new(switching.conweave, up_ports[switch].clone(), rtts_ps))
        };
        let holds = schemes.iter().any(|scheme| scheme.holds());
        let states = if holds { schemes.iter().enumerate().map(state).collect() } else { Vec::new() };
        Self { seed, tiers, switches, layouts, words, states, ..Self::default() }
    }

    /// Begins a routing epoch, in which later groups have other paths.
    pub(crate) fn begin_epoch(&mut self) {
        self.capacities.clear();
    }

    /// Whether a group of `switch` depends only on its ports, not on the leaf.
    pub(crate) fn goes_by_ports(&self, switch: usize) -> bool {
        let Layout { hops, resilient, weighted, pointers, .. } = self.layouts[switch];
        !(hops && self.switches[switch].groups.exist() || resilient || weighted || pointers == Pointers::Destination)
    }

    /// Returns the group of `switch` toward the hosts of another switch `leaf`.
    pub(crate) fn group(&mut self, switch: usize, leaf: usize, paths: &LeafPaths<'_>) -> Group {
        let layout = self.layouts[switch];
        let ports = (paths.next)(switch);
        let hops = if layout.hops && self.switches[switch].groups.exist() { hops(switch, leaf, paths) } else { 0 };
        if ports.len() < 2 {
            let first = self.run(None, &ports, 1);
            return Group { first, count: ports.len() as u16, orders: 1, hops, pointer: 0 };
        }
        if layout.resilient {
            return self.resilient(switch, leaf, &ports);
        }
        let pointer = self.pointer(switch, leaf, &layout, &ports);
        let ports = if layout.weighted { weighted(&ports, &self.weights(&ports, leaf, paths)) } else { ports };
        let shuffle = match layout.pointers {
            _ if !layout.shuffled => None,
            //= docs/specs/switching.md#SWC-8 OFAN's pointers
            Pointers::Destination => Some((switch as u64) << 32 | self.tiers.pod[leaf] as u64),
            Pointers::Ports | Pointers::None => Some((switch as u64) << 32 | u64::from(u32::MAX)),
        };
        let first = self.run(shuffle, &ports, layout.orders);
        Group { first, count: ports.len() as u16, orders: layout.orders, hops, pointer }
    }

    /// Returns the index of the first member of these ports' orders, in random order if `shuffle`
    /// is the number of a random stream.
    fn run(&mut self, shuffle: Option<u64>, ports: &[u32], orders: u8) -> u32 {
        if let Some(first) = self.runs.get(&shuffle).and_then(|runs| runs.get(ports)) {
            return *first;
        }
        let first = self.members.len() as u32;
        for order in 0..orders {
            match shuffle {
                None => self.members.extend(ports),
                Some(shuffle) => {
                    let mut rng = stream(mix(self.seed ^ mix(shuffle)), u64::from(order));
                    self.members.extend(interleaved(ports, &mut rng));
                }
            }
        }
        self.runs.entry(shuffle).or_default().insert(ports.to_vec(), first);
        first
    }

    /// Returns the group of these ports that keeps the most places of the previous epoch.
    //= docs/specs/switching.md#SWC-27 resilient groups
    fn resilient(&mut self, switch: usize, leaf: usize, ports: &[u32]) -> Group {
        let Group { first, count, .. } = self.latest.get(&(switch, leaf)).copied().unwrap_or_default();
        let known = self.after.get(&(first, count)).and_then(|groups| groups.get(ports));
        let group = known.copied().unwrap_or_else(|| {
            let places = levelled(&self.members[first as usize..][..count.into()], ports);
            let group = Group { count: places.len() as u16, ..Group::one(self.run(None, &places, 1)) };
            self.after.entry((first, count)).or_default().insert(ports.to_vec(), group);
            group
        });
        self.latest.insert((switch, leaf), group);
        group
    }

    //= docs/specs/switching.md#SWC-7 initial pointers
    //= docs/specs/switching.md#SWC-9 destinations that share a pointer
    fn pointer(&mut self, switch: usize, leaf: usize, layout: &Layout, ports: &[u32]) -> u32 {
        let Tiers { tier, pod } = &self.tiers;
        let destination = match layout.pointers {
            Pointers::None => return 0,
            Pointers::Ports => Destination::Ports(ports.to_vec()),
            Pointers::Destination if tier[switch] > 0 && pod[switch] != pod[leaf] => Destination::Pod(pod[leaf]),
            Pointers::Destination => Destination::Leaf(leaf),
        };
        let known = self.pointers.len() as u64;
        let (words, seed) = (&mut self.words, self.seed);
        *self.pointers.entry((switch, destination)).or_insert_with(|| {
            let first = words.len() as u32;
            let mut rng = stream(mix(seed), known);
            for _class in 0..2 {
                words.push(if layout.random_start { u64::from(rng.next_u32()) } else { 0 });
            }
            first
        })
    }

    /// Returns the sum of the bottleneck rates of all paths to `leaf` over each port.
    //= docs/specs/switching.md#SWC-4 weights
    fn weights(&mut self, ports: &[u32], leaf: usize, paths: &LeafPaths<'_>) -> Vec<u64> {
        let weight = |port: &u32| {
            let (end, bps) = (paths.port)(*port);
            self.capacity(end, leaf, bps, paths)
        };
        reduced(ports.iter().map(weight).collect())
    }

    fn capacity(&mut self, end: Node, leaf: usize, least_bps: u64, paths: &LeafPaths<'_>) -> u64 {
        let Some(switch) = end.switch() else { return least_bps };
        if switch == leaf {
            return least_bps;
        }
        if let Some(known) = self.capacities.get(&(switch, leaf, least_bps)) {
            return *known;
        }
        let mut sum = 0;
        for port in (paths.next)(switch) {
            let (end, bps) = (paths.port)(port);
            sum += self.capacity(end, leaf, least_bps.min(bps), paths);
        }
        self.capacities.insert((switch, leaf, least_bps), sum);
        sum
    }
}

/// Number of links of a shortest path to the switch `leaf`.
fn hops(switch: usize, leaf: usize, paths: &LeafPaths<'_>) -> u8 {
    let further = |at: &usize| (paths.port)(*(paths.next)(*at).first()?).0.switch().filter(|_| *at != leaf);
    // Terminates, as every link leads nearer.
    std::iter::successors(Some(switch), further).skip(1).count().min(usize::from(u8::MAX)) as u8
}

/// Distributes the places equally among `ports`; each keeps as many of its own as possible.
//= docs/specs/switching.md#SWC-27 resilient groups
fn levelled(before: &[u32], ports: &[u32]) -> Vec<u32> {
    let count = before.len().max(ports.len()).max(MAX_PLACES as usize);
    let mut most_first = ports.to_vec();
    most_first.sort_by_key(|port| Reverse(before.iter().filter(|known| *known == port).count()));
    let share = |(rank, port): (usize, &u32)| (*port, (count + ports.len() - 1 - rank) / ports.len());
    let mut left: HashMap<u32, usize> = most_first.iter().enumerate().map(share).collect();
    let mut take = |port: &u32| {
        let left = left.get_mut(port).filter(|left| **left > 0)?;
        *left -= 1;
        Some(*port)
    };
    let mut places: Vec<Option<u32>> = before.iter().map(&mut take).collect();
    places.resize(count, None);
    let mut turns = ports.iter().cycle();
    places.into_iter().filter_map(|place| place.or_else(|| turns.find_map(&mut take))).collect()
}

/// Maximum places of a weighted group, and number of places of a resilient one.
const MAX_PLACES: u64 = 1_024;

/// Divides by the greatest common divisor, and scales to at most [`MAX_PLACES`] or one per port.
fn reduced(mut weights: Vec<u64>) -> Vec<u64> {
    let sum: u64 = weights.iter().sum();
    let divisor = weights.iter().fold(0, |a, b| gcd(a, *b)).max(1);
    if sum / divisor <= MAX_PLACES {
        weights.iter_mut().for_each(|weight| *weight /= divisor);
        return weights;
    }
    let scaled = |weight: u64| (u128::from(weight) * u128::from(MAX_PLACES) / u128::from(sum)) as u64;
    weights.iter_mut().for_each(|weight| *weight = scaled(*weight).max(1));
    weights
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Repeats each port by its weight.
fn weighted(ports: &[u32], weights: &[u64]) -> Vec<u32> {
    ports.iter().zip(weights).flat_map(|(port, weight)| std::iter::repeat_n(*port, *weight as usize)).collect()
}

/// Returns an interleaved weighted round robin of ports in random order: round `r` has all ports
/// with more than `r` places.
//= docs/specs/switching.md#SWC-4 weights
fn interleaved(places: &[u32], rng: &mut impl RngCore) -> Vec<u32> {
    let mut ports: Vec<(u32, usize)> = Vec::new();
    for port in places {
        match ports.iter_mut().find(|(known, _)| known == port) {
            Some((_, weight)) => *weight += 1,
            None => ports.push((*port, 1)),
        }
    }
    for last in (1..ports.len()).rev() {
        let chosen = (u64::from(rng.next_u32()) * (last as u64 + 1)) >> 32;
        ports.swap(last, chosen as usize);
    }
    let rounds = ports.iter().map(|(_, weight)| *weight).max().unwrap_or(0);
    let round = |round: usize| ports.iter().filter(move |(_, weight)| *weight > round).map(|(port, _)| *port);
    (0..rounds).flat_map(round).collect()
}

#[cfg(test)]
mod tests;
