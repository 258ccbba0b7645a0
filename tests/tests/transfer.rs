//! Real packets through the fabric: every byte arrives with every link event, in both chassis
//! modes, with both IP versions.

use spray_core::path::BalancerKind;
use spray_experiments::results::{EventKind, RunResult};
use spray_experiments::scenario::Scenario;
use spray_experiments::workload::{Flow, Pattern};
use spray_tests::{assert_sound, in_time, run, run_on, scenarios, shared_turn, small, testbed, turn};

const BYTES: &str = "512 KiB";
/// The size of a flow, much larger than the first window, in which the effect of a mark or trim is
/// greatest.
const LONG: &str = "4 MiB";

fn event(link: &str, rest: &str) -> String {
    format!("[[link_event]]\nlink = \"{link}\"\n{rest}\n")
}

fn sum(result: &RunResult, counter: impl Fn(&spray_experiments::results::PortCounters) -> u64) -> u64 {
    result.ports.iter().map(|port| counter(&port.counters)).sum()
}

fn has(result: &RunResult, kind: EventKind) -> bool {
    result.events.iter().any(|event| event.kind == kind)
}

#[test]
fn a_healthy_fabric_loses_nothing_and_is_not_faster_than_its_links() {
    let Some(_turn) = turn() else { return };
    let scenario = small(BYTES, "");
    let result = in_time(&testbed(&scenario), &scenario, scenario.transport.balancer[0]);
    assert_eq!(sum(&result, |port| port.drops_link() + port.drops_random + port.drops_ttl), 0);
    // The minimum time of a flow on its link: 512 KiB and headers at 100 Gb/s, and half a round
    // trip.
    let least_us = 524_288.0 * 8.0 / 100e3 + 4.0;
    for flow in &result.flows {
        let fct = flow.fct_us.unwrap();
        assert!((least_us..least_us * 3.0).contains(&fct), "{fct} us, at least {least_us}");
    }
    assert!(!result.delivered.is_empty() && result.port_samples.iter().any(|port| !port.bins.is_empty()));
    assert!(result.engine_figures.dilation >= 1.0);
}

#[test]
fn one_testbed_runs_balancers_and_fabrics_in_turn() {
    let Some(_turn) = shared_turn() else { return };
    let scenario = small(BYTES, "");
    let failing = small(BYTES, &event("leaf0->spine0", "action = \"rate\"\nfactor = 0.5"));
    let testbed = testbed(&scenario);
    // The others are tested in `balancers.rs`.
    for balancer in [BalancerKind::Ecmp, BalancerKind::Ops, BalancerKind::Reps] {
        assert_sound(&run_on(&testbed, &scenario, balancer).unwrap());
        assert_sound(&run_on(&testbed, &failing, balancer).unwrap());
    }
}

#[test]
fn a_link_that_is_down_drops_until_routing_converges() {
    let Some(_turn) = turn() else { return };
    let down = event("leaf0-spine0", "at_us = 10\nuntil_us = 60\naction = \"down\"\nconvergence_us = 15");
    let scenario = small(BYTES, &down);
    let result = in_time(&testbed(&scenario), &scenario, scenario.transport.balancer[0]);
    assert!(sum(&result, |port| port.drops_link()) > 0);
    assert_eq!(result.events.iter().filter(|event| event.kind == EventKind::Reroute).count(), 2);
    let recovery = result.loss_duration_us.unwrap();
    assert!(recovery <= 65.0 + 20.0, "the last drop is {recovery} us after the first failure");
}

#[test]
fn a_silent_drop_is_detected_and_recovered() {
    let Some(_turn) = shared_turn() else { return };
    let silent = event("leaf0->spine0", "at_us = 10\nuntil_us = 200\naction = \"silent-drop\"");
    let result = run(&small(BYTES, &silent));
    assert_sound(&result);
    // The link drops ACKs too; later ACKs repeat their content.
    assert!(sum(&result, |port| port.drops_link()) > 0 && result.counted().0.retransmits > 0, "{:?}", result.counted());
    assert!(has(&result, EventKind::Failure) && has(&result, EventKind::LastDrop));
    assert!(!has(&result, EventKind::Reroute));
}

#[test]
fn a_slow_link_alone_drops_nothing() {
    let Some(_turn) = shared_turn() else { return };
    let result = run(&small(BYTES, &event("leaf0->spine0", "action = \"rate\"\nfactor = 0.25")));
    assert_sound(&result);
    assert_eq!(sum(&result, |port| port.drops_link()), 0);
    assert_eq!(result.loss_duration_us, None);
    let bytes = |name: &str| result.ports.iter().find(|port| port.name == name).unwrap().counters.bytes;
    assert!(bytes("leaf0->spine0") < bytes("leaf0->spine1"), "REPS prefers the faster uplink");
}

#[test]
fn random_loss_is_recovered() {
    let Some(_turn) = shared_turn() else { return };
    let result = run(&small(BYTES, &event("leaf0->spine0", "action = \"loss\"\nprobability = 0.05")));
    assert_sound(&result);
    assert!(sum(&result, |port| port.drops_random) > 0);
    assert_eq!(sum(&result, |port| port.drops_link()), 0);
}

