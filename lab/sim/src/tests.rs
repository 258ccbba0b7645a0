//! The simulator compared with closed formulas, and with itself at other thread counts and seeds.

use proptest::prelude::*;
use spray_core::flow::FlowConfig;
use spray_core::loss::RtoConfig;
use spray_core::path::{BalancerKind, Path};

use super::*;
use spray_fabric::Thresholds;
use spray_fabric::{FlowSpec, LeafSpine, LinkAction, LinkEvent, Network, Start, Trigger, TriggerKind};

mod calibration;
mod connections;
mod controls;
mod conweave;
mod eqds;
mod erasure;
mod flowcut;
mod ofan;
mod ordered_chaos;
mod parts;
mod pfc;
mod queues;
mod rdma;
mod reps_plus;
mod reunion;
mod ties;
mod time_series;

const BPS: u64 = 400_000_000_000;
const US: u64 = 1_000_000;
const PACKET_PS: u64 = 83_000;
const CONTROL_PS: u64 = 1_280;
const PAYLOAD: u64 = 4_086;

fn leaf_spine(leaves: usize, spines: usize, hosts_per_leaf: usize) -> Network {
    LeafSpine::uniform([leaves, spines, hosts_per_leaf], BPS, US).network()
}

fn queue(_: u64) -> Thresholds {
    Thresholds {
        limit_bytes: 415_000,
        mark_min_bytes: 83_000,
        mark_max_bytes: 332_000,
        control_limit_bytes: 415_000,
        trim: true,
        ..Thresholds::NONE
    }
}

fn flow_config(balancer: BalancerKind) -> FlowConfig {
    let base_rtt_ps = 8_337_000;
    let path = Path { trimming: true, bdp_packets: 100, ..Path::new(base_rtt_ps, BPS, 4_150) };
    FlowConfig {
        rto: RtoConfig { initial_ps: 41_500_000, min_ps: 41_500_000, max_ps: 664_000_000 },
        sack_gap_packets: None,
        max_data_bytes: 1 << 40,
        max_message_bytes: 1 << 40,
        ..FlowConfig::new(balancer, path, 64)
    }
}

fn flow(src: usize, dst: usize, bytes: u64) -> FlowSpec {
    FlowSpec {
        src,
        dst,
        bytes,
        connection: None,
        path_seed: None,
        start: Start::At(0),
        on_sent: None,
        on_received: None,
    }
}

/// A run without events and sampling, as a base.
fn spec<'a>(
    network: &'a Network,
    flows: &'a [FlowSpec],
    flow_config: &'a (dyn Fn(usize) -> FlowConfig + Sync),
) -> SimSpec<'a> {
    SimSpec {
        network,
        events: &[],
        queue: &queue,
        short_slow_queues: false,
        flows,
        triggers: &[],
        pfc: None,
        flow_config,
        ideal_code: false,
        v6: false,
        frames: FrameBytes::all(64),
        seed: 1,
        until_ps: 60_000 * US,
        sample_ps: 0,
    }
}

/// Runs `flows` on `network` to their end.
fn run(network: &Network, events: &[LinkEvent], flows: &[FlowSpec], balancer: BalancerKind, seed: u64) -> SimOutcome {
    simulate(&SimSpec { events, seed, ..spec(network, flows, &|_| flow_config(balancer)) }, 1).unwrap()
}

#[test]
fn a_single_flow_takes_the_time_of_its_links() {
    let network = leaf_spine(2, 2, 2);
    // The last packet is full, so that it takes as long as the others at every hop.
    for packets in [1, 2, 10, 140, 500] {
        for balancer in BalancerKind::ALL {
            let outcome = run(&network, &[], &[flow(0, 2, packets * PAYLOAD)], balancer, 1);
            let there_ps = packets * PACKET_PS + 3 * PACKET_PS + 4 * US;
            // Probes among the packets take their time at one link after another.
            let probes_ps = (outcome.flows[0].sender.probes_sent + outcome.flows[0].sender.trailers_sent) * CONTROL_PS;
            let late_ps = outcome.flows[0].received_ps.unwrap() - there_ps;
            assert!(late_ps <= probes_ps, "{packets} {balancer}: {late_ps}");
            let back_ps = outcome.flows[0].acked_ps.unwrap() - there_ps - 4 * (US + CONTROL_PS);
            assert!((late_ps..=probes_ps).contains(&back_ps), "{packets} {balancer}: {back_ps}");
        }
    }
}

