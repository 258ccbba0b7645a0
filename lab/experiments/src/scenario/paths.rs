//! Values derived from the fabric's paths: round-trip times, connection settings, time limits.

use std::collections::HashSet;
use std::sync::OnceLock;

use bytes::Bytes;
use spray_core::flow::FlowConfig;
use spray_core::link::{PS_PER_S, serialisation_ceil_ps, serialisation_floor_ps};
use spray_core::loss::{RtoConfig, floor_ps};
use spray_core::path::BalancerKind;
use spray_core::units::ByteSize;
use spray_wire::Kind;

use super::{ConnectionPath, FctEnd, Ip, Scenario};
use crate::workload::{Flow, FlowClass, Overrides, Plan, classes};
use spray_fabric::{FastestPaths, Link, LinkChange, Network, Node, ShortestPaths, Thresholds, changes, hops};
use spray_pipeline::config::MAX_HOPS;
use spray_sim::{FrameBytes, Pfc};

/// Routes of the healthy fabric, and values that are computed once per scenario.
#[derive(Debug, Clone)]
pub struct Paths {
    pub(crate) routes: ShortestPaths,
    longest_ps: OnceLock<u64>,
    drain_ps: OnceLock<u64>,
    times_slower: OnceLock<u64>,
}

/// Times of a message alone in the fabric.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnloadedTimes {
    /// Time to its end on the fastest single path.
    //= docs/specs/open-loop.md#OL-3 alone in the fabric
    pub time_ps: u64,
    /// Least time from its last bit on the hosts' slower link to the receiver, in any packet order.
    pub last_bit_ps: u64,
}

/// A message's packets on an idle path: full ones, then a shorter one, each behind the previous.
//= docs/specs/open-loop.md#OL-3 alone in the fabric
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Train {
    /// Arrival of the last packet; the fastest path has the least. Compared first.
    last_ps: u64,
    last_full_ps: u64,
    first_ps: u64,
    slowest_ps: u64,
    full: u64,
}

impl Train {
    /// Advances it over `links`; `bytes` are those of a full packet and of the short one, if any.
    fn over(self, network: &Network, links: impl Iterator<Item = usize>, bytes: (u64, Option<u64>)) -> Self {
        links.fold(self, |mut train, link| {
            let bits_ps = |bytes| serialisation_ceil_ps(bytes, network.links[link].rate_bps);
            let latency_ps = network.latency_ps(link);
            if train.full > 0 {
                train.first_ps += latency_ps + bits_ps(bytes.0);
                train.slowest_ps = train.slowest_ps.max(bits_ps(bytes.0));
                train.last_full_ps = train.first_ps + (train.full - 1) * train.slowest_ps;
            }
            let after_full = |short| train.last_full_ps.max(train.last_ps + latency_ps) + bits_ps(short);
            train.last_ps = bytes.1.map_or(train.last_full_ps, after_full);
            train
        })
    }
}

/// Frame sizes are those seen by sockets, without Ethernet's preamble and checksum.
impl Scenario {
    /// Returns the header bytes of a data frame.
    pub fn header_bytes(&self) -> u32 {
        self.simulation.header_bytes.unwrap_or(spray_wire::header_bytes(self.is_v6(), Kind::Data) as u32)
    }

    /// Returns the bytes of an ACK's frame.
    pub fn ack_bytes(&self) -> u32 {
        self.simulation.control_bytes.unwrap_or(spray_wire::header_bytes(self.is_v6(), Kind::Ack) as u32)
    }

    /// Returns the bytes of the largest control frame.
    pub fn largest_control_bytes(&self) -> u32 {
        let FrameBytes { ack, nack, probe, pull, pull_request, trimmed } = self.frames();
        [ack, nack, probe, pull, pull_request, trimmed].into_iter().fold(0, u32::max)
    }

    pub(crate) fn frames(&self) -> FrameBytes {
        self.simulation.control_bytes.map_or_else(|| FrameBytes::wire(self.is_v6()), FrameBytes::all)
    }

    /// Whether connections use IPv6 instead of IPv4.
    pub fn is_v6(&self) -> bool {
        self.transport.ip == Ip::V6
    }

    /// Returns the bytes of a full data frame.
    pub fn packet_bytes(&self) -> u32 {
        self.header_bytes() + self.transport.payload_bytes
    }

