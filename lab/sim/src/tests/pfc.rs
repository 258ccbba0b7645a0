//! Lossless networks: compared with a literal model, and checked for invariants.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use spray_core::cc::CcKind;
use spray_core::link::serialisation_ceil_ps;

use super::*;

const FRAME: u64 = 4_150;

/// Sends at line rate and never retransmits.
fn at_line_rate(balancer: BalancerKind) -> FlowConfig {
    let mut config = flow_config(balancer);
    config.cc = CcKind::FixedWindow.into();
    (config.path.initial_window_bytes, config.path.max_window_bytes) = (1 << 40, 1 << 40);
    config.rto = RtoConfig { initial_ps: 1 << 50, min_ps: 1 << 50, max_ps: 1 << 50 };
    FlowConfig { window_packets: 1 << 14, ..config }
}

fn lossless(
    network: &Network,
    queue: &(dyn Fn(u64) -> Thresholds + Sync),
    headroom_bytes: Option<u64>,
    flows: &[FlowSpec],
    until_us: u64,
) -> SimOutcome {
    let pfc = Some(Pfc { frame_bytes: FRAME as u32, headroom_bytes });
    let config = |_| at_line_rate(BalancerKind::Ecmp);
    simulate(&SimSpec { queue, pfc, until_ps: until_us * US, ..spec(network, flows, &config) }, 1).unwrap()
}

fn limit(packets: u64) -> impl Fn(u64) -> Thresholds {
    move |_| Thresholds { limit_bytes: (packets * FRAME) as u32, control_limit_bytes: 1 << 20, ..Thresholds::NONE }
}

/// A literal model of flows over sequences of ports, packet by packet.
#[derive(Default)]
struct Literal {
    ports: Vec<Port>,
    /// The ports of each flow.
    paths: Vec<Vec<usize>>,
    arrived_ps: Vec<u64>,
    /// Sorted by time, then kind, then age.
    events: BinaryHeap<Reverse<(u64, u8, u64, What)>>,
    age: u64,
    limit: u64,
    /// Whether two frames reached a switch at the same time, so that the order is ambiguous.
    tie: bool,
    last_ps: u64,
}

/// A port, and the data from it that is stored at its far end.
#[derive(Clone, Default)]
struct Port {
    rate_bps: u64,
    /// (flow, index of the port in its path).
    queue: VecDeque<(usize, usize)>,
    sending: bool,
    paused: bool,
    held: u64,
    full: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Arrives { flow: usize, hop: usize },
    Sent { port: usize },
    Pauses { port: usize, on: bool },
}

impl Literal {
    fn at(&mut self, at_ps: u64, what: What) {
        self.age += 1;
        let turn = match what {
            What::Pauses { .. } => 0,
            What::Sent { .. } => 1,
            What::Arrives { .. } => 2,
        };
        self.events.push(Reverse((at_ps, turn, self.age, what)));
    }

    /// Returns the arrival of the last frame of each flow; `None` if ambiguous.
    fn run(mut self) -> Option<Vec<u64>> {
        while let Some(Reverse((now_ps, _, _, what))) = self.events.pop() {
            match what {
                What::Arrives { flow, hop } => self.on_arrival(now_ps, flow, hop),
                What::Sent { port } => self.sent(now_ps, port),
                What::Pauses { port, on } => {
                    self.ports[port].paused = on;
                    self.send(now_ps, port);
                }
            }
        }
        (!self.tie).then_some(self.arrived_ps)
    }

    /// Latency of a pause of 64 bytes to a link's sender.
    fn back_ps(&self, port: usize) -> u64 {
        US + serialisation_ceil_ps(64, self.ports[port].rate_bps)
    }

    fn on_arrival(&mut self, now_ps: u64, flow: usize, hop: usize) {
        let Some(port) = self.paths[flow].get(hop).copied() else {
            self.arrived_ps[flow] = now_ps;
            return;
        };
        if hop > 0 {
            let from = self.paths[flow][hop - 1];
            if hop == 1 {
                self.tie |= std::mem::replace(&mut self.last_ps, now_ps) == now_ps;
            }
            let back_ps = self.back_ps(from);
            let link = &mut self.ports[from];
            link.held += FRAME;
            if link.held > self.limit && !std::mem::replace(&mut link.full, true) {
                self.at(now_ps + back_ps, What::Pauses { port: from, on: true });
            }
        }
        self.ports[port].queue.push_back((flow, hop));
        self.send(now_ps, port);
    }

