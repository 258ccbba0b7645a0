//! Bounds of a scenario: the rate that all flows can have at once, and the least time (OFAN §5).

use spray_fabric::{LinkAction, LinkEvent, Network, Node, ShortestPaths};

use crate::scenario::Scenario;
use crate::workload::{Flow, largest_bytes};

/// The optimum of all schemes that spread every flow evenly over its shortest paths.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Rate in bit/s of every flow, headers included, with room for ACKs: the paper's rho_max.
    ///
    /// A host's own link needs no such room: if it is the narrowest, data and ACKs alternate.
    pub rate_bps: f64,
    /// Least time from the first start to the last acknowledgement, in ps.
    ///
    /// If every host sends and receives one flow, all of one size, by the three modes of OFAN
    /// appendix B. Otherwise the slowest flow at its rate, with propagation and serialisation.
    pub completion_ps: u64,
}

impl Scenario {
    /// Returns the bound for the flows of a run with root `seed`.
    ///
    /// Counts link events from time 0 on: links without paths, or with a lower rate.
    pub fn bound(&self, seed: u64, events: &[LinkEvent]) -> Bound {
        let flows = self.flows(seed);
        let rate_bps = rates_bps(self, events);
        let paths = ShortestPaths::new(&self.network, |link| rate_bps[link] > 0);
        let data = loads(&self.network, &paths, &flows);
        let with_acks = self.with_acks(&paths, &flows, &data);
        let narrowest = |loads: &[f64], of_hosts: bool| {
            let is_own = |link: &usize| matches!(self.network.links[*link].from, Node::Host(_));
            let busy = (0..loads.len()).filter(|link| loads[*link] > 0.0 && (is_own(link) || !of_hosts));
            busy.map(|link| rate_bps[link] as f64 / loads[link]).min_by(f64::total_cmp).unwrap_or(0.0)
        };
        let steady_bps = narrowest(&with_acks, false);
        let is_hosts = narrowest(&with_acks, true) <= steady_bps * (1.0 + ROUNDING);
        let rate_bps = narrowest(if is_hosts { &data } else { &with_acks }, is_hosts);
        let completion_ps = match permutation(&flows) {
            true => Times::new(self, &flows, rate_bps).permutation_ps(),
            false => Times::new(self, &flows, steady_bps).transmission_ps(),
        };
        Bound { rate_bps, completion_ps }
    }

    /// Adds the loads of the ACKs in the reverse direction.
    fn with_acks(&self, paths: &ShortestPaths, flows: &[Flow], data: &[f64]) -> Vec<f64> {
        let back: Vec<Flow> = flows.iter().map(|flow| Flow { src: flow.dst, dst: flow.src, ..*flow }).collect();
        let a_packet = f64::from(self.packet_bytes()) * f64::from(self.transport.ack_every.max(1));
        let share = f64::from(self.ack_bytes()) / a_packet;
        let acks = loads(&self.network, paths, &back);
        data.iter().zip(acks).map(|(data, acks)| data + share * acks).collect()
    }
}

/// Two sums of the same shares differ by less than this, relatively.
const ROUNDING: f64 = 1e-9;

/// Returns the rates of all links while `events` last; 0 for a link that drops everything.
fn rates_bps(scenario: &Scenario, events: &[LinkEvent]) -> Vec<u64> {
    let mut rate_bps: Vec<u64> = scenario.network.links.iter().map(|link| link.rate_bps).collect();
    for event in scenario.link_events.iter().chain(events).filter(|event| event.at_ps == 0) {
        for link in &event.links {
            match event.action {
                LinkAction::Down { .. } | LinkAction::SilentDrop => rate_bps[*link] = 0,
                LinkAction::Rate { ppm } => {
                    rate_bps[*link] = (rate_bps[*link] as u128 * u128::from(ppm) / 1_000_000) as u64
                }
                LinkAction::Loss { .. } | LinkAction::Flap { .. } | LinkAction::Periodic(_) => {}
            }
        }
    }
    rate_bps
}

/// Returns the load of every link, in flows, each split over its shortest paths (OFAN appendix A).
fn loads(network: &Network, paths: &ShortestPaths, flows: &[Flow]) -> Vec<f64> {
    let mut loads = vec![0.0; network.links.len()];
    let leaves = paths.leaves().len();
    // Flows between the same two leaves take the same paths.
    let mut between = vec![0.0; leaves * network.switches.len()];
    for flow in flows {
        loads[network.uplink(flow.src)] += 1.0;
        loads[network.downlink(flow.dst)] += 1.0;
        if let Some(to) = paths.leaf_number(network.leaf_of(flow.dst)) {
            between[to * network.switches.len() + network.leaf_of(flow.src)] += 1.0;
        }
    }
    for (leaf, from) in between.chunks(network.switches.len()).enumerate() {
        spread(network, paths, leaf, from, &mut loads);
    }
    loads
}

/// Adds the load of the flows from every switch (`from`) to a leaf.
fn spread(network: &Network, paths: &ShortestPaths, leaf: usize, from: &[f64], loads: &mut [f64]) {
    let mut path_counts = PathCounts { network, paths, leaf, count: vec![None; from.len()], order: Vec::new() };
    for switch in (0..from.len()).filter(|switch| from[*switch] > 0.0) {
        path_counts.count(switch);
    }
    let mut carried = from.to_vec();
    for switch in path_counts.order.iter().rev() {
        let (load, all) = (carried[*switch], path_counts.count[*switch].unwrap_or(0.0));
        if load == 0.0 || all == 0.0 {
            continue;
        }
        for link in paths.next(*switch, leaf) {
            let end = path_counts.end(*link);
            let share = load * path_counts.count[end].unwrap_or(0.0) / all;
            loads[*link as usize] += share;
            carried[end] += share;
        }
    }
}

