//! Time series of a run: every byte is counted once, no link exceeds its rate, and both engines
//! agree.

use spray_core::path::BalancerKind;
use spray_experiments::results::RunResult;
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::Simulation;
use spray_fabric::Node;
use spray_tests::{in_time, parse, testbed, turn};

/// The maximum difference of the engines at any time, in per cent of all delivered bytes: over six
/// seeds an incast differs by up to 5.5.
const APART_PERCENT: f64 = 6.0;

#[test]
fn a_permutation_is_delivered_at_the_same_times_on_both_engines() {
    compare_engines(&leaf_spine(4, 4, "kind = \"cross-leaf-permutation\"\nbytes = \"2 MiB\"\n", ""));
}

#[test]
fn an_incast_is_delivered_at_the_same_times_on_both_engines() {
    let workload = "kind = \"incast\"\nreceiver = \"h0\"\nsenders = 7\nbytes = \"512 KiB\"\n";
    compare_engines(&leaf_spine(4, 4, workload, ""));
}

#[test]
fn a_dead_cable_delays_the_same_bytes_on_both_engines() {
    let dead = "[[link_event]]\nlink = \"leaf0->spine1\"\nat_us = 40\naction = \"silent-drop\"\n";
    compare_engines(&leaf_spine(4, 4, "kind = \"cross-leaf-permutation\"\nbytes = \"2 MiB\"\n", dead));
}

#[test]
fn sixty_four_hosts_deliver_at_the_same_times_on_both_engines() {
    compare_engines(&leaf_spine(8, 32, "kind = \"cross-leaf-permutation\"\nbytes = \"256 KiB\"\n", ""));
}

/// Returns two leaves with this number of spines, and of hosts each.
fn leaf_spine(spines: u32, hosts: u32, workload: &str, rest: &str) -> Scenario {
    parse(&format!(
        "name = \"over-time\"\nsample_us = 5\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = {spines}\n\
         hosts_per_leaf = {hosts}\nhost_gbps = 100\nlatency_us = 1\n[workload]\n{workload}{rest}"
    ))
}

/// Runs a scenario on both engines, and compares the series.
fn compare_engines(scenario: &Scenario) {
    let Some(_turn) = turn() else { return };
    let testbed = testbed(scenario);
    for balancer in [BalancerKind::Ops, BalancerKind::Reps] {
        let simulated = Simulation::new(scenario).run(balancer, scenario.seed, &[]).unwrap();
        let emulated = in_time(&testbed, scenario, balancer);
        for run in [&simulated, &emulated] {
            check_series(scenario, run);
        }
        let total: u64 = scenario.flows(scenario.seed).iter().map(|flow| flow.bytes).sum();
        let (bytes, at_us) = difference(&emulated, &simulated);
        let percent = bytes * 100.0 / total as f64;
        println!("{balancer}: at most {percent:.2} % apart, at {at_us:.0} us");
        assert!(percent <= APART_PERCENT, "{balancer}: {percent:.2} % apart at {at_us:.0} us");
    }
}

/// Returns the maximum difference in bytes of two runs at a time at which bins of both end, and
/// that time. Bins are longer in a longer run.
fn difference(ours: &RunResult, other: &RunResult) -> (f64, f64) {
    let at = |time_ps: u64| {
        let place = other.delivered.binary_search_by_key(&time_ps, |(ps, _)| *ps).ok()?;
        Some(other.delivered[place].1 as f64)
    };
    let at_bin = |(ps, bytes): &(u64, u64)| Some(((*bytes as f64 - at(*ps)?).abs(), *ps as f64 / 1e6));
    let differences: Vec<_> = ours.delivered.iter().filter_map(at_bin).collect();
    assert!(differences.len() > 8, "only {} times are common to both runs", differences.len());
    differences.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
}

/// Checks sums to the byte, the end, and the rates of links.
//= docs/specs/switch.md#SW-24 in the bin in which its last bit leaves
fn check_series(scenario: &Scenario, run: &RunResult) {
    let total: u64 = scenario.flows(scenario.seed).iter().map(|flow| flow.bytes).sum();
    let (end_ps, delivered) = *run.delivered.last().unwrap();
    assert_eq!((run.delivered[0], delivered), ((0, 0), total), "{}", run.engine);
    let last_us = run.flows.iter().filter_map(|flow| flow.end_us).fold(0.0, f64::max);
    assert!(end_ps as f64 / 1e6 >= last_us, "{}: the series ends at {end_ps} ps of {last_us} us", run.engine);
    let packet = u64::from(scenario.packet_bytes());
    let links = &scenario.network.links;
    let links = links.iter().filter(|link| matches!(link.to, Node::Host(_)));
    let receivers = links.clone().count() as u64;
    let bps: u64 = links.map(|link| link.rate_bps).sum();
    for pair in run.delivered.windows(2) {
        let most = u128::from(pair[1].0 - pair[0].0) * u128::from(bps) / 8_000_000_000_000;
        let bytes = pair[1].1 - pair[0].1;
        assert!(bytes <= most as u64 + receivers * packet, "{}: {bytes} bytes in {pair:?}", run.engine);
    }
    assert_eq!(run.port_samples.len(), run.ports.len(), "{}: every port of a switch", run.engine);
    for samples in &run.port_samples {
        let (port, mut sum) = (&run.ports[samples.port], samples.before);
        samples.bins.iter().for_each(|bin| sum.add(bin));
        let found = [sum.sent_bytes, sum.queue_max, sum.marks, sum.trims, sum.drops];
        let counters = &port.counters;
        let all = [counters.bytes, counters.queue_max, counters.marks, counters.trims, counters.drops()];
        assert_eq!(found, all, "{}: {}", run.engine, port.name);
        // Elsewhere frames may pass out of order, and the error of the queue is added.
        let exact = run.engine == "sim" || !port.uplink;
        let most = (u128::from(samples.bin_ps) * u128::from(port.rate_bps) / 8_000_000_000_000) as u64 + packet;
        let busiest = samples.bins.iter().map(|bin| bin.sent_bytes).max().unwrap_or(0);
        println!("{} {}: {busiest} of {most}", run.engine, port.name);
        assert!(!exact || busiest <= most, "{}: {}: {busiest} bytes of {most} in a bin", run.engine, port.name);
    }
}
