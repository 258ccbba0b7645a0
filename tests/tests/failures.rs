//! Named failures have the same effect on both engines, including those of hosts' links.

use spray_core::path::BalancerKind;
use spray_experiments::results::{FlowFigures, Incomplete, RunResult};
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::Simulation;
use spray_fabric::Bin;
use spray_tests::{in_time, small, testbed, turn};

/// The maximum difference of the engines' completion times, in per cent of the simulator's.
const TIMES_PERCENT: f64 = 5.0;
/// The maximum difference of frames dropped by a link before senders detect it, which depends on
/// the order of frames.
const DROPS_PERCENT: f64 = 15.0;

/// Runs `scenario` with packets, and in the simulator.
fn both(scenario: &Scenario) -> [RunResult; 2] {
    [in_time(&testbed(scenario), scenario, scenario.transport.balancer[0]), simulated(scenario)]
}

fn simulated(scenario: &Scenario) -> RunResult {
    Simulation::new(scenario).run(scenario.transport.balancer[0], scenario.seed, &[]).unwrap()
}

/// Runs a fabric with these link events, and random paths.
fn failing(events: &str) -> [RunResult; 2] {
    let mut scenario = small("1 MiB", events);
    scenario.transport.balancer = vec![BalancerKind::Ops];
    both(&scenario)
}

fn assert_close(what: &str, [emulated, simulated]: [f64; 2], percent: f64) {
    let differs = 100.0 * (emulated - simulated).abs() / simulated;
    eprintln!("{what}: {emulated:.1}, simulated {simulated:.1}");
    assert!(differs <= percent, "{what}: {emulated:.1}, simulated {simulated:.1}");
}

/// Returns the ports that silently dropped frames, and the number of these frames.
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
fn the_name_of_a_switch_fails_all_of_its_links() {
    let Some(_turn) = turn() else { return };
    let runs = failing("[[link_event]]\nnode = \"spine1\"\nat_us = 20\nuntil_us = 50\naction = \"silent-drop\"\n");
    for run in &runs {
        let (ports, _) = silent(run);
        assert!(ports.len() >= 2 && ports.iter().all(|port| port.contains("spine1")), "{ports:?}");
        assert!(run.events.iter().any(|event| event.subject == "spine1"), "{:?}", run.events);
    }
    assert_close("frames dropped", runs.each_ref().map(|run| silent(run).1), DROPS_PERCENT);
}

#[test]
fn a_hosts_link_fails_like_others() {
    let Some(_turn) = turn() else { return };
    let runs = failing("[[link_event]]\nlink = \"h0->leaf0\"\nat_us = 20\nuntil_us = 30\naction = \"silent-drop\"\n");
    for run in &runs {
        assert_eq!(silent(run).0, ["h0->leaf0"]);
        assert!(run.loss_duration_us.is_some_and(|us| us <= 10.0), "{:?}", run.loss_duration_us);
    }
    assert_close("frames dropped", runs.each_ref().map(|run| silent(run).1), DROPS_PERCENT);
    let runs = failing("[[link_event]]\nnode = \"h0\"\naction = \"rate\"\nfactor = 0.5\n");
    for host in ["h0", "h1"] {
        assert_close(host, runs.each_ref().map(|run| fct_us(run, host)), TIMES_PERCENT);
    }
    assert!(runs.iter().all(|run| fct_us(run, "h0") > 1.8 * fct_us(run, "h1")));
    let runs = failing("[[link_event]]\nlink = \"h*->leaf*\"\naction = \"loss\"\nprobability = 0.02\n");
    let lost = |run: &RunResult| run.ports.iter().map(|port| port.counters.drops_random).sum::<u64>() as f64;
    assert_close("frames lost", runs.each_ref().map(lost), 40.0);
}

/// A disconnected host receives neither data nor ACKs. The flows to it and from it are given up, or
/// cut off if the run ends before.
#[test]
fn an_incomplete_flow_has_a_reason() {
    let Some(_turn) = turn() else { return };
    let cut = "[[link_event]]\nlink = \"leaf1->h2\"\naction = \"silent-drop\"\nat_us = 5\n";
    let given_up = small("1 MiB", &format!("[transport]\ngive_up_us = 2000\nbalancer = \"ops\"\n{cut}"));
    for run in [spray_tests::run(&given_up), simulated(&given_up)] {
        let s = run.summary();
        let FlowFigures { flows_given_up, flows_cut_off, given_up_first_us, fct_max_us, .. } = s.flows;
        let at_us = given_up_first_us.unwrap();
        eprintln!("{}: given up at {at_us:.0} us", run.engine);
        assert_eq!((flows_given_up, flows_cut_off, s.give_up_us, s.time_limit_us), (2, 0, Some(2000.0), None));
        assert!((2000.0..3000.0).contains(&at_us) && fct_max_us >= Some(2000.0), "{at_us} {fct_max_us:?}");
        assert!(run.events.iter().any(|row| row.action == "given-up" && (row.time_us - at_us).abs() < 1.0));
        assert!(
            ["fct_mean_us", "fct_max_us", "makespan_us"].iter().all(|key| s.lower_bounds.iter().any(|own| own == key))
        );
    }
    let mut limited = given_up.clone();
    limited.time_limit_ps = Some(500_000_000);
    for run in [spray_tests::run(&limited), simulated(&limited)] {
        let s = run.summary();
        assert_eq!(
            (s.flows.flows_given_up, s.flows.flows_cut_off, s.time_limit_us),
            (0, 2, Some(500.0)),
            "{}",
            run.engine
        );
        // The xdp engine checks the time limit at intervals.
        let slowest_us = s.flows.fct_max_us.unwrap();
        assert!((500.0..700.0).contains(&slowest_us), "{}: {slowest_us}", run.engine);
        let cut = run.flows.iter().find(|flow| flow.dst == "h2").unwrap();
        assert_eq!((cut.incomplete, cut.fct_us), (Some(Incomplete::CutOff), None));
    }
}

/// The totals of reordered packets are the sums over flows, without retransmissions and duplicates.
//= docs/specs/switch.md#SW-24 in the bin in which its last bit leaves
//= docs/specs/transport.md#TRN-58 reordering
#[test]
fn no_link_exceeds_its_rate() {
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