#[test]
fn an_incast_drains_at_the_rate_of_its_last_link() {
    let network = leaf_spine(4, 4, 4);
    let packets = 400;
    let flows: Vec<_> = (4..16).map(|src| flow(src, 0, packets * PAYLOAD)).collect();
    let outcome = run(&network, &[], &flows, BalancerKind::Ops, 3);
    let last_ps = outcome.flows.iter().map(|flow| flow.received_ps.unwrap()).max().unwrap();
    let port = outcome.ports.iter().find(|port| port.name == "leaf0->h0").unwrap();
    let trimmed = port.counters.control_frames;
    assert!(trimmed > 0, "twelve initial windows do not fit a queue");
    // The first packet's latency, then the link until the last one, plus trimmed headers. The link
    // idles only while windows recover from the first burst, and while the flow with the most
    // losses ends alone: a few round trips each.
    let least_ps = 12 * packets * PACKET_PS + 3 * PACKET_PS + 4 * US;
    let recovery_ps = 8 * flow_config(BalancerKind::Ops).path.base_rtt_ps;
    assert!(last_ps >= least_ps, "never faster than the link");
    assert!(last_ps < least_ps + trimmed * CONTROL_PS + recovery_ps, "{last_ps} against {least_ps}");
}

#[test]
fn a_slow_link_delays_queued_and_new_frames() {
    let network = leaf_spine(2, 1, 2);
    let links = network.links_named("leaf0->spine0").unwrap();
    let half = |at_ps| LinkEvent {
        name: "leaf0->spine0".into(),
        links: links.clone(),
        at_ps,
        until_ps: None,
        action: LinkAction::Rate { ppm: 500_000 },
    };
    let packets = 140;
    let outcome = run(&network, &[half(0)], &[flow(0, 2, packets * PAYLOAD)], BalancerKind::Ecmp, 1);
    // One packet at the host's rate, then all of them at half the rate, then one at each of two
    // links.
    let slow_ps = PACKET_PS + packets * 2 * PACKET_PS + 2 * PACKET_PS + 4 * US;
    assert_eq!(outcome.flows[0].received_ps, Some(slow_ps));
}

#[test]
fn triggers_start_flows_when_others_end() {
    let network = leaf_spine(2, 2, 2);
    let mut flows = [flow(0, 2, PAYLOAD), flow(1, 3, PAYLOAD), flow(2, 0, PAYLOAD), flow(3, 1, PAYLOAD)];
    flows[0].on_sent = Some(0);
    flows[1].on_received = Some(0);
    flows[2].start = Start::OnTrigger(0);
    flows[3].start = Start::OnTrigger(0);
    let config = |_| flow_config(BalancerKind::Reps);
    let triggers = &[Trigger::new(TriggerKind::Barrier(2))];
    let outcome = simulate(&SimSpec { triggers, until_ps: 1_000 * US, ..spec(&network, &flows, &config) }, 1).unwrap();
    let later = outcome.flows[0].acked_ps.max(outcome.flows[1].received_ps);
    assert_eq!([outcome.flows[2].started_ps, outcome.flows[3].started_ps], [later; 2]);
    assert!(outcome.flows.iter().all(|flow| flow.acked_ps.is_some()));
}

#[test]
fn a_failure_without_alternative_ends_the_connection_and_frames_are_counted() {
    let network = leaf_spine(2, 1, 2);
    let links = network.links_named("leaf0->spine0").unwrap();
    let action = LinkAction::SilentDrop;
    let event = LinkEvent { name: "leaf0->spine0".into(), links, at_ps: 10 * US, until_ps: None, action };
    let outcome = run(&network, &[event], &[flow(0, 2, 1 << 20)], BalancerKind::Reps, 1);
    assert!(outcome.flows[0].given_up_ps.is_some() && outcome.flows[0].acked_ps.is_none());
    assert!(outcome.frames_dropped > 0);
}

#[test]
fn sampling_does_not_change_results() {
    let network = leaf_spine(2, 2, 4);
    let flows: Vec<_> = (0..8).map(|src| flow(src, (src + 4) % 8, 200_000)).collect();
    let plain = run(&network, &[], &flows, BalancerKind::Ops, 5);
    let config = |_| flow_config(BalancerKind::Ops);
    let sampled = simulate(&SimSpec { seed: 5, sample_ps: US, ..spec(&network, &flows, &config) }, 1).unwrap();
    assert_eq!((plain.end_ps, plain.packet_hops), (sampled.end_ps, sampled.packet_hops));
    assert_eq!(plain.flows, sampled.flows);
    assert!(plain.samples.is_empty() && !sampled.samples.is_empty());
    assert!(sampled.ports.iter().any(|port| port.counters.queue_max > 0));
    assert!(plain.delivered.is_empty() && sampled.delivered.is_sorted());
}