/// Counts the shortest paths from switches to a leaf.
struct PathCounts<'a> {
    network: &'a Network,
    paths: &'a ShortestPaths,
    leaf: usize,
    /// By switch; `None` until it is counted.
    count: Vec<Option<f64>>,
    /// The counted switches in topological order: each after all that are on its paths.
    order: Vec<usize>,
}

impl PathCounts<'_> {
    fn count(&mut self, switch: usize) -> f64 {
        if let Some(known) = self.count[switch] {
            return known;
        }
        let paths = self.paths;
        let own = match paths.leaves()[self.leaf] == switch {
            true => 1.0,
            false => paths.next(switch, self.leaf).iter().map(|link| self.count(self.end(*link))).sum(),
        };
        self.count[switch] = Some(own);
        self.order.push(switch);
        own
    }

    fn end(&self, link: u32) -> usize {
        match self.network.links[link as usize].to {
            Node::Switch(switch) => switch,
            Node::Host(_) => unreachable!("routes between switches end at switches"),
        }
    }
}

/// Whether all flows have one size and start, and every sender sends and receives one.
fn permutation(flows: &[Flow]) -> bool {
    let sorted = |end: fn(&Flow) -> usize| {
        let mut ends: Vec<usize> = flows.iter().map(end).collect();
        ends.sort_unstable();
        ends
    };
    let (from, to) = (sorted(|flow| flow.src), sorted(|flow| flow.dst));
    let alike = flows.windows(2).all(|pair| pair[0].bytes == pair[1].bytes && pair[0].start_ps == pair[1].start_ps);
    alike && from == to && from.windows(2).all(|pair| pair[0] != pair[1])
}

/// Terms of the least completion times.
struct Times<'a> {
    scenario: &'a Scenario,
    flows: &'a [Flow],
    /// Time of a full packet at the rate of a flow.
    packet_ps: f64,
    /// Times of a full packet and of an ACK on a host's link.
    data_ps: f64,
    ack_ps: f64,
    /// Number of links on the longest path, and the sum of their latencies.
    hops: f64,
    propagation_ps: f64,
}

impl<'a> Times<'a> {
    fn new(scenario: &'a Scenario, flows: &'a [Flow], rate_bps: f64) -> Self {
        let network = &scenario.network;
        let paths = ShortestPaths::new(network, |_| true);
        let way = |flow: &Flow| {
            let links: Vec<_> = spray_fabric::hops(network, &paths, flow.src, flow.dst).collect();
            let latency: u64 = links.iter().map(|link| network.links[*link].latency_ps).sum();
            (links.len(), latency)
        };
        let (hops, propagation_ps) = flows.iter().map(way).max().unwrap_or((0, 0));
        let link_bps = flows.iter().map(|flow| network.links[network.uplink(flow.src)].rate_bps).max().unwrap_or(1);
        let ps = |bytes: u32, bps: f64| f64::from(bytes) * 8e12 / bps.max(1.0);
        Self {
            scenario,
            flows,
            packet_ps: ps(scenario.packet_bytes(), rate_bps),
            data_ps: ps(scenario.packet_bytes(), link_bps as f64),
            ack_ps: ps(scenario.ack_bytes(), link_bps as f64),
            hops: hops as f64,
            propagation_ps: propagation_ps as f64,
        }
    }

    fn packets(&self) -> u64 {
        largest_bytes(self.flows).div_ceil(u64::from(self.scenario.transport.payload_bytes)).max(1)
    }

    /// Returns the time of the last ACK of a permutation, by the three modes of OFAN appendix B.
    ///
    /// The last equation is printed with the time of data packets; the paper's example has ACKs'.
    fn permutation_ps(&self) -> u64 {
        let (packets, later_hops) = (self.packets(), self.hops - 1.0);
        let alone = ((self.propagation_ps + later_hops * self.data_ps) / self.packet_ps).ceil() as u64 + 1;
        let alone = alone.min(packets);
        let first = self.propagation_ps + self.hops * self.data_ps + (alone - 1) as f64 * self.packet_ps + self.ack_ps;
        let both = self.packet_ps.max(self.data_ps + self.ack_ps);
        let interleaved = |packet: u64| first + (packet - 1) as f64 * both;
        let last = packets - alone + 1;
        let mut acks: Vec<f64> = (1..=last).map(interleaved).collect();
        for packet in last + 1..=packets {
            let sent = interleaved(last) + (packet - last) as f64 * self.ack_ps;
            let arrived = match packet.checked_sub(alone) {
                Some(before) if before < acks.len() as u64 => acks[before as usize],
                _ => 0.0,
            };
            acks.push(sent.max(arrived + later_hops * self.ack_ps + self.propagation_ps));
        }
        acks.last().copied().unwrap_or(0.0) as u64
    }

    fn transmission_ps(&self) -> u64 {
        let there = self.propagation_ps + self.packets() as f64 * self.packet_ps + (self.hops - 1.0) * self.data_ps;
        (there + self.propagation_ps + self.hops * self.ack_ps) as u64
    }
}

#[cfg(test)]
mod tests;
