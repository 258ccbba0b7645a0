//! Which scheme each switch of a network has, and the tables that schemes go by: groups of ports, weights, pointers.

mod places;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use rand_core::RngCore;
use spray_pipeline::flow_hash::{FlowHash, HashSeed};
use spray_pipeline::routes::{Group, SwitchConfig};
use spray_pipeline::scheme::{FlowcutRule, Layout, MOST_GROUPS, Pointers, State};
pub use spray_pipeline::scheme::{Groups, Scheme, conweave, reunion};

use spray_core::rng::stream;

pub(crate) use self::places::Places;
use super::Tiers;
use crate::node::Node;
use crate::salt::{mix, salt};

/// The schemes of a network's switches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switching {
    /// Of the switches of each tier, from that of the hosts' switches on; the last one also of the tiers above. None = ECMP.
    pub schemes: Vec<Scheme>,
    /// The pause that ends a flowlet at a switch.
    pub flowlet_gap_ps: u64,
    /// The longest time that a frame may be under way: after it nothing comes any more over a port that routing took away. Only for schemes
    /// that [drain](Scheme::drains); otherwise 0, so that fabrics with other failures are the same.
    pub longest_ps: u64,
    /// A draining flow may go on when at most so many of its packets are on their way.
    pub resume_packets: u32,
    /// When a flow drains.
    pub flowcut: FlowcutRule,
    /// What switches hash, and how.
    pub hash: FlowHash,
    /// Which of them hash alike.
    pub hash_seed: HashSeed,
    /// How Reunion works, where it does.
    pub reunion: reunion::Settings,
    /// How ConWeave works, where it does.
    pub conweave: conweave::Settings,
}

impl Switching {
    /// One scheme for all switches.
    pub fn all(scheme: Scheme) -> Self {
        Self { schemes: vec![scheme], ..Self::default() }
    }

    /// Whether an entropy value stands for a path: every switch hashes.
    pub fn hashes(&self) -> bool {
        self.schemes.iter().all(|scheme| scheme.hashes())
    }

    /// Whether some switch tells others about a frame, which a chassis of all switches alone lets it do.
    pub fn remembers(&self) -> bool {
        self.schemes.iter().any(|scheme| scheme.remembers())
    }

    /// Whether the schemes can run in a fabric with these groups.
    ///
    /// # Errors
    /// The scheme that cannot, and why.
    //= docs/specs/switching.md#SWC-34 supported fabrics
    pub fn check(&self, groups: Groups) -> Result<(), SwitchingError> {
        match self.schemes.iter().find(|scheme| scheme.needs_groups()) {
            Some(scheme) if !groups.exist() => Err(SwitchingError::NoGroups(*scheme)),
            Some(scheme) if groups.count > MOST_GROUPS => Err(SwitchingError::Groups(*scheme, groups.count)),
            _ => Ok(()),
        }
    }

    /// Whether some switches send each other frames of their own.
    pub fn has_notices(&self) -> bool {
        self.schemes.iter().any(|scheme| scheme.sends())
    }

    /// The scheme of the switches of a tier.
    pub fn scheme(&self, tier: usize) -> Scheme {
        self.schemes.get(tier).or(self.schemes.last()).copied().unwrap_or_default()
    }

    /// The seed of a switch's hash in a run with root `seed`; `own` is the switch's salt.
    //= docs/specs/switching.md#SWC-25 seeds
    fn hash_seed(&self, seed: u64, tier: usize, own: u32) -> u32 {
        match self.hash_seed {
            HashSeed::Switch => own,
            HashSeed::Tier => salt(mix(seed), tier.wrapping_add(1)),
            HashSeed::Same => salt(mix(seed), 0),
        }
    }

    /// Bits by which the switches of a tier rotate a hash.
    //= docs/specs/switching.md#SWC-25 seeds
    fn hash_offset(&self, tier: usize) -> u32 {
        if self.hash_seed == HashSeed::Same { 0 } else { OFFSET_BITS.wrapping_mul(tier as u32) }
    }
}

