//! Time series add up to the totals, and never exceed the rates of links.

use spray_fabric::{Bin, PortCounters};

use super::*;

/// Compares the time series of `outcome` with its totals and link rates; hosts receive frames of
/// 4,150 bytes.
fn check(network: &Network, outcome: &SimOutcome) {
    let received: u64 = outcome.flows.iter().map(|flow| flow.receiver.bytes).sum();
    let (end_ps, delivered) = *outcome.delivered.last().unwrap();
    assert_eq!((outcome.delivered[0], delivered), ((0, 0), received));
    assert!(end_ps >= outcome.end_ps, "it ends at {end_ps} of {}", outcome.end_ps);
    let hosts = network.hosts.len() as u64;
    for pair in outcome.delivered.windows(2) {
        let most = (pair[1].0 - pair[0].0) / 20 * hosts + hosts * 4_150;
        assert!(pair[1].1 - pair[0].1 <= most, "{pair:?}: at most {most}");
    }
    assert_eq!(outcome.samples.len(), outcome.ports.len() - network.hosts.len());
    for samples in &outcome.samples {
        let (port, mut sum) = (&outcome.ports[samples.port], samples.before);
        samples.bins.iter().for_each(|bin| sum.add(bin));
        let Bin { sent_bytes, queue_max, marks, trims, drops, .. } = sum;
        let all: PortCounters = port.counters;
        assert_eq!(
            (sent_bytes, queue_max, marks, trims, drops),
            (all.bytes, all.queue_max, all.marks, all.trims, all.drops()),
            "{}",
            port.name
        );
        let most = u128::from(samples.bin_ps) * u128::from(port.rate_bps) / 8_000_000_000_000 + 4_150;
        let busiest = samples.bins.iter().map(|bin| bin.sent_bytes).max().unwrap_or(0);
        assert!(u128::from(busiest) <= most, "{}: {busiest} of {most} bytes", port.name);
        assert!(samples.bins.len() as u64 * samples.bin_ps >= outcome.end_ps);
    }
}

//= docs/specs/switch.md#SW-24 in the bin in which its last bit leaves
#[test]
fn every_byte_is_in_its_bin_and_no_bin_exceeds_the_rate() {
    let network = leaf_spine(4, 4, 4);
    let dead = |link: &str| LinkEvent {
        name: link.into(),
        links: network.links_named(link).unwrap(),
        at_ps: 20 * US,
        until_ps: None,
        action: LinkAction::SilentDrop,
    };
    let across: Vec<_> = (0..16).map(|src| flow(src, (src + 4) % 16, 600_000)).collect();
    let incast: Vec<_> = (4..16).map(|src| flow(src, 0, 150_000)).collect();
    let events = [dead("leaf0->spine1")];
    for (flows, events) in [(&across, &events[..0]), (&across, &events[..]), (&incast, &events[..0])] {
        for balancer in [BalancerKind::Ops, BalancerKind::Reps] {
            for sample_ps in [US / 10, US, 16 * US] {
                let config = |_| flow_config(balancer);
                let spec = SimSpec { events, seed: 3, sample_ps, ..spec(&network, flows, &config) };
                check(&network, &simulate(&spec, 1).unwrap());
            }
        }
    }
}

/// Frames delayed by a pause are counted when they leave.
#[test]
fn a_lossless_network_carries_no_more_than_its_links() {
    let network = leaf_spine(4, 4, 4);
    let flows: Vec<_> = (4..16).map(|src| flow(src, 0, 150_000)).collect();
    let config = |_| flow_config(BalancerKind::Ops);
    let pfc = Some(Pfc { frame_bytes: 4_150, headroom_bytes: None });
    let queue = |bps| Thresholds { limit_bytes: 40_000, ..queue(bps) };
    let outcome =
        simulate(&SimSpec { pfc, queue: &queue, sample_ps: US, ..spec(&network, &flows, &config) }, 1).unwrap();
    assert!(outcome.ports.iter().any(|port| port.pauses > 0), "links must pause");
    check(&network, &outcome);
}

/// A mark on departure is counted in the bin of the departure.
#[test]
fn marks_on_departure_are_in_the_time_series() {
    let network = leaf_spine(4, 4, 4);
    let flows: Vec<_> = (4..16).map(|src| flow(src, 0, 150_000)).collect();
    let config = |_| flow_config(BalancerKind::Ops);
    let queue = |bps| Thresholds { mark_departing: true, ..queue(bps) };
    let outcome = simulate(&SimSpec { queue: &queue, sample_ps: US, ..spec(&network, &flows, &config) }, 1).unwrap();
    assert!(outcome.ports.iter().any(|port| port.counters.marks > 0));
    check(&network, &outcome);
}