    fn send(&mut self, now_ps: u64, port: usize) {
        let entry = &mut self.ports[port];
        if !entry.sending && !entry.paused && !entry.queue.is_empty() {
            entry.sending = true;
            let sending_ps = serialisation_ceil_ps(FRAME, entry.rate_bps);
            self.at(now_ps + sending_ps, What::Sent { port });
        }
    }

    fn sent(&mut self, now_ps: u64, port: usize) {
        self.ports[port].sending = false;
        let (flow, hop) = self.ports[port].queue.pop_front().unwrap();
        if hop > 0 {
            let from = self.paths[flow][hop - 1];
            let back_ps = self.back_ps(from);
            let link = &mut self.ports[from];
            link.held -= FRAME;
            if link.full && link.held + 2 * FRAME <= self.limit {
                link.full = false;
                self.at(now_ps + back_ps, What::Pauses { port: from, on: false });
            }
        }
        self.at(now_ps + US, What::Arrives { flow, hop: hop + 1 });
        self.send(now_ps, port);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    //= docs/specs/pfc.md#PFC-2 memory
    //= docs/specs/pfc.md#PFC-3 pause
    //= docs/specs/pfc.md#PFC-4 resume
    //= docs/specs/pfc.md#PFC-5 effect of a pause
    #[test]
    fn every_frame_arrives_as_in_a_literal_model(
        senders in prop::collection::vec((0usize..3, 1u64..400, 0u64..30_000_000), 2..9),
        limit_packets in 3u64..60,
    ) {
        let count = senders.len().max(3);
        let mut network = leaf_spine(2, 1, count);
        // Different link rates: frames rarely arrive at the same moment.
        for src in 0..count {
            let uplink = network.uplink(src);
            network.links[uplink].rate_bps -= src as u64 * 13_000_000_000;
        }
        let flows: Vec<_> = senders.iter().enumerate().map(|(src, (dst, packets, late))| FlowSpec {
            start: Start::At(*late),
            ..flow(src, count + dst, packets * PAYLOAD)
        }).collect();
        let outcome = lossless(&network, &limit(limit_packets), None, &flows, 1 << 30);
        // Uplinks, the two cables between switches, and the three receivers' links.
        let mut literal = Literal {
            ports: vec![Port { rate_bps: BPS, ..Port::default() }; count + 5],
            arrived_ps: vec![0; flows.len()],
            limit: limit_packets * FRAME,
            ..Literal::default()
        };
        for src in 0..count {
            literal.ports[src].rate_bps = network.links[network.uplink(src)].rate_bps;
        }
        for (src, (dst, packets, late)) in senders.iter().enumerate() {
            literal.paths.push(vec![src, count, count + 1, count + 2 + dst]);
            (0..*packets).for_each(|_| literal.at(*late, What::Arrives { flow: src, hop: 0 }));
        }
        let arrived_ps: Vec<_> = outcome.flows.iter().map(|flow| flow.received_ps.unwrap()).collect();
        let expected_ps = literal.run();
        prop_assume!(expected_ps.is_some());
        prop_assert_eq!(arrived_ps, expected_ps.unwrap());
        prop_assert_eq!(outcome.frames_dropped, 0);
        prop_assert_eq!(outcome.deadlock, None);
    }
}

/// An incast of any size loses nothing, pauses all links towards the receiver, and never idles the
/// last link.
//= docs/specs/pfc.md#PFC-1 data is lossless
//= docs/specs/pfc.md#PFC-6 headroom
#[test]
fn headroom_covers_the_frames_until_a_pause_takes_effect() {
    let network = leaf_spine(4, 4, 8);
    let flows: Vec<_> = (8..32).map(|src| flow(src, 0, 300 * PAYLOAD)).collect();
    let outcome = lossless(&network, &limit(20), None, &flows, 60_000);
    assert_eq!(outcome.frames_dropped, 0);
    let last_ps = outcome.flows.iter().map(|flow| flow.received_ps.unwrap()).max().unwrap();
    assert!(last_ps < 24 * 300 * PACKET_PS + 3 * PACKET_PS + 4 * US + US, "{last_ps}");
    assert!(outcome.flows.iter().all(|flow| flow.sender.retransmits == 0 && flow.receiver.order.reordered == 0));
    let pauses = |port: &PortOutcome| port.pauses > 0 && port.paused_ps > 10 * US;
    let paused: Vec<_> = outcome.ports.iter().filter(|port| pauses(port)).map(|port| port.name.as_str()).collect();
    assert!((8..32).all(|host| paused.iter().any(|name| name.starts_with(&format!("h{host}->")))), "{paused:?}");
    // Two packets, and what two microseconds carry, less a frame: some sender needs all of it.
    let needed = 2 * FRAME + (2 * US + CONTROL_PS) / (PACKET_PS / FRAME);
    let less = lossless(&network, &limit(20), Some(needed - 2 * FRAME), &flows, 60_000);
    assert!(less.ports.iter().map(|port| port.counters.drops_queue).sum::<u64>() > 0);
}

/// Head-of-line blocking: a flow to an idle host waits behind those to a busy host.
#[test]
fn a_pause_affects_unrelated_flows() {
    let network = leaf_spine(2, 1, 8);
    let victim = flow(0, 15, 300 * PAYLOAD);
    let alone = lossless(&network, &limit(20), None, &[victim], 60_000);
    let incast = (1..8).map(|src| flow(src, 8, 300 * PAYLOAD));
    let flows: Vec<_> = std::iter::once(victim).chain(incast).collect();
    let among = lossless(&network, &limit(20), None, &flows, 60_000);
    let us = |outcome: &SimOutcome| outcome.flows[0].received_ps.unwrap() / US;
    // Eight flows share the uplink, and seven of them the last link.
    assert!(us(&among) > 6 * us(&alone), "{} and {}", us(&among), us(&alone));
}

/// Five switches in a cycle, with traffic over two hops each: links wait for each other. A tree
/// never deadlocks.
//= docs/specs/pfc.md#PFC-7 deadlock
#[test]
fn a_cycle_of_full_links_is_a_deadlock() {
    let mut network = Network::default();
    let switches: Vec<_> = (0..5).map(|index| network.add_switch(format!("s{index}"), 0)).collect();
    for (index, switch) in switches.iter().enumerate() {
        let host = network.add_host(format!("h{index}"));
        network.add_cable(host, *switch, BPS, US);
    }
    (0..5).for_each(|index| network.add_cable(switches[index], switches[(index + 1) % 5], BPS, US));
    let flows: Vec<_> = (0..5).map(|src| flow(src, (src + 2) % 5, 2_000 * PAYLOAD)).collect();
    let outcome = lossless(&network, &limit(20), None, &flows, 3_000);
    let deadlock = outcome.deadlock.expect("a deadlock");
    let circle: Vec<_> = (0..5).map(|index| format!("s{index}->s{}", (index + 1) % 5)).collect();
    assert_eq!(deadlock.links, circle);
    assert!(outcome.flows.iter().all(|flow| flow.received_ps.is_none()));
    let opposite: Vec<_> = (0..5).map(|src| flow(src, (src + 1) % 5, 2_000 * PAYLOAD)).collect();
    let outcome = lossless(&network, &limit(20), None, &opposite, 3_000);
    assert_eq!(outcome.deadlock, None);
    assert!(outcome.flows.iter().all(|flow| flow.received_ps.is_some()));
}

/// Links share a switch's memory: the less is free, the earlier they pause.
#[test]
fn links_pause_by_the_free_part_of_a_shared_memory() {
    let paused_ps = |alpha_milli: u32| {
        let shared = |bps| Thresholds {
            limit_bytes: 1 << 30,
            shared_bytes: 400_000,
            alpha_ppm: 1_000 * alpha_milli,
            ..limit(1)(bps)
        };
        let flows: Vec<_> = (1..8).map(|src| flow(src, 8, 300 * PAYLOAD)).collect();
        let outcome = lossless(&leaf_spine(2, 1, 8), &shared, None, &flows, 60_000);
        assert!(outcome.frames_dropped == 0 && outcome.flows.iter().all(|flow| flow.received_ps.is_some()));
        let first = |port: &&PortOutcome| port.name.starts_with("h") && port.pauses > 0;
        outcome.ports.iter().filter(first).map(|port| port.paused_ps).sum::<u64>()
    };
    assert!(paused_ps(100) > paused_ps(8_000));
}