#[test]
fn a_flapping_link_drops_while_it_is_down() {
    let Some(_turn) = shared_turn() else { return };
    let flap = event("leaf0->spine0", "action = \"flap\"\nperiod_us = 20\ndown_us = 5");
    let result = run(&small(BYTES, &flap));
    assert_sound(&result);
    assert!(sum(&result, |port| port.drops_link()) > 0);
}

#[test]
fn each_switch_may_have_a_separate_namespace() {
    let Some(_turn) = shared_turn() else { return };
    let per_switch = "[emulation]\nchassis = \"per-switch\"\n";
    let silent = event("leaf0->spine0", "at_us = 10\nuntil_us = 200\naction = \"silent-drop\"");
    let result = run(&small(BYTES, &format!("{silent}{per_switch}")));
    assert_sound(&result);
    assert!(sum(&result, |port| port.drops_link()) > 0);
    let spines: u64 =
        result.ports.iter().filter(|port| port.name.starts_with("spine")).map(|port| port.counters.frames).sum();
    assert!(spines > 0);
}

#[test]
fn ipv6_delivers_every_byte() {
    let Some(_turn) = shared_turn() else { return };
    for chassis in ["fabric", "per-switch"] {
        let rest = format!("[transport]\nip = 6\nack_every = 4\n[emulation]\nchassis = \"{chassis}\"\n");
        assert_sound(&run(&small(BYTES, &rest)));
    }
}

#[test]
fn an_incast_is_trimmed_or_dropped_as_configured() {
    let Some(_turn) = shared_turn() else { return };
    // A balancer without trailers, which have no payload to trim and are dropped by a full queue.
    let incast = |trimming: bool| {
        let text = format!(
            "name = \"incast\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
             [transport]\nbalancer = \"ops\"\n[workload]\nkind = \"incast\"\nbytes = \"256 KiB\"\n\
             [queue]\nlimit = \"20 packets\"\ntrimming = {trimming}\n"
        );
        run(&spray_tests::parse(&text))
    };
    let (trimmed, dropped) = (incast(true), incast(false));
    assert_sound(&trimmed);
    assert_sound(&dropped);
    assert!(sum(&trimmed, |port| port.trims) > 0 && sum(&trimmed, |port| port.drops_queue) == 0);
    assert!(sum(&dropped, |port| port.trims) == 0 && sum(&dropped, |port| port.drops_queue) > 0);
}

#[test]
fn a_receiver_that_falls_silent_ends_its_sender_in_bounded_time() {
    let Some(_turn) = shared_turn() else { return };
    let cut = event("leaf1->h2", "at_us = 20\naction = \"silent-drop\"");
    let scenario = small(BYTES, &format!("[transport]\ngive_up_us = 2000\n{cut}"));
    let result = run(&scenario);
    let lost: Vec<_> = result.flows.iter().filter(|flow| flow.fct_us.is_none()).collect();
    // Incomplete are the flow to h2 and possibly that of h2, which receives no ACKs.
    assert!(lost.iter().any(|flow| flow.dst == "h2") && lost.iter().all(|flow| flow.dst == "h2" || flow.src == "h2"));
    let ended = result.events.iter().filter(|event| event.detail.contains("stopped acknowledging"));
    assert!(ended.clone().count() >= 1, "{:?}", result.events);
    assert!(ended.clone().all(|event| event.time_us < 5_000.0), "{:?}", ended.collect::<Vec<_>>());
    assert_eq!(result.payload_verified, Some(true), "received data is correct");
}

#[test]
fn graphs_topo_files_and_matrices_run() {
    let Some(_turn) = shared_turn() else { return };
    for name in ["graph", "fat-tree", "matrix"] {
        let mut scenario = Scenario::load(&scenarios().join(format!("{name}.toml"))).unwrap();
        let flows = scenario.flows(scenario.seed).into_iter().map(|flow| Flow { bytes: 128 << 10, ..flow });
        scenario.workloads[0].pattern = Pattern::Flows(flows.collect());
        assert_sound(&run(&scenario));
    }
}

fn makespan_us(result: &RunResult) -> f64 {
    result.flows.iter().filter_map(|flow| flow.end_us).fold(0.0, f64::max)
}

#[test]
fn a_seed_determines_the_outcome_with_ecmp() {
    let Some(_turn) = turn() else { return };
    let scenario = small(LONG, "[transport]\nbalancer = \"ecmp\"\n");
    let testbed = testbed(&scenario);
    let spans = [(); 3].map(|()| makespan_us(&in_time(&testbed, &scenario, BalancerKind::Ecmp)));
    assert!(spans.iter().all(|span| (span / spans[0] - 1.0).abs() < 0.05), "{spans:?}");
}

#[test]
fn both_chassis_modes_emulate_the_same_fabric() {
    let Some(_turn) = turn() else { return };
    let mode = |mode: &str| {
        let scenario = small(LONG, &format!("[emulation]\nchassis = \"{mode}\"\n"));
        makespan_us(&in_time(&testbed(&scenario), &scenario, BalancerKind::Ecmp))
    };
    let (whole, parts) = (mode("fabric"), mode("per-switch"));
    assert!((whole / parts - 1.0).abs() < 0.05, "{whole} us in one program, {parts} us in one per switch");
}
