//! Elephants that hash to the same links, with and without Reunion.

use super::*;
use spray_fabric::{FatTree, Scheme, Switching, reunion};

const BYTES: u64 = 12_000_000;

/// Flows from each host to that `step` further on; returns the end of the last in us, and the
/// switches' counters.
fn makespan_us(mut network: Network, scheme: Scheme, step: usize, seed: u64) -> (u64, SimOutcome) {
    let reunion = reunion::Settings { interval_ps: 20 * US, timeout_ps: 100 * US, ..reunion::Settings::default() };
    network.switching = Switching { reunion, flowlet_gap_ps: US, ..Switching::all(scheme) };
    let hosts = network.hosts.len();
    let flows: Vec<_> = (0..hosts)
        .map(|src| FlowSpec { path_seed: Some(seed * 100 + src as u64), ..flow(src, (src + step) % hosts, BYTES) })
        .collect();
    let config = |_| flow_config(BalancerKind::Ecmp);
    let outcome = simulate(&SimSpec { seed, until_ps: 100_000 * US, ..spec(&network, &flows, &config) }, 1).unwrap();
    let ends = outcome.flows.iter().map(|flow| flow.received_ps.expect("every flow ends"));
    (ends.max().unwrap_or(0) / US, outcome)
}

/// Sums over some seeds, without and with Reunion.
fn sums(network: &Network, step: usize) -> [u64; 2] {
    [Scheme::Ecmp, Scheme::Reunion]
        .map(|scheme| (1..=4).map(|seed| makespan_us(network.clone(), scheme, step, seed).0).sum())
}

#[test]
fn rings_complete_earlier_in_two_tiers() {
    let [without, with] = sums(&leaf_spine(4, 4, 4), 4);
    assert!(with * 10 < without * 8, "{without} us without Reunion, {with} with it");
}

#[test]
fn rings_complete_earlier_in_three_tiers() {
    //= docs/specs/reunion.md#REU-2 source routing
    let [without, with] = sums(&FatTree::uniform([4, 2, 2, 4, 2], BPS, US).network(), 4);
    assert!(with * 100 < without * 97, "{without} us without Reunion, {with} with it");
}

#[test]
fn all_notification_frames_arrive() {
    //= docs/specs/reunion.md#REU-17 notification frames
    for scheme in [Scheme::Reunion, Scheme::ReunionLetFlow, Scheme::ReunionConga] {
        let (_, outcome) = makespan_us(leaf_spine(4, 4, 4), scheme, 4, 1);
        let [rerouted, notified] = ["rerouted", "notified"].map(|key| outcome.scheme_counters.get(key).unwrap());
        assert!(rerouted > 0 && notified >= rerouted, "{scheme}: {rerouted} flows rerouted, {notified} notifications");
        assert_eq!(outcome.frames_dropped, outcome.ports.iter().map(|port| port.counters.drops()).sum::<u64>());
        assert_eq!(makespan_us(leaf_spine(4, 4, 4), scheme, 4, 1).1, outcome, "a second run is the same");
    }
}