    /// Returns the round-trip time of a full packet and its ACK in an empty fabric.
    pub fn pair_rtt_ps(&self, paths: &Paths, from: usize, to: usize) -> u64 {
        let way = |from, to, bytes: u32| -> u64 {
            let links = hops(&self.network, &paths.routes, from, to);
            links.map(|link| self.network.transit_ps(link, bytes.into())).sum()
        };
        way(from, to, self.packet_bytes()) + way(to, from, self.ack_bytes())
    }

    /// Computes the shortest paths of the healthy fabric.
    pub fn paths(&self) -> Paths {
        Paths {
            routes: ShortestPaths::new(&self.network, |_| true),
            longest_ps: OnceLock::new(),
            drain_ps: OnceLock::new(),
            times_slower: OnceLock::new(),
        }
    }

    /// Returns the longest base round-trip time between two hosts; computed once per `paths`.
    pub fn base_rtt_ps(&self, paths: &Paths) -> u64 {
        *paths.longest_ps.get_or_init(|| {
            // One of the hosts with equal leaf, rate and latency is enough.
            let mut like = HashSet::new();
            let is_first = |host: &usize| {
                let link = &self.network.links[self.network.uplink(*host)];
                like.insert((self.network.leaf_of(*host), link.rate_bps, link.latency_ps))
            };
            let hosts: Vec<usize> = (0..self.network.hosts.len()).filter(is_first).collect();
            if hosts.len() == 1 {
                return self.pair_rtt_ps(paths, 0, 1);
            }
            let [data, acks] = [self.packet_bytes(), self.ack_bytes()].map(|bytes| self.ways_ps(paths, &hosts, bytes));
            let rtt_ps = |from: usize, to: usize| data[to][from] + acks[from][to];
            let pairs = (0..hosts.len()).flat_map(|from| (0..hosts.len()).map(move |to| (from, to)));
            pairs.filter(|(from, to)| from != to).map(|(from, to)| rtt_ps(from, to)).max().unwrap_or(0)
        })
    }

    /// Returns the transit times of frames by destination and source, on the paths of [`hops`].
    fn ways_ps(&self, paths: &Paths, hosts: &[usize], bytes: u32) -> Vec<Vec<u64>> {
        let network = &self.network;
        let transit_ps = |link| network.transit_ps(link, bytes.into());
        let to = |to: &usize| {
            let rest_ps = paths.routes.sums(network, network.leaf_of(*to), transit_ps);
            let from = |from: &usize| {
                transit_ps(network.uplink(*from)) + rest_ps[network.leaf_of(*from)] + transit_ps(network.downlink(*to))
            };
            hosts.iter().map(from).collect()
        };
        hosts.iter().map(to).collect()
    }

    /// Returns the queue of a port of `rate_bps`.
    pub fn thresholds(&self, paths: &Paths, rate_bps: u64) -> Thresholds {
        self.queue.config(rate_bps, self.base_rtt_ps(paths), self.packet_bytes())
    }

    /// Returns the settings of priority flow control, if enabled.
    pub fn pfc(&self) -> Option<Pfc> {
        let headroom_bytes = self.queue.pfc_headroom.map(|bytes| bytes.bytes());
        self.queue.pfc.then(|| Pfc { frame_bytes: self.packet_bytes(), headroom_bytes })
    }

    /// Returns the settings of a connection between two hosts; `own` overrides `[transport]`.
    pub fn flow_config(
        &self,
        paths: &Paths,
        balancer: BalancerKind,
        own: Overrides,
        [from, to]: [usize; 2],
        largest_bytes: u64,
    ) -> FlowConfig {
        let base_rtt_ps = self.pair_rtt_ps(paths, from, to);
        let path = ConnectionPath {
            balancer: own.balancer.unwrap_or(balancer),
            base_rtt_ps,
            link_bps: self.network.links[self.network.uplink(from)].rate_bps,
            payload_bytes: self.transport.payload_bytes,
            header_bytes: self.header_bytes(),
            trimming: self.queue.trimming,
        };
        let flow = self.transport.flow_config_under(own.cc.unwrap_or(self.transport.cc), &path);
        let largest = largest_bytes.max(1 << 20);
        let rto = self.rto(paths, base_rtt_ps, from, to);
        FlowConfig {
            rto,
            give_up_ps: self.transport.give_up_ps(rto),
            max_data_bytes: largest.saturating_mul(2),
            max_message_bytes: largest,
            dscp: own.dscp.unwrap_or(flow.dscp),
            balancer: self.own.balancer.map_or(flow.balancer, Into::into),
            cc: self.own.cc.map_or(flow.cc, Into::into),
            ..flow
        }
    }