impl fmt::Display for Switching {
    /// The scheme of all tiers, or that of each as `--switch` takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.scheme(0);
        if self.schemes.iter().all(|scheme| *scheme == first) {
            return f.pad(first.name());
        }
        let tiers = ["tor", "agg", "core"].iter().zip(&self.schemes);
        f.pad(&tiers.map(|(tier, scheme)| format!("{tier}={scheme}")).collect::<Vec<_>>().join(","))
    }
}

/// Bits by which a tier rotates its hashes further than the one below: with CRC-16, places of three tiers of up to 32 ports do not share bits.
const OFFSET_BITS: u32 = 5;

/// Why a scheme cannot run in a fabric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwitchingError {
    /// The fabric is no dragonfly.
    #[error(
        "switches with `{0}` take detours over other groups, and the fabric has none; allowed: dragonflies, or another scheme"
    )]
    NoGroups(Scheme),
    /// A frame cannot name so many groups.
    #[error("switches with `{0}` in a dragonfly of {1} groups; allowed: at most {MOST_GROUPS} groups")]
    Groups(Scheme, u16),
}

/// Lays out what the switches of a network choose by. Groups of all epochs of routing are added to one plan, so that pointers go on
/// where routes change.
#[derive(Debug)]
pub(crate) struct Plan {
    seed: u64,
    tiers: Tiers,
    /// By switch.
    pub(crate) switches: Vec<SwitchConfig>,
    layouts: Vec<Layout>,
    /// Ports, runs of which are groups.
    pub(crate) members: Vec<u32>,
    /// What the switches' words hold when a run begins.
    pub(crate) words: Vec<u64>,
    /// By switch what it knows when a run begins in types of its scheme's own; none where no scheme holds packets.
    pub(crate) states: Vec<Option<State>>,
    /// Where orders begin among the members, by shuffle and ports.
    runs: HashMap<Shuffle, HashMap<Vec<u32>, u32>>,
    pointers: HashMap<(usize, Destination), u32>,
    /// The latest group of a switch toward a leaf, where groups are resilient.
    latest: HashMap<(usize, usize), Group>,
    /// What becomes of a resilient group, by its first place, how many it has, and its next ports.
    after: HashMap<(u32, u16), HashMap<Vec<u32>, Group>>,
    /// Capacities of an epoch, by switch, leaf, and the least rate on the way to the switch.
    capacities: HashMap<(usize, usize, u64), u64>,
}

/// Which groups have the same orders of the same ports: all that are not shuffled, those of a switch, or those toward a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Shuffle {
    No,
    At { switch: usize },
    Toward { switch: usize, pod: usize },
}

/// What has a pointer at a switch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Destination {
    Ports(Vec<u32>),
    Leaf(usize),
    Pod(usize),
}

/// The ways on from a switch toward a leaf, as a plan asks for them.
pub(crate) struct Ways<'a> {
    /// The ports of a switch that lie on shortest paths to the leaf.
    pub(crate) next: &'a dyn Fn(usize) -> Vec<u32>,
    /// Where a port's cable ends, and its rate in bits a second.
    pub(crate) port: &'a dyn Fn(u32) -> (Node, u64),
}

