//! Ordered Chaos over real queues: distinguishing loss from reordering, and a failed cable. Clauses
//! are those of `docs/specs/ordered-chaos.md`.

use spray_core::path::{BalancerConfig, OrderedChaosConfig};

use super::*;

/// A hundred times the rest of the run.
const TIMEOUT_PS: u64 = 20_000 * US;

/// Every host of four leaves sends to one of the next leaf.
fn ring(packets: u64) -> Vec<FlowSpec> {
    (0..16).map(|src| flow(src, (src + 4) % 16, packets * PAYLOAD)).collect()
}

fn run_with(flows: &[FlowSpec], events: &[LinkEvent], trim: bool, seed: u64, config: &FlowConfig) -> SimOutcome {
    let network = leaf_spine(4, 4, 4);
    let queue = |rate_bps| Thresholds { trim, ..queue(rate_bps) };
    simulate(&SimSpec { events, queue: &queue, seed, ..spec(&network, flows, &|_| *config) }, 1).unwrap()
}

fn config(balancer: BalancerKind) -> FlowConfig {
    let rto = RtoConfig { initial_ps: TIMEOUT_PS, min_ps: TIMEOUT_PS, max_ps: TIMEOUT_PS };
    FlowConfig { rto, ..flow_config(balancer) }
}

fn on_uplinks(action: &LinkAction, names: &[&str]) -> Vec<LinkEvent> {
    let network = leaf_spine(4, 4, 4);
    let event = |name: &&str| LinkEvent {
        name: (*name).into(),
        links: network.links_named(name).unwrap(),
        at_ps: 0,
        until_ps: None,
        action: *action,
    };
    names.iter().map(event).collect()
}

fn sum(outcome: &SimOutcome, count: impl Fn(&FlowOutcome) -> u64) -> u64 {
    outcome.flows.iter().map(count).sum()
}

fn last_ps(outcome: &SimOutcome) -> u64 {
    outcome.flows.iter().map(|flow| flow.acked_ps.expect("every flow ends")).max().unwrap()
}

#[test]
fn only_packets_dropped_by_queues_are_retransmitted_without_timeouts() {
    //= docs/specs/ordered-chaos.md#ORC-24 missing packets are lost
    for (seed, trim) in [(1, false), (2, false), (3, true)] {
        let incast: Vec<_> = (4..16).map(|src| flow(src, 0, 300 * PAYLOAD)).collect();
        for (flows, queues_overflow) in [(ring(1_000), false), (incast, true)] {
            let outcome = run_with(&flows, &[], trim, seed, &config(BalancerKind::OrderedChaos));
            assert!(last_ps(&outcome) < TIMEOUT_PS / 10);
            let retransmits = sum(&outcome, |flow| flow.sender.retransmits);
            let duplicates = sum(&outcome, |flow| flow.receiver.duplicates);
            assert_eq!((sum(&outcome, |flow| flow.sender.timeouts), duplicates), (0, 0), "seed {seed}");
            assert!(retransmits > 100 || !queues_overflow, "otherwise the test is void");
            assert!(sum(&outcome, |flow| flow.receiver.order.reordered) > 40, "otherwise the test is void");
        }
    }
}

#[test]
fn one_per_cent_of_random_loss_costs_no_timeout() {
    //= docs/specs/ordered-chaos.md#ORC-22 missing packets
    //= docs/specs/ordered-chaos.md#ORC-24 missing packets are lost
    let network = leaf_spine(4, 4, 4);
    let links = (0..network.links.len()).filter(|link| !network.links[*link].name.contains('h')).collect();
    let action = LinkAction::Loss { ppm: 10_000 };
    let events = [LinkEvent { name: String::new(), links, at_ps: 0, until_ps: None, action }];
    for seed in 1..=3 {
        let outcome = run_with(&ring(1_000), &events, false, seed, &config(BalancerKind::OrderedChaos));
        let missing = sum(&outcome, |flow| flow.sender.missing);
        // Two cables on each way.
        assert!(missing > 16 * 1_000 / 100, "{missing}");
        assert_eq!(sum(&outcome, |flow| flow.sender.timeouts), 0);
        assert_eq!(sum(&outcome, |flow| flow.receiver.duplicates), 0, "retransmitted packets had not arrived");
        // A thousand packets alone take 83 us.
        assert!(last_ps(&outcome) < 250 * US, "{}", last_ps(&outcome));
        let reps = run_with(&ring(1_000), &events, false, seed, &config(BalancerKind::Reps));
        let ended = reps.flows.iter().filter(|flow| flow.acked_ps.is_some_and(|at_ps| at_ps < TIMEOUT_PS)).count();
        assert!(ended < 16, "which relies on its timer");
    }
}

#[test]
fn a_failed_cable_is_avoided_before_any_timeout() {
    //= docs/specs/ordered-chaos.md#ORC-8 silent subflows
    let events = on_uplinks(&LinkAction::SilentDrop, &["leaf0->spine0"]);
    let [mut with, mut without] = [(0, 0); 2];
    for seed in 1..=4 {
        for (silence, total) in [(true, &mut with), (false, &mut without)] {
            let mut config = flow_config(BalancerKind::OrderedChaos);
            let chaos = OrderedChaosConfig { silence, ..OrderedChaosConfig::default() };
            config.balancer = BalancerConfig::OrderedChaos(chaos);
            let outcome = run_with(&ring(2_000), &events, false, seed, &config);
            let dead = outcome.ports.iter().find(|port| port.name == "leaf0->spine0").unwrap();
            total.0 += dead.counters.drops_link();
            total.1 += last_ps(&outcome);
        }
        // Two intervals with jitter, less than the minimum timeout.
        let OrderedChaosConfig { interval_us, jitter, .. } = OrderedChaosConfig::default();
        let found_ps = 2 * (interval_us.ps() + jitter.of(interval_us.ps()));
        assert!(found_ps < flow_config(BalancerKind::OrderedChaos).rto.min_ps);
    }
    assert!(with.0 * 100 < without.0 * 95 && with.1 * 10 < without.1 * 9, "{with:?} against {without:?}");
}