    /// Returns the settings of the connection of `flow` in a run under `balancer`.
    pub fn connection(
        &self,
        paths: &Paths,
        balancer: BalancerKind,
        classes: &[FlowClass],
        flow: &Flow,
        largest_bytes: u64,
    ) -> FlowConfig {
        let own = classes[usize::from(flow.class)].own;
        self.flow_config(paths, balancer, own, [flow.src, flow.dst], largest_bytes)
    }

    /// Returns the bounds of the retransmission timeout between two hosts. The default minimum
    /// covers full queues on the whole path, and the default maximum also slow links.
    fn rto(&self, paths: &Paths, base_rtt_ps: u64, from: usize, to: usize) -> RtoConfig {
        // All links but the sender's leave a switch.
        let switches = hops(&self.network, &paths.routes, from, to).count().saturating_sub(1) as u64;
        let floor_ps = floor_ps(base_rtt_ps, self.drain_ps(paths), switches);
        let rto = self.transport.rto(floor_ps);
        let slowest_ps = floor_ps.saturating_mul(*paths.times_slower.get_or_init(|| self.times_slower()));
        let max_ps = self.transport.rto_max_us.map_or(rto.max_ps.max(slowest_ps), |_| rto.max_ps);
        RtoConfig { max_ps, ..rto }
    }

    /// Returns the longest drain time of a full queue; with PFC of all memory of its switch.
    pub(crate) fn drain_ps(&self, paths: &Paths) -> u64 {
        *paths.drain_ps.get_or_init(|| {
            if let Some(pfc) = self.pfc() {
                return self.memory_drain_ps(paths, &pfc);
            }
            let limit = |rate| self.thresholds(paths, rate).limit_bytes;
            let rates = self.network.links.iter().map(|link| link.rate_bps);
            rates.map(|rate| serialisation_floor_ps(u64::from(limit(rate)), rate)).max().unwrap_or(0)
        })
    }

    /// Returns the longest transit time of a frame: full queues, the lowest rate, no pauses.
    pub fn longest_ps(&self, paths: &Paths) -> u64 {
        let changes = changes(&self.link_events, self.network.links.len());
        let least_ppm = changes.iter().flatten().map(|change| u64::from(change.state.rate_ppm)).min();
        let least_ppm = least_ppm.unwrap_or(1_000_000).clamp(1, 1_000_000);
        floor_ps(self.base_rtt_ps(paths), self.drain_ps(paths), MAX_HOPS as u64).saturating_mul(1_000_000) / least_ppm
    }

    /// Returns the longest drain time of a switch's full memory through its slowest port.
    //= docs/specs/pfc.md#PFC-8 timeouts
    fn memory_drain_ps(&self, paths: &Paths, pfc: &Pfc) -> u64 {
        let Network { links, switches, .. } = &self.network;
        let shared = self.queue.shared_buffer.map(ByteSize::bytes);
        let mut memory = vec![shared.unwrap_or(0); switches.len()];
        for (number, link) in links.iter().enumerate() {
            if let Node::Switch(switch) = link.to {
                let own = if shared.is_some() { 0 } else { self.thresholds(paths, link.rate_bps).limit_bytes.into() };
                memory[switch] += own + pfc.headroom_bytes(&self.network, number);
            }
        }
        let port_ps = |link: &Link| match link.from {
            Node::Switch(switch) => serialisation_floor_ps(memory[switch], link.rate_bps),
            Node::Host(_) => 0,
        };
        links.iter().map(port_ps).max().unwrap_or(0)
    }

    /// Returns the flows of a run with root `seed`, and their triggers.
    pub fn plan(&self, seed: u64) -> Plan {
        Plan::new(&self.workloads, &self.network, seed)
    }

    /// Returns the flows of a run with root `seed`.
    pub fn flows(&self, seed: u64) -> Vec<Flow> {
        self.plan(seed).flows
    }

    /// Returns the payload of `flow` in a run with root `seed`.
    pub fn payload(&self, classes: &[FlowClass], flow: &Flow, seed: u64) -> Bytes {
        self.workloads[classes[usize::from(flow.class)].workload].payload(flow, seed)
    }