impl Plan {
    /// A plan without groups for switches with these tiers.
    pub(crate) fn new(
        seed: u64,
        tiers: Tiers,
        salts: &[u32],
        switching: &Switching,
        groups: Groups,
        places: &Places,
    ) -> Self {
        let schemes: Vec<Scheme> = tiers.tier.iter().map(|tier| switching.scheme(*tier)).collect();
        let layouts: Vec<Layout> = schemes.iter().map(|scheme| scheme.layout()).collect();
        // Word 0 belongs to nobody.
        let mut words = vec![0];
        let size = places.size();
        let remembers = schemes.iter().any(|scheme| scheme.remembers());
        let ways = if remembers { places.ways(&tiers) } else { Vec::new() };
        let shared = if remembers { places.lay_out(&ways, &size, &mut words) } else { SwitchConfig::default() };
        let config = |(switch, scheme): (usize, &Scheme)| {
            let memory = words.len() as u32;
            words.resize(words.len() + scheme.words(&size) as usize, 0);
            if let Some(base) = scheme.reunion_base() {
                let first = (memory + base.words(&size)) as usize;
                switching.reunion.words(&ways[switch]).for_each(|(place, word)| words[first + place as usize] = word);
            }
            let gap_ps = if scheme.drains() { switching.longest_ps } else { switching.flowlet_gap_ps };
            let (resume_packets, flowcut, group) =
                (switching.resume_packets, switching.flowcut, groups.of_switch(switch));
            let hash_seed = switching.hash_seed(seed, tiers.tier[switch], salts[switch]);
            let offset = switching.hash_offset(tiers.tier[switch]);
            let config = SwitchConfig::new(salts[switch], *scheme).hashed_by(switching.hash, hash_seed, offset);
            let leaf = if remembers { places.leaf(switch) } else { 0 };
            let config = SwitchConfig { gap_ps, memory, groups, group, resume_packets, flowcut, leaf, ..config };
            let SwitchConfig { remembers, hosts, leaves, uplinks, .. } = shared;
            SwitchConfig { remembers, hosts, leaves, uplinks, ..config }
        };
        let switches = schemes.iter().enumerate().map(config).collect();
        let state = |(switch, scheme): (usize, &Scheme)| {
            let leaf = places.leaf(switch) < size.leaves;
            let rtts_ps = if leaf { places.base_rtts_ps(switch, schemes.len()) } else { Vec::new() };
            scheme.holds().then(|| State::new(switching.conweave, ways[switch].clone(), rtts_ps))
        };
        let holds = schemes.iter().any(|scheme| scheme.holds());
        let states = if holds { schemes.iter().enumerate().map(state).collect() } else { Vec::new() };
        Self {
            seed,
            tiers,
            switches,
            layouts,
            members: Vec::new(),
            words,
            states,
            runs: HashMap::new(),
            pointers: HashMap::new(),
            latest: HashMap::new(),
            after: HashMap::new(),
            capacities: HashMap::new(),
        }
    }

    /// Begins an epoch of routing: groups that are added from here on have other ways.
    pub(crate) fn begin_epoch(&mut self) {
        self.capacities.clear();
    }

    /// Whether the groups of `switch` follow from their ports: toward any leaf those of the same ports are the same.
    pub(crate) fn goes_by_ports(&self, switch: usize) -> bool {
        let Layout { ways, resilient, weighted, pointers, .. } = self.layouts[switch];
        !(ways && self.switches[switch].groups.exist() || resilient || weighted || pointers == Pointers::Destination)
    }

    /// The group of `switch` toward the hosts of the switch `leaf`, another one.
    pub(crate) fn group(&mut self, switch: usize, leaf: usize, ways: &Ways<'_>) -> Group {
        let layout = self.layouts[switch];
        let ports = (ways.next)(switch);
        let hops = if layout.ways && self.switches[switch].groups.exist() { hops(switch, leaf, ways) } else { 0 };
        if ports.len() < 2 {
            let first = self.run(Shuffle::No, &ports, 1);
            return Group { first, count: ports.len() as u16, orders: 1, hops, pointer: 0 };
        }
        if layout.resilient {
            return self.resilient(switch, leaf, &ports);
        }
        let pointer = self.pointer(switch, leaf, &layout, &ports);
        let ports = if layout.weighted { weighted(&ports, &self.weights(&ports, leaf, ways)) } else { ports };
        let shuffle = match layout.pointers {
            _ if !layout.shuffled => Shuffle::No,
            //= docs/specs/switching.md#SWC-8 OFAN's pointers
            Pointers::Destination => Shuffle::Toward { switch, pod: self.tiers.pod[leaf] },
            Pointers::Ports | Pointers::None => Shuffle::At { switch },
        };
        let first = self.run(shuffle, &ports, layout.orders);
        Group { first, count: ports.len() as u16, orders: layout.orders, hops, pointer }
    }

    /// Where the orders of these ports begin among the members.
    fn run(&mut self, shuffle: Shuffle, ports: &[u32], orders: u8) -> u32 {
        if let Some(first) = self.runs.get(&shuffle).and_then(|runs| runs.get(ports)) {
            return *first;
        }
        let first = self.members.len() as u32;
        let lot = match shuffle {
            Shuffle::No => None,
            Shuffle::At { switch } => Some((switch as u64) << 32 | u64::from(u32::MAX)),
            Shuffle::Toward { switch, pod } => Some((switch as u64) << 32 | pod as u64),
        };
        for order in 0..orders {
            match lot {
                None => self.members.extend(ports),
                Some(lot) => {
                    let mut rng = stream(mix(self.seed ^ mix(lot)), u64::from(order));
                    self.members.extend(interleaved(ports, &mut rng));
                }
            }
        }
        self.runs.entry(shuffle).or_default().insert(ports.to_vec(), first);
        first
    }

