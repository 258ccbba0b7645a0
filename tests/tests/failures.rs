//! What fails by name does the same on both engines, hosts' own links included.

use spray_core::path::BalancerKind;
use spray_experiments::results::RunResult;
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::Simulation;
use spray_fabric::Bin;
use spray_tests::{in_time, small, testbed, turn};

/// The engines' completion times, in per cent of the simulator's.
const TIMES_PERCENT: f64 = 5.0;
/// Frames that a link drops while senders do not know: it depends on which frames come first.
const DROPS_PERCENT: f64 = 15.0;

/// The run of `scenario` by packets, and in the simulator.
fn both(scenario: &Scenario) -> [RunResult; 2] {
    let balancer = scenario.transport.balancer[0];
    let simulated = Simulation::new(scenario).run(balancer, scenario.seed, &[]).unwrap();
    [in_time(&testbed(scenario), scenario, balancer), simulated]
}

/// The runs of a fabric with these link events, and random paths.
fn failing(events: &str) -> [RunResult; 2] {
    let mut scenario = small("1 MiB", events);
    scenario.transport.balancer = vec![BalancerKind::Ops];
    both(&scenario)
}

fn assert_alike(what: &str, [emulated, simulated]: [f64; 2], percent: f64) {
    let differs = 100.0 * (emulated - simulated).abs() / simulated;
    eprintln!("{what}: {emulated:.1}, simulated {simulated:.1}");
    assert!(differs <= percent, "{what}: {emulated:.1}, simulated {simulated:.1}");
}

/// Ports that silently dropped frames, and how many all of them.
fn silent(result: &RunResult) -> (Vec<&str>, f64) {
    let ports = result.ports.iter().filter(|port| port.counters.drops_silent > 0);
    let mut names: Vec<_> = ports.clone().map(|port| port.name.as_str()).collect();
    names.sort_unstable();
    (names, ports.map(|port| port.counters.drops_silent).sum::<u64>() as f64)
}

fn fct_us(result: &RunResult, src: &str) -> f64 {
    result.flows.iter().find(|flow| flow.src == src).and_then(|flow| flow.fct_us).expect("a complete flow")
}

#[test]
fn all_links_of_a_switch_fail_by_its_name() {
    let Some(_turn) = turn() else { return };
    let runs = failing("[[link_event]]\nnode = \"spine1\"\nat_us = 20\nuntil_us = 50\naction = \"silent-drop\"\n");
    for run in &runs {
        let (ports, _) = silent(run);
        assert!(ports.len() >= 2 && ports.iter().all(|port| port.contains("spine1")), "{ports:?}");
        assert!(run.events.iter().any(|event| event.subject == "spine1"), "{:?}", run.events);
    }
    assert_alike("frames dropped", runs.each_ref().map(|run| silent(run).1), DROPS_PERCENT);
}

#[test]
fn a_hosts_own_link_fails_as_others_do() {
    let Some(_turn) = turn() else { return };
    let runs = failing("[[link_event]]\nlink = \"h0->leaf0\"\nat_us = 20\nuntil_us = 30\naction = \"silent-drop\"\n");
    for run in &runs {
        assert_eq!(silent(run).0, ["h0->leaf0"]);
        assert!(run.loss_duration_us.is_some_and(|us| us <= 10.0), "{:?}", run.loss_duration_us);
    }
    assert_alike("frames dropped", runs.each_ref().map(|run| silent(run).1), DROPS_PERCENT);
    let runs = failing("[[link_event]]\nnode = \"h0\"\naction = \"rate\"\nfactor = 0.5\n");
    for host in ["h0", "h1"] {
        assert_alike(host, runs.each_ref().map(|run| fct_us(run, host)), TIMES_PERCENT);
    }
    assert!(runs.iter().all(|run| fct_us(run, "h0") > 1.8 * fct_us(run, "h1")));
    let runs = failing("[[link_event]]\nlink = \"h*->leaf*\"\naction = \"loss\"\nprobability = 0.02\n");
    let lost = |run: &RunResult| run.ports.iter().map(|port| port.counters.drops_random).sum::<u64>() as f64;
    assert_alike("frames lost", runs.each_ref().map(lost), 40.0);
}

/// And totals of reordered packets are those of the flows: retransmissions and duplicates are in neither.
//= docs/specs/switch.md#SW-24 in the bin in which its last bit leaves
//= docs/specs/transport.md#TRN-58 reordering
#[test]
fn no_link_is_used_by_more_than_its_rate() {
    let Some(_turn) = turn() else { return };
    let mut scenario = small("1 MiB", "[[link_event]]\nnode = \"spine1\"\naction = \"loss\"\nprobability = 0.02\n");
    scenario.transport.balancer = vec![BalancerKind::Ops];
    scenario.sample_ps = 2_000_000;
    for run in both(&scenario) {
        let mut busiest: f64 = 0.0;
        for series in run.port_samples.iter().filter(|series| run.ports[series.port].uplink) {
            let most = run.ports[series.port].rate_bps as f64 * series.bin_ps as f64 / 8e12;
            let frame = f64::from(scenario.packet_bytes());
            let load = |bin: &Bin| (bin.sent_bytes as f64 - frame) / most;
            busiest = series.bins.iter().map(load).fold(busiest, f64::max);
        }
        assert!((0.5..=1.0).contains(&busiest), "{}: {busiest}", run.engine);
        let (sender, receiver) = run.counted();
        let (all, first) = (receiver.order.reordered, sender.packets_sent - sender.retransmits);
        assert!(0 < all && all < first && sender.retransmits > 0, "{all} of {first}");
        assert_eq!(run.summary().flows.reordered_packets, all);
    }
}