    /// Returns the balancers of the runs and of workloads.
    pub fn balancers(&self) -> Vec<BalancerKind> {
        let own = classes(&self.workloads).into_iter().filter_map(|class| class.own.balancer);
        self.transport.balancer.iter().copied().chain(own).collect()
    }

    /// Returns the transmission time of a message with headers on the hosts' slower link.
    pub fn link_ps(&self, flow: &Flow) -> u64 {
        let packets = flow.bytes.div_ceil(u64::from(self.transport.payload_bytes)).max(1);
        serialisation_floor_ps(flow.bytes + packets * u64::from(self.header_bytes()), self.slower_bps(flow))
    }

    fn slower_bps(&self, flow: &Flow) -> u64 {
        let [up, down] = [self.network.uplink(flow.src), self.network.downlink(flow.dst)];
        self.network.links[up].rate_bps.min(self.network.links[down].rate_bps)
    }

    /// Returns for each flow the times of its message alone in the fabric.
    pub fn unloaded_times(&self, paths: &Paths, flows: &[Flow]) -> Vec<UnloadedTimes> {
        let mut trains = vec![Train::default(); flows.len()];
        let mut last_bit_ps = vec![0; flows.len()];
        let hosts = |end: fn(&Flow) -> usize| flows.iter().map(end).collect::<Vec<_>>();
        self.by_leaf(paths, &hosts(|flow| flow.dst), |fastest, at| {
            let Flow { src, dst, bytes, .. } = flows[at];
            let (full, sizes) = self.packets(bytes);
            trains[at] = self.fastest(fastest, [src, dst], Train { full, ..Train::default() }, sizes);
            last_bit_ps[at] = self.after_ps(fastest, &flows[at]);
        });
        if self.simulation.fct_end == FctEnd::Acked {
            self.by_leaf(paths, &hosts(|flow| flow.src), |fastest, at| {
                let Flow { src, dst, bytes, .. } = flows[at];
                let acks = (self.ack_bytes().into(), self.packets(bytes).1.1.map(|_| self.ack_bytes().into()));
                trains[at] = self.fastest(fastest, [dst, src], trains[at], acks);
            });
        }
        let times = |(train, last_bit_ps): (&Train, u64)| UnloadedTimes { time_ps: train.last_ps, last_bit_ps };
        trains.iter().zip(last_bit_ps).map(times).collect()
    }

    /// Returns the number of full packets, their bytes, and those of the shorter last one, if any.
    fn packets(&self, bytes: u64) -> (u64, (u64, Option<u64>)) {
        let [payload, header] = [self.transport.payload_bytes, self.header_bytes()].map(u64::from);
        let (full, short) = (bytes / payload, bytes % payload);
        (full, (payload + header, (full == 0 || short > 0).then_some(short + header)))
    }

    fn fastest(
        &self,
        fastest: &mut FastestPaths<'_>,
        [from, to]: [usize; 2],
        train: Train,
        bytes: (u64, Option<u64>),
    ) -> Train {
        let [first, last] = [self.network.uplink(from), self.network.downlink(to)];
        let over = |links: &mut dyn Iterator<Item = usize>| {
            train.over(&self.network, std::iter::once(first).chain(links).chain([last]), bytes)
        };
        fastest.least(self.network.leaf_of(from), over).unwrap_or(train)
    }

