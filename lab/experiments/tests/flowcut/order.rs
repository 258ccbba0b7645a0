//! Random runs of Flowcut, at hosts or in switches: a seed draws fabric, load, failures, congestion
//! control and settings. In no run may a packet arrive after one sent later, or a flow drain
//! forever.

use std::collections::HashSet;

use rand_core::RngCore;
use spray_core::cc::CcKind;
use spray_core::path::{BalancerKind, FlowcutRule};
use spray_core::rng::{Rng, stream};
use spray_core::units::{ByteSize, Gbps, Micros, Ratio};

use spray_experiments::scenario::{QueueLength, Scenario};
use spray_experiments::sim::{FctEnd, Simulation, reference};
use spray_experiments::workload::{Flow, Pattern};
use spray_fabric::{
    Cables, Dragonfly, FatTree, LeafSpine, Link, LinkAction, LinkEvent, Network, PortCounters, Scheme, Switching,
};

/// The figures of one random run, or the sum of several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The number of runs.
    pub runs: u64,
    /// Data packets sent, without retransmissions.
    pub packets: u64,
    /// Retransmitted packets.
    pub retransmits: u64,
    /// Packets that arrived after one of their flow sent later.
    pub reordered: u64,
    /// Flows.
    pub flows: u64,
    /// Flows that completed.
    pub completed: u64,
    /// Flows that neither completed nor were given up; 0 in a correct run.
    pub stuck: u64,
    /// Flows that drained at least once.
    pub drained: u64,
    /// Frames that links or queues dropped.
    pub drops: u64,
    /// A human-readable description of the run.
    pub what: String,
}

impl Outcome {
    /// Adds another run's figures.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.packets += other.packets;
        self.retransmits += other.retransmits;
        self.reordered += other.reordered;
        self.flows += other.flows;
        self.completed += other.completed;
        self.stuck += other.stuck;
        self.drained += other.drained;
        self.drops += other.drops;
    }
}

/// The random choices of one run.
struct Draw(Rng);