/// Every packet of the first connections is counted once, by how its entropy value was selected.
#[test]
fn traced_connections_have_all_of_their_packets() {
    use spray_core::event::Choice;
    use spray_fabric::{BINS, WATCHED};
    let network = leaf_spine(2, 2, 5);
    let flows: Vec<_> = (0..10).map(|src| flow(src, (src + 5) % 10, 1_600_000)).collect();
    let links = (0..network.links.len()).filter(|link| network.links[*link].name == "leaf0->spine0").collect();
    let action = LinkAction::SilentDrop;
    let event = LinkEvent { name: "leaf0->spine0".into(), links, at_ps: 20 * US, until_ps: None, action };
    let events = [event];
    for (kind, choices) in [
        (BalancerKind::Ops, vec![Choice::Chosen]),
        (BalancerKind::Reps, vec![Choice::Explored, Choice::Recycled, Choice::Frozen]),
        (BalancerKind::RepsPlus, vec![Choice::Explored, Choice::Recycled, Choice::Frozen]),
    ] {
        let config = |_| flow_config(kind);
        let outcome =
            simulate(&SimSpec { seed: 3, sample_ps: US, events: &events, ..spec(&network, &flows, &config) }, 1)
                .unwrap();
        let firsts: Vec<u32> = outcome.ev_lives.iter().map(|(flow, _)| *flow).collect();
        assert_eq!(firsts, (0..WATCHED as u32).collect::<Vec<_>>());
        let mut all = [0u64; 4];
        for (flow, life) in &outcome.ev_lives {
            let mut sums = [0u64; 4];
            let counts = (0..BINS).flat_map(|bin| life.bin(bin));
            counts.for_each(|counts| sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += u64::from(*count)));
            assert_eq!(
                sums.iter().sum::<u64>(),
                outcome.flows[*flow as usize].sender.packets_sent,
                "{kind}, flow {flow}"
            );
            all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
        }
        let found: Vec<Choice> = Choice::ALL.into_iter().filter(|choice| all[*choice as usize] > 0).collect();
        assert_eq!(found, choices, "{kind}");
    }
    let config = |_| flow_config(BalancerKind::Reps);
    assert!(simulate(&spec(&network, &flows, &config), 1).unwrap().ev_lives.is_empty(), "not recorded");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every run asserts conservation. Regardless of link failures, completed flows are complete,
    /// and runs are reproducible.
    #[test]
    fn runs_are_reproducible_and_never_exceed_their_links(
        seed in 0u64..1000,
        kind in 0usize..3,
        hosts in 1usize..4,
        packets in 1u64..80,
        events in prop::collection::vec((0usize..8, 0u64..60, 0usize..4), 0..4),
    ) {
        let network = leaf_spine(2, 2, hosts);
        let all = 2 * hosts;
        let flows: Vec<_> = (0..all).map(|src| flow(src, (src + hosts) % all, packets * PAYLOAD)).collect();
        let events: Vec<_> = events.into_iter().map(|(link, at, action)| {
            let links: Vec<_> = (0..network.links.len()).filter(|link| !network.links[*link].name.contains('h')).collect();
            let action = [
                LinkAction::SilentDrop,
                LinkAction::Rate { ppm: 300_000 },
                LinkAction::Loss { ppm: 50_000 },
                LinkAction::Down { convergence_ps: 5 * US },
            ][action];
            let links = vec![links[link % links.len()]];
            LinkEvent { name: String::new(), links, at_ps: at * US, until_ps: Some((at + 30) * US), action }
        }).collect();
        let balancer = BalancerKind::ALL[kind];
        let outcome = run(&network, &events, &flows, balancer, seed);
        prop_assert_eq!(&outcome, &run(&network, &events, &flows, balancer, seed));
        let least_ps = packets * PACKET_PS + 3 * PACKET_PS + 4 * US;
        for flow in &outcome.flows {
            prop_assert!(flow.received_ps.is_none_or(|at_ps| at_ps >= least_ps));
            prop_assert!(flow.acked_ps.is_some() || flow.given_up_ps.is_some(), "the links come back");
        }
        // The other half of work conservation: no port carries more than its rate over the run.
        for port in &outcome.ports {
            let carried_ps = port.counters.bytes * 20;
            prop_assert!(carried_ps <= outcome.end_ps + PACKET_PS * 200, "{}", port.name);
        }
    }
}