    /// Calls `each` for the index of each host, with the fastest paths to its leaf.
    fn by_leaf(&self, paths: &Paths, hosts: &[usize], mut each: impl FnMut(&mut FastestPaths<'_>, usize)) {
        let leaf = |at: &usize| self.network.leaf_of(hosts[*at]);
        let mut sorted: Vec<usize> = (0..hosts.len()).collect();
        sorted.sort_by_key(leaf);
        for alike in sorted.chunk_by(|a, b| leaf(a) == leaf(b)) {
            let mut fastest = FastestPaths::new(&self.network, &paths.routes, leaf(&alike[0]));
            alike.iter().for_each(|at| each(&mut fastest, *at));
        }
    }

    fn way_ps(&self, fastest: &mut FastestPaths<'_>, [from, to]: [usize; 2], bytes: u64) -> u64 {
        let own = [self.network.uplink(from), self.network.downlink(to)];
        let own_ps: u64 = own.iter().map(|link| self.network.transit_ps(*link, bytes)).sum();
        own_ps + fastest.least_ps(self.network.leaf_of(from), bytes)
    }

    /// Returns [`UnloadedTimes::last_bit_ps`] of a flow; `fastest` leads to the receiver's leaf.
    fn after_ps(&self, fastest: &mut FastestPaths<'_>, flow: &Flow) -> u64 {
        let (full, (full_bytes, short)) = self.packets(flow.bytes);
        let rate_bps = self.slower_bps(flow);
        let mut after = |bytes: u64, later: u64| {
            self.way_ps(fastest, [flow.src, flow.dst], bytes)
                .saturating_sub(serialisation_floor_ps(bytes + later, rate_bps))
        };
        // The short packet is faster, and may overtake a full one on another path.
        let of_full = if full > 0 { after(full_bytes, short.unwrap_or(0)) } else { 0 };
        short.map_or(0, |bytes| after(bytes, 0)).max(of_full)
    }

    /// Returns the last start, plus the busiest host's transmission time, plus one base RTT.
    pub fn ideal_ps(&self, paths: &Paths, flows: &[Flow]) -> u64 {
        let packets = |bytes: u64| bytes.div_ceil(u64::from(self.transport.payload_bytes));
        let wire = |flow: &Flow| flow.bytes + packets(flow.bytes) * u64::from(self.header_bytes());
        let mut loads = vec![(0u64, 0u64); self.network.hosts.len()];
        for flow in flows {
            loads[flow.src].0 += wire(flow);
            loads[flow.dst].1 += wire(flow);
        }
        let time = |(host, (sent, received)): (usize, &(u64, u64))| {
            let rate = self.network.links[self.network.uplink(host)].rate_bps;
            u64::try_from(u128::from(*sent.max(received)) * 8 * u128::from(PS_PER_S) / u128::from(rate))
                .unwrap_or(u64::MAX)
        };
        let busiest = loads.iter().enumerate().map(time).max().unwrap_or(0);
        let last_ps = flows.iter().map(|flow| flow.start_ps).max().unwrap_or(0);
        last_ps.saturating_add(busiest).saturating_add(self.base_rtt_ps(paths))
    }

    /// Returns the time limit of a run of `plan`: by default 50 times its least time over the
    /// slowest link, with a round trip per chained flow, at least 20 ms, plus computation.
    pub fn time_limit_ps(&self, paths: &Paths, plan: &Plan) -> u64 {
        self.time_limit_ps.unwrap_or_else(|| {
            let chained = if plan.triggers.is_some() { plan.flows.len() as u64 } else { 0 };
            let ideal_ps = self.ideal_ps(paths, &plan.flows);
            let least_ps = chained.saturating_mul(self.base_rtt_ps(paths)).saturating_add(ideal_ps);
            let least_ps = least_ps.saturating_mul(*paths.times_slower.get_or_init(|| self.times_slower()));
            least_ps.saturating_mul(50).max(20_000_000_000).saturating_add(plan.compute_ps)
        })
    }

    /// Returns the slowest host's link over the slowest link at the start, rounded up; at least 1.
    fn times_slower(&self) -> u64 {
        let Network { links, hosts, .. } = &self.network;
        let drawn_ppm = self.failures.as_ref().and_then(|failures| failures.file.slowest_ppm()).unwrap_or(FULL_PPM);
        let at_0 = |changes: &Vec<LinkChange>| {
            changes.first().filter(|change| change.at_ps == 0).map(|change| change.state.rate_ppm)
        };
        let events = changes(&self.link_events, links.len());
        let left_ppm = events.iter().map(|changes| at_0(changes).unwrap_or(FULL_PPM).min(drawn_ppm));
        let slowest = links.iter().zip(left_ppm).map(|(link, ppm)| u128::from(link.rate_bps) * u128::from(ppm)).min();
        let own = |host| u128::from(links[self.network.uplink(host)].rate_bps) * u128::from(FULL_PPM);
        let of_hosts = (0..hosts.len()).map(own).min();
        of_hosts.zip(slowest).map_or(1, |(of_hosts, slowest)| of_hosts.div_ceil(slowest.max(1)).max(1)) as u64
    }
}

/// A link's full rate in ppm.
const FULL_PPM: u32 = 1_000_000;