impl Draw {
    fn below(&mut self, count: u64) -> u64 {
        self.0.next_u64() % count.max(1)
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    fn one<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Runs the random run of `seed`, of some tens of thousands of packets, with Flowcut in `switches`
/// or else at hosts.
///
/// # Errors
/// If the simulator rejects the run, which means that the draws of this module are invalid.
pub fn random_run(seed: u64, switches: Option<Scheme>) -> Result<Outcome, String> {
    let mut draw = Draw(stream(seed, 0x0f10));
    let (mut scenario, mut what) = scenario(&mut draw, switches);
    if let Some(scheme) = switches {
        let longest_ps = scenario.longest_ps(&scenario.paths());
        let resume_packets = draw.one(&[0, 0, 1, 8]);
        scenario.network.switching = Switching { longest_ps, resume_packets, ..Switching::all(scheme) };
        what = format!("{scheme}, resume at {resume_packets}; {what}");
    }
    let balancer = if switches.is_some() { BalancerKind::Ecmp } else { BalancerKind::Flowcut };
    let simulation = Simulation::new(&scenario);
    // The simulator asserts that every frame sent is delivered, dropped or in flight.
    let result = simulation.run(balancer, seed, &[]).map_err(|error| format!("seed {seed}: {error}"))?;
    let count = |of: &dyn Fn(&spray_experiments::results::FlowResult) -> bool| {
        result.flows.iter().filter(|flow| of(flow)).count()
    };
    let (flows, completed) = (result.flows.len() as u64, count(&|flow| flow.fct_us.is_some()) as u64);
    let given_up = result.events.iter().filter(|event| event.action == "given-up").count() as u64;
    Ok(Outcome {
        runs: 1,
        packets: result.counted().0.packets_sent - result.counted().0.retransmits,
        retransmits: result.counted().0.retransmits,
        reordered: result.counted().1.order.reordered,
        flows,
        completed,
        stuck: flows - completed - given_up,
        drained: count(&|flow| flow.sender.drained_ps > 0) as u64,
        drops: result.ports.iter().map(|port| drops(&port.counters)).sum(),
        what: format!("seed {seed}: {what}"),
    })
}

fn drops(port: &PortCounters) -> u64 {
    port.drops_queue + port.drops_link() + port.drops_random
}

fn scenario(draw: &mut Draw, switches: Option<Scheme>) -> (Scenario, String) {
    let (network, fabric) = network(draw);
    let flows = flows(draw, network.hosts.len());
    let mut scenario = reference("order", network, Pattern::Flows(flows));
    scenario.simulation.fct_end = FctEnd::Acked;
    let failures = failures(draw, &mut scenario, switches);
    let transport = transport(draw, &mut scenario);
    let queue = queue(draw, &mut scenario);
    // Longer than any flow lasts without progress before it is given up.
    scenario.time_limit_ps = Some(LIMIT_PS);
    let what = format!("{fabric}; {failures}; {transport}; {queue}; {:?}", scenario.transport.schemes.flowcut);
    (scenario, what)
}

/// Flows are given up after 20 ms without progress; one with occasional progress may take seconds.
const LIMIT_PS: u64 = 8_000_000_000_000;

fn network(draw: &mut Draw) -> (Network, String) {
    let (host_gbps, uplink_gbps) = (draw.one(&[100, 200, 400]), draw.one(&[100, 200, 400]));
    let host_latency_us = Some(Micros::from_ps(draw.between(100_000, 1_000_000)));
    let latency_ps = draw.between(100_000, 2_000_000);
    let cables = Cables {
        host_gbps: Gbps::new(host_gbps),
        latency_us: Micros::from_ps(latency_ps),
        host_latency_us,
        switch_latency_us: Micros::from_ps(draw.one(&[0, 300_000])),
    };
    let uplink_gbps = Some(Gbps::new(uplink_gbps));
    match draw.below(3) {
        0 => {
            let (leaves, spines) = (draw.between(2, 8) as usize, draw.between(2, 8) as usize);
            let (hosts_per_leaf, bundle) = (draw.between(2, 6) as usize, draw.between(1, 2) as usize);
            let of = LeafSpine { leaves, spines, hosts_per_leaf, bundle, uplink_gbps, cables };
            (of.network(), format!("{of:?}"))
        }
        1 => {
            let aggs_per_pod = draw.between(2, 4) as usize;
            let of = FatTree {
                pods: draw.between(2, 4) as usize,
                tors_per_pod: draw.between(2, 4) as usize,
                aggs_per_pod,
                cores: aggs_per_pod * draw.between(1, 3) as usize,
                hosts_per_tor: draw.between(1, 4) as usize,
                bundle: 1,
                uplink_gbps,
                core_gbps: None,
                cables,
            };
            (of.network(), format!("{of:?}"))
        }
        _ => {
            let groups = draw.between(2, 5) as usize;
            let of = Dragonfly {
                groups,
                routers_per_group: draw.between(2, 4) as usize,
                hosts_per_router: draw.between(1, 3) as usize,
                global_cables: (groups - 1) * draw.between(1, 2) as usize,
                local_gbps: uplink_gbps,
                global_gbps: uplink_gbps,
                global_latency_us: Some(Micros::from_ps(2 * latency_ps)),
                cables,
            };
            (of.network(), format!("{of:?}"))
        }
    }
}

/// Draws one to three flows per host, from a packet to some MB, starting within 100 us, some at 0.
fn flows(draw: &mut Draw, hosts: usize) -> Vec<Flow> {
    let per_host = draw.between(1, 3);
    let most = draw.one(&[100_000, 1_000_000, 4_000_000, 16_000_000]);
    let incast = draw.chance(15).then(|| draw.below(hosts as u64) as usize);
    let count = (per_host * hosts as u64).min(BYTES / most).max(4);
    let flow = |number: u64| {
        let src = number as usize % hosts;
        let other = (src + draw.between(1, hosts as u64 - 1) as usize) % hosts;
        let dst = incast.filter(|dst| *dst != src).unwrap_or(other);
        let start_ps = if draw.chance(20) { 0 } else { draw.below(100_000_000) };
        Flow { flow: number as u32, src, dst, bytes: draw.between(1, most), start_ps, ..Flow::default() }
    };
    (0..count).map(flow).collect()
}

/// The maximum number of bytes of a run.
const BYTES: u64 = 400_000_000;

/// Draws failures of up to four links between switches. Two kinds are excluded because they reorder
/// packets on one path, with `ecmp` too. Failures that routing detects move an entropy value to
/// another path while packets are in flight. On a link that becomes faster again, queued frames
/// keep the times of the slow link, and later frames may overtake them. If all switches with a
/// choice keep flowcuts, routing may detect failures.
fn failures(draw: &mut Draw, scenario: &mut Scenario, switches: Option<Scheme>) -> String {
    let network = &scenario.network;
    let ends = |link: &Link| (link.from, link.to);
    let single = network.links.iter().map(ends).collect::<HashSet<_>>().len() == network.links.len();
    let leaves_alone = single && !network.groups.exist() && network.tiers().tier.iter().max() == Some(&1);
    let learns = switches == Some(Scheme::FlowcutSwitch) || (switches.is_some() && leaves_alone);
    let links = &scenario.network.links;
    let names: Vec<String> = links.iter().filter(|link| link.is_uplink()).map(|link| link.name.clone()).collect();
    let mut events = Vec::new();
    for _ in 0..draw.one(&[0, 1, 1, 2, 4]) {
        let name = names[draw.below(names.len() as u64) as usize].clone();
        // One direction, or both: then ACKs are lost too.
        let pick = if draw.chance(50) { name.clone() } else { name.replacen("->", "-", 1) };
        let Some(links) = scenario.network.links_named(&pick) else { continue };
        let action = match draw.below(6) {
            0 | 1 => LinkAction::SilentDrop,
            2 => LinkAction::Rate { ppm: draw.one(&[20_000, 100_000, 250_000, 500_000]) },
            3 => LinkAction::Loss { ppm: draw.one(&[1_000, 10_000, 100_000]) },
            4 => LinkAction::Flap {
                period_ps: draw.between(10, 200) * 1_000_000,
                down_ps: draw.between(1, 10) * 1_000_000,
            },
            _ if learns => LinkAction::Down { convergence_ps: draw.between(0, 100) * 1_000_000 },
            // The link is down, and routing does not detect it.
            _ => LinkAction::Down { convergence_ps: 2 * LIMIT_PS },
        };
        let at_ps = draw.one(&[0, 20_000_000, 80_000_000]);
        let until_ps = draw.chance(60).then(|| at_ps + draw.between(10, 2_000) * 1_000_000);
        let until_ps = until_ps.filter(|_| !matches!(action, LinkAction::Rate { .. }));
        // All events of a link together must leave it at least a thousandth of its rate, so only
        // one may slow it.
        let slows = |event: &LinkEvent| matches!(event.action, LinkAction::Rate { .. });
        let event = LinkEvent { name: pick, links, at_ps, until_ps, action };
        let shares = |other: &LinkEvent| other.links.iter().any(|link| event.links.contains(link));
        if !slows(&event) || !events.iter().any(|other| slows(other) && shares(other)) {
            events.push(event);
        }
    }
    let text = events.iter().map(|event| format!("{} {:?}", event.name, event.action)).collect::<Vec<_>>().join(", ");
    scenario.add_link_events(events);
    text
}

fn transport(draw: &mut Draw, scenario: &mut Scenario) -> String {
    let transport = &mut scenario.transport;
    transport.cc = draw.one(&CcKind::ALL);
    // A sender requests credit forever: a flow without another path would never be given up.
    let asks = matches!(transport.cc, CcKind::Eqds | CcKind::NsccEqds);
    transport.evs = Some(if asks { 65_535 } else { draw.one(&[1, 2, 16, 256, 65_535]) });
    transport.ack_every = draw.one(&[1, 1, 1, 2, 4, 16]);
    transport.ack_marked = draw.chance(30);
    transport.cc_schemes.dctcp.marked_by_trigger = transport.ack_marked;
    transport.sack_gap_packets = draw.one(&[0, 1, 3, 8, 32]);
    transport.rto_min_us = Some(Micros::new(draw.one(&[1, 15, 50, 200])));
    // The minimum values cause timeouts without a loss, but not permanently.
    transport.rto_max_us = Some(Micros::new(draw.one(&[200, 800, 3_200])));
    let packet = u64::from(transport.payload_bytes) + 64;
    transport.cc_schemes.fixed_window.window_bytes = Some(ByteSize::new(packet * draw.one(&[1, 4, 32, 128, 512])));
    let flowcut = &mut transport.schemes.flowcut;
    flowcut.rule = [FlowcutRule::Paper, FlowcutRule::Simple][draw.below(2) as usize];
    flowcut.rtt_ratio = Ratio::permille(draw.between(1_000, 6_000));
    flowcut.weight = Ratio::permille(draw.between(10, 1_000));
    flowcut.trend = Ratio::permille(draw.one(&[0, 10, 50, 500]));
    flowcut.tail_bytes = Some(ByteSize::new(draw.one(&[0, 4_096, 100_000])));
    flowcut.drain_timeout_us = Some(Micros::new(draw.one(&[1, 20, 100, 1_000])));
    flowcut.credit_bytes = ByteSize::new(draw.one(&[0, 0, 10_000, 100_000]));
    flowcut.dead_timeouts = draw.one(&[1, 1, 2, 3]);
    format!(
        "{} evs {:?} ack {} gap {:?} rto {:?}..{:?}",
        transport.cc,
        transport.evs,
        transport.ack_every,
        transport.sack_gap_packets,
        transport.rto_min_us,
        transport.rto_max_us
    )
}

fn queue(draw: &mut Draw, scenario: &mut Scenario) -> String {
    let queue = &mut scenario.queue;
    queue.limit = QueueLength::Packets(draw.one(&[8.0, 30.0, 100.0, 1_000.0, 20_000.0]));
    queue.trimming = draw.chance(50);
    if draw.chance(40) {
        queue.marking = false;
    }
    format!("{queue:?}")
}
