//! Detours in a dragonfly with real packets: the switches' notes in frames do not affect the
//! payload, in one program and in one per switch.

use spray_core::path::BalancerKind;
use spray_experiments::results::RunResult;
use spray_experiments::sim::Simulation;
use spray_tests::{assert_sound, parse, run, shared_turn};

/// Runs three groups of two switches with two hosts each, in which every host sends to another
/// group.
fn detour(scheme: &str, ip: &str, chassis: &str) -> (RunResult, RunResult) {
    let text = format!(
        "name = \"detours\"\n[topology]\nkind = \"dragonfly\"\ngroups = 3\nrouters_per_group = 2\nhosts_per_router = 2\n\
         global_cables = 1\n[workload]\nkind = \"tornado\"\nbytes = \"256 KiB\"\n[transport]\nbalancer = \"ecmp\"\nip = \"{ip}\"\n\
         sack_gap_packets = 0\n[emulation]\nchassis = \"{chassis}\"\n[switch]\nscheme = \"{scheme}\"\n"
    );
    let scenario = parse(&text);
    let emulated = run(&scenario);
    assert_sound(&emulated);
    (emulated, Simulation::new(&scenario).run(BalancerKind::Ecmp, scenario.seed, &[]).unwrap())
}

/// Returns the number of data and control frames on cables between groups.
fn between(result: &RunResult) -> u64 {
    result.ports.iter().filter(|port| port.layer == "global").map(|port| port.counters.frames).sum()
}

#[test]
fn every_frame_of_valiant_crosses_two_cables_between_groups() {
    let Some(_turn) = shared_turn() else { return };
    for (ip, chassis) in [("4", "fabric"), ("6", "fabric"), ("6", "per-switch")] {
        let (emulated, simulated) = detour("valiant", ip, chassis);
        let hosts = |result: &RunResult| -> u64 {
            let up = result.ports.iter().filter(|port| port.layer == "switch->host");
            up.map(|port| port.counters.frames).sum()
        };
        for result in [&emulated, &simulated] {
            assert_eq!(between(result), 2 * hosts(result), "{ip}, {chassis}");
        }
    }
}

#[test]
fn ugal_takes_detours_if_the_shortest_path_is_congested() {
    let Some(_turn) = shared_turn() else { return };
    let [(minimal, _), (emulated, simulated)] = ["ecmp", "ugal"].map(|scheme| detour(scheme, "4", "fabric"));
    let [minimal, emulated, simulated] = [&minimal, &emulated, &simulated].map(between);
    println!("{minimal} frames over cables between groups, ugal {emulated}, simulated {simulated}");
    assert!(minimal < emulated && emulated < 2 * minimal && minimal < simulated, "{minimal}, {emulated}, {simulated}");
}
