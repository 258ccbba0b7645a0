//! Queue statistics compared with frequent samples.

use super::*;
use crate::common::Common;
use crate::engine::Engine;

/// A link that slows down, recovers and drops while frames wait, sampled every 50 ns: the mean of
/// the samples equals that of the queue.
//= docs/specs/switch.md#SW-18 length of the queue over time
#[test]
fn the_mean_queue_equals_that_of_frequent_samples() {
    let network = leaf_spine(2, 2, 4);
    let links = network.links_named("leaf0->spine1").unwrap();
    let slow = |at_us: u64, ppm| LinkEvent {
        name: "leaf0->spine1".into(),
        links: links.clone(),
        at_ps: at_us * US,
        until_ps: Some((at_us + 13) * US),
        action: LinkAction::Rate { ppm },
    };
    let flows: Vec<_> = (0..8).map(|src| flow(src, (src + 4) % 8, 1_000_000)).collect();
    let late = |flow: FlowSpec| FlowSpec { start: Start::At(7 * US), ..flow };
    let flows: Vec<_> = flows.into_iter().map(late).collect();
    let (config, events) = (|_| flow_config(BalancerKind::Ops), [slow(15, 300_000), slow(50, 150_000)]);
    let spec = SimSpec { events: &events, seed: 5, ..spec(&network, &flows, &config) };
    let (common, mut inspections) = (Common::new(&spec), Vec::new());
    let inspect = &mut |at_ps, waiting: &[u64]| inspections.push((at_ps, waiting.to_vec()));
    let outcome = Engine::new(&common, 1, &()).run_inspected(US / 20, inspect);
    assert!(outcome.end_ps > 70 * US, "both changes occur while frames are queued");
    for (port, link) in
        outcome.ports.iter().zip(spray_fabric::ports(&network)).take(outcome.ports.len() - network.hosts.len())
    {
        let seen = inspections.iter().filter(|(at_ps, _)| *at_ps >= 7 * US).map(|(_, waiting)| waiting[link]);
        let (count, sum) = (seen.clone().count() as f64, seen.clone().sum::<u64>() as f64);
        let (mean, exact) = (sum / count, port.queue_mean_bytes);
        assert!((mean - exact).abs() < 0.01 * exact + 15.0, "{}: {exact}, but {mean} from samples", port.name);
        let most = seen.max().unwrap();
        assert!(most <= port.counters.queue_max && port.counters.queue_max < most + 5 * 4_150, "{}", port.name);
    }
}

/// A single sender: its frames never queue, and are at each port for their serialisation time.
#[test]
fn a_single_flow_queues_only_the_frame_in_transmission() {
    let network = leaf_spine(2, 1, 1);
    let packets = 200;
    let outcome = run(&network, &[], &[flow(0, 1, packets * PAYLOAD)], BalancerKind::Ecmp, 1);
    let port = outcome.ports.iter().find(|port| port.name == "leaf0->spine0").unwrap();
    assert_eq!((port.counters.queue_max, port.layer.as_str()), (4_150, "leaf->spine"));
    let sent = &port.counters;
    let probes = sent.frames - packets;
    let area = packets * PACKET_PS * 4_150 + probes * CONTROL_PS * 64;
    assert_eq!(port.queue_mean_bytes, area as f64 / 2.0 / outcome.end_ps as f64);
}

/// All hosts of other leaves send to host 0.
fn incast(network: &Network, queue: &(dyn Fn(u64) -> Thresholds + Sync), packets: u64) -> SimOutcome {
    let others = (0..network.hosts.len()).filter(|src| network.leaf_of(*src) != network.leaf_of(0));
    let flows: Vec<_> = others.map(|src| flow(src, 0, packets * PAYLOAD)).collect();
    simulate(&SimSpec { queue, seed: 3, ..spec(network, &flows, &|_| flow_config(BalancerKind::Ops)) }, 1).unwrap()
}

/// Eight packets arrive at once, with a step at three packets. On arrival, those that find three
/// are marked, which are the last; on departure, those that leave three behind, which are the
/// first: senders are notified a queue's length earlier.
//= docs/specs/switch.md#SW-19 marking as a frame leaves
#[test]
fn the_first_of_a_burst_is_marked_as_it_leaves() {
    let marked = |mark_departing| {
        let step =
            |bps| Thresholds { mark_min_bytes: 3 * 4_150 - 1, mark_max_bytes: 3 * 4_150, mark_departing, ..queue(bps) };
        let outcome = incast(&leaf_spine(9, 1, 1), &step, 1);
        let mut flows: Vec<_> =
            outcome.flows.iter().map(|flow| (flow.received_ps.unwrap(), flow.receiver.marked > 0)).collect();
        flows.sort_unstable();
        flows.into_iter().map(|(_, marked)| u8::from(marked)).collect::<Vec<_>>()
    };
    let (arriving, leaving) = (marked(false), marked(true));
    assert_eq!(arriving.iter().chain(&leaving).filter(|marked| **marked == 0).count(), 6, "{arriving:?} {leaving:?}");
    assert_eq!([&arriving[..3], &leaving[5..]].concat(), [0; 6], "{arriving:?} {leaving:?}");
}