    /// The group of these ports, with as many places as possible as in the epoch before.
    //= docs/specs/switching.md#SWC-27 resilient groups
    fn resilient(&mut self, switch: usize, leaf: usize, ports: &[u32]) -> Group {
        let Group { first, count, .. } = self.latest.get(&(switch, leaf)).copied().unwrap_or_default();
        let known = self.after.get(&(first, count)).and_then(|groups| groups.get(ports));
        let group = known.copied().unwrap_or_else(|| {
            let places = levelled(&self.members[first as usize..][..count.into()], ports);
            let group = Group { count: places.len() as u16, ..Group::one(self.run(Shuffle::No, &places, 1)) };
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

    /// The weight of each port of a switch toward `leaf`: the sum over all paths behind it of their least rates, its own included.
    //= docs/specs/switching.md#SWC-4 weights
    fn weights(&mut self, ports: &[u32], leaf: usize, ways: &Ways<'_>) -> Vec<u64> {
        let weight = |port: &u32| {
            let (end, bps) = (ways.port)(*port);
            self.capacity(end, leaf, bps, ways)
        };
        reduced(ports.iter().map(weight).collect())
    }

    fn capacity(&mut self, end: Node, leaf: usize, least_bps: u64, ways: &Ways<'_>) -> u64 {
        let Node::Switch(switch) = end else { return least_bps };
        if switch == leaf {
            return least_bps;
        }
        if let Some(known) = self.capacities.get(&(switch, leaf, least_bps)) {
            return *known;
        }
        let mut sum = 0;
        for port in (ways.next)(switch) {
            let (end, bps) = (ways.port)(port);
            sum += self.capacity(end, leaf, least_bps.min(bps), ways);
        }
        self.capacities.insert((switch, leaf, least_bps), sum);
        sum
    }
}

/// Links of a shortest way from a switch to the switch `leaf`.
fn hops(switch: usize, leaf: usize, ways: &Ways<'_>) -> u8 {
    let further = |at: &usize| match (ways.port)(*(ways.next)(*at).first()?).0 {
        Node::Switch(next) if *at != leaf => Some(next),
        _ => None,
    };
    // Every link leads nearer.
    std::iter::successors(Some(switch), further).skip(1).count().min(usize::from(u8::MAX)) as u8
}

/// Gives `ports` equal shares of the places that were `before`. A port keeps as many of its own as it may have.
//= docs/specs/switching.md#SWC-27 resilient groups
fn levelled(before: &[u32], ports: &[u32]) -> Vec<u32> {
    let count = before.len().max(ports.len()).max(MOST_PLACES as usize);
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

/// Most places that weights give a group, and places of a resilient one.
const MOST_PLACES: u64 = 1_024;

/// Weights over their greatest common divisor; no more places than [`MOST_PLACES`], or one for each port.
fn reduced(mut weights: Vec<u64>) -> Vec<u64> {
    let sum: u64 = weights.iter().sum();
    let divisor = weights.iter().fold(0, |a, b| gcd(a, *b)).max(1);
    if sum / divisor <= MOST_PLACES {
        weights.iter_mut().for_each(|weight| *weight /= divisor);
        return weights;
    }
    let scaled = |weight: u64| (u128::from(weight) * u128::from(MOST_PLACES) / u128::from(sum)) as u64;
    weights.iter_mut().for_each(|weight| *weight = scaled(*weight).max(1));
    weights
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Each port as often as its weight says.
fn weighted(ports: &[u32], weights: &[u64]) -> Vec<u32> {
    ports.iter().zip(weights).flat_map(|(port, weight)| std::iter::repeat_n(*port, *weight as usize)).collect()
}

/// The ports of `places` in random order, as an interleaved weighted round robin: in round `r` all ports that have more than `r`
/// places.
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
