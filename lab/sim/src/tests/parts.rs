//! Runs in parts are the same on any number of threads, and nearly the same as in one part.

use super::*;
use spray_core::cc::CcKind;
use spray_fabric::{FatTree, Scheme, Switching};

/// Each host sends to the one half the fabric further on.
fn across(network: &Network, bytes: u64) -> Vec<FlowSpec> {
    let hosts = network.hosts.len();
    let flow = |src| FlowSpec { path_seed: Some(src as u64), ..flow(src, (src + hosts / 2 + 1) % hosts, bytes) };
    (0..hosts).map(flow).collect()
}

/// Returns the outcome on one thread, which equals that on others.
#[track_caller]
fn on_any_threads(spec: &SimSpec<'_>) -> SimOutcome {
    let alone = simulate(spec, 1).unwrap();
    for threads in [2, 3, 7] {
        assert!(simulate(spec, threads).unwrap() == alone, "different figures on {threads} threads");
    }
    alone
}

fn leaf_event(network: &Network, name: &str, from_us: u64, action: LinkAction) -> LinkEvent {
    let link = network.links.iter().position(|link| link.name == name).unwrap();
    LinkEvent { name: name.into(), links: vec![link], at_ps: from_us * US, until_ps: Some((from_us + 15) * US), action }
}

#[test]
fn threads_do_not_change_results_with_any_link_event() {
    let network = leaf_spine(16, 8, 8);
    let flows = across(&network, 300_000);
    let events = [
        leaf_event(&network, "leaf0->spine1", 3, LinkAction::SilentDrop),
        leaf_event(&network, "leaf3->spine2", 5, LinkAction::Rate { ppm: 300_000 }),
        leaf_event(&network, "spine4->leaf9", 1, LinkAction::Loss { ppm: 50_000 }),
        leaf_event(&network, "leaf7->spine0", 4, LinkAction::Down { convergence_ps: 5 * US }),
        leaf_event(&network, "h5->leaf0", 2, LinkAction::Rate { ppm: 500_000 }),
    ];
    for balancer in [BalancerKind::Ops, BalancerKind::Reps, BalancerKind::HostDr, BalancerKind::Flowcut] {
        let config = |_| flow_config(balancer);
        let spec = SimSpec { events: &events, sample_ps: 3 * US, ..spec(&network, &flows, &config) };
        let outcome = on_any_threads(&spec);
        assert!(outcome.flows.iter().all(|flow| flow.acked_ps.is_some()), "{balancer}");
        assert!(outcome.frames_dropped > 0 && outcome.delivered.last().unwrap().1 > 0, "{balancer}");
    }
}

#[test]
fn threads_do_not_change_results_with_any_stateless_scheme() {
    for scheme in Scheme::ALL.into_iter().filter(|scheme| scheme.is_stateless()) {
        let mut network = FatTree::uniform([4, 4, 2, 4, 8], BPS, US).network();
        network.switching = Switching::all(scheme);
        let flows = across(&network, 150_000);
        let config = |_| flow_config(BalancerKind::Ecmp);
        let outcome = on_any_threads(&spec(&network, &flows, &config));
        assert!(outcome.flows.iter().all(|flow| flow.acked_ps.is_some()), "{scheme}");
    }
}

#[test]
fn threads_do_not_change_results_with_credit_and_marks_at_departure() {
    let network = leaf_spine(16, 4, 8);
    // Half of all hosts send to one.
    let flows: Vec<_> = (64..128).map(|src| flow(src, 3, 100_000)).chain(across(&network, 200_000)).collect();
    let config = |_| {
        let mut config = flow_config(BalancerKind::Reps);
        config.cc = CcKind::Eqds.into();
        config
    };
    let queue = |bps| Thresholds { mark_departing: true, shared_bytes: 2_000_000, ..queue(bps) };
    let outcome = on_any_threads(&SimSpec { queue: &queue, ..spec(&network, &flows, &config) });
    assert!(outcome.flows.iter().all(|flow| flow.acked_ps.is_some()));
    assert!(outcome.ports.iter().any(|port| port.counters.marks > 0));
}

/// A trigger without signals forces a single part. Differences are then the order of simultaneous
/// events, the numbers of frames, and when a receiver is notified of the end.
#[test]
fn several_parts_give_the_figures_of_one_part() {
    let network = leaf_spine(16, 8, 8);
    let events = [leaf_event(&network, "leaf3->spine2", 0, LinkAction::Rate { ppm: 500_000 })];
    let flows = across(&network, 1 << 20);
    for (balancer, departing) in [(BalancerKind::Ops, false), (BalancerKind::Reps, false), (BalancerKind::Reps, true)] {
        let config = |_| flow_config(balancer);
        let queue = |bps| Thresholds { mark_departing: departing, ..queue(bps) };
        let mean_us = |triggers: &[Trigger]| {
            let spec = SimSpec { events: &events, triggers, queue: &queue, ..spec(&network, &flows, &config) };
            let ends: Vec<f64> = (1..=4)
                .flat_map(|seed| simulate(&SimSpec { seed, ..spec }, 2).unwrap().flows)
                .map(|flow| flow.received_ps.unwrap() as f64)
                .collect();
            ends.iter().sum::<f64>() / ends.len() as f64 / 1e6
        };
        let (parts_us, one_us) = (mean_us(&[]), mean_us(&[Trigger::new(TriggerKind::Oneshot)]));
        assert!((parts_us / one_us - 1.0).abs() < 0.01, "{balancer}: {parts_us} us in parts, {one_us} us in one");
    }
}