/// An uplink at half rate fills its whole queue, or half of it if queues of slow links are reduced.
//= docs/specs/switch.md#SW-23 queues of slow links
#[test]
fn a_link_that_starts_slow_may_have_a_smaller_queue() {
    let network = leaf_spine(2, 1, 4);
    let flows: Vec<_> = (0..4).map(|src| flow(src, src + 4, 400 * PAYLOAD)).collect();
    let most = |short_slow_queues, at_ps| {
        let slow = LinkEvent {
            name: "leaf0->spine0".into(),
            links: network.links_named("leaf0->spine0").unwrap(),
            at_ps,
            until_ps: None,
            action: LinkAction::Rate { ppm: 500_000 },
        };
        let config = |_| flow_config(BalancerKind::Ops);
        let spec = SimSpec { events: &[slow], short_slow_queues, ..spec(&network, &flows, &config) };
        let outcome = simulate(&spec, 1).unwrap();
        let port = outcome.ports.iter().find(|port| port.name == "leaf0->spine0").unwrap();
        assert!(port.counters.trims > 0, "full");
        port.counters.queue_max
    };
    let (whole, half) = (most(false, 0), most(true, 0));
    let limit = u64::from(queue(400_000_000_000).limit_bytes);
    assert!(whole > limit - 4_150, "{whole}");
    assert!(half < whole * 5 / 8 && half > limit / 2 - 4_150, "{half} of {whole}");
    assert_eq!(most(true, 1), most(false, 1), "a link that slows down later keeps its queue");
}

/// An incast uses the free share of the shared memory, less for a smaller alpha.
//= docs/specs/switch.md#SW-20 shared buffer
#[test]
fn a_port_gets_its_share_of_the_memory() {
    let most = |alpha_milli: u32| {
        let shared = |bps| Thresholds {
            limit_bytes: 1 << 30,
            shared_bytes: 300_000,
            alpha_ppm: 1_000 * alpha_milli,
            ..queue(bps)
        };
        let outcome = incast(&leaf_spine(2, 4, 16), &shared, 200);
        assert!(outcome.flows.iter().all(|flow| flow.acked_ps.is_some()));
        let port = outcome.ports.iter().find(|port| port.name == "leaf0->h0").unwrap();
        assert!(port.counters.trims > 0);
        port.counters.queue_max
    };
    // Alone at its switch, a port may hold alpha / (1 + alpha) of the memory.
    let (half, most_of_it) = (most(1_000), most(8_000));
    assert!((120_000..=160_000).contains(&half) && (230_000..=280_000).contains(&most_of_it), "{half} {most_of_it}");
}

/// An incast is trimmed at its receiver's port, a slow uplink in the fabric: two DSCPs distinguish
/// them at both ends.
//= docs/specs/switch.md#SW-21 two DSCPs of trimmed frames
#[test]
fn hosts_can_distinguish_an_incast_from_a_congested_fabric() {
    let network = leaf_spine(2, 4, 4);
    let slow = LinkEvent {
        name: "leaf0-spine0".into(),
        links: network.links_named("leaf0->spine0").unwrap(),
        at_ps: 0,
        until_ps: None,
        action: LinkAction::Rate { ppm: 50_000 },
    };
    let incast: Vec<_> = (4..6).map(|src| flow(src, 0, 1_000_000)).collect();
    let across: Vec<_> = (0..4).map(|src| flow(src, src + 4, 1_000_000)).collect();
    let count = |flows: &[FlowSpec], events: &[LinkEvent], trim_tells_last| {
        let config = |_| flow_config(BalancerKind::Ops);
        let queue = |rate| Thresholds { trim: true, trim_tells_last, ..queue(rate) };
        let outcome = simulate(&SimSpec { events, queue: &queue, ..spec(&network, flows, &config) }, 1).unwrap();
        let sum = |of: fn(&FlowOutcome) -> u64| outcome.flows.iter().map(of).sum::<u64>();
        [sum(|flow| flow.receiver.trimmed), sum(|flow| flow.receiver.trimmed_last), sum(|flow| flow.sender.nacks_last)]
    };
    let [trimmed, last, reported] = count(&incast, &[], true);
    assert!(trimmed > 0 && last == trimmed && reported > 0 && reported <= last, "{trimmed}, {last}, {reported}");
    let [trimmed, last, reported] = count(&across, &[slow], true);
    assert!(trimmed > 0 && last == 0 && reported == 0, "{trimmed}, {last}, {reported}");
    let [trimmed, last, reported] = count(&incast, &[], false);
    assert!(trimmed > 0 && last == 0 && reported == 0, "{trimmed}, {last}, {reported}");
}
