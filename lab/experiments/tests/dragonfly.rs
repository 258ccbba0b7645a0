//! Dragonflies: gain and cost of detours over a third group (Kim et al., ISCA 2008).

use std::collections::HashSet;
use std::path::Path;

use spray_core::path::BalancerKind::Ecmp;
use spray_experiments::results::{EventKind, RunResult};
use spray_experiments::scenario::{Document, Scenario};
use spray_experiments::sim::Simulation;
use spray_experiments::workload::{Flow, Pattern};
use spray_fabric::{Scheme, Switching};

/// A balanced dragonfly of 72 hosts: nine groups of four switches, each with two hosts and two
/// cables to other groups. `workload` is the content of `[workload]` in the scenario.
fn scenario(workload: &str) -> Scenario {
    let text = format!(
        "name = \"dragonfly\"\nsample_us = 0\n[topology]\nkind = \"dragonfly\"\ngroups = 9\nrouters_per_group = 4\n\
         hosts_per_router = 2\nglobal_cables = 2\n[transport]\nbalancer = \"ecmp\"\nsack_gap_packets = 0\n[workload]\n{workload}"
    );
    read(&text)
}

fn read(text: &str) -> Scenario {
    let document = Document::parse(Path::new("dragonfly"), text).expect("a built-in scenario");
    Scenario::read(&document).expect("a built-in scenario")
}

/// Every host of a group sends 1 MiB to the corresponding host of the next group: eight flows share
/// the one cable between the groups.
fn next_group() -> Scenario {
    let mut scenario = scenario("kind = \"permutation\"\nbytes = \"1 MiB\"");
    let (hosts, group) = (scenario.network.hosts.len(), scenario.network.hosts.len() / 9);
    let flow = |src: usize| Flow {
        flow: src as u32,
        src,
        dst: (src + group) % hosts,
        bytes: 1 << 20,
        start_ps: 0,
        ..Flow::default()
    };
    scenario.workloads[0].pattern = Pattern::Flows((0..hosts).map(flow).collect());
    scenario
}

/// 24 kB from each host to each. Queues are deep enough to avoid retransmissions.
fn all_to_all() -> Scenario {
    scenario("kind = \"all-to-all\"\nbytes = \"24 kB\"\n[queue]\nlimit = \"64 MB\"")
}

/// Returns the scenario with another scheme.
fn with(scheme: Scheme, mut scenario: Scenario) -> Scenario {
    scenario.network.switching = Switching::all(scheme);
    scenario
}

fn run(scenario: &Scenario, seed: u64) -> RunResult {
    let result = Simulation::new(scenario).run(Ecmp, seed, &[]).unwrap();
    assert!(result.summary().is_complete());
    result
}

/// The maximum completion time in us, averaged over seeds.
fn last(scenario: &Scenario) -> f64 {
    const SEEDS: u64 = 3;
    (1..=SEEDS).map(|seed| run(scenario, seed).summary().flows.fct_max_us.unwrap()).sum::<f64>() / SEEDS as f64
}

#[test]
fn detours_beat_shortest_paths_if_a_whole_group_sends_to_the_next() {
    let [shortest, valiant, ugal] =
        [Scheme::Ecmp, Scheme::Valiant, Scheme::Ugal].map(|scheme| last(&with(scheme, next_group())));
    println!("{shortest:.1} us, valiant {valiant:.1}, ugal {ugal:.1}");
    // One cable carries 8 MiB in 671 us. Over seven other groups it could take a quarter of this,
    // because every frame then crosses two of them.
    assert!(shortest > 690.0, "{shortest}");
    assert!(shortest / valiant > 2.5, "{shortest} us, valiant {valiant}");
    assert!(shortest / ugal > 1.5, "{shortest} us, ugal {ugal}");
}

/// Flowcuts select paths by the same rule, one path for many packets, and never reorder.
#[test]
fn flowcuts_take_detours_too() {
    //= docs/specs/flowcut-switch.md#FCS-11 detours
    let shortest = last(&with(Scheme::Ecmp, next_group()));
    for scheme in [Scheme::FlowcutIngress, Scheme::FlowcutSwitch] {
        let scenario = with(scheme, next_group());
        let ends = last(&scenario);
        let uniform = last(&with(scheme, all_to_all()));
        println!("{shortest:.1} us, {scheme} {ends:.1}, all to all {uniform:.1}");
        assert!(shortest / ends > 1.2, "{shortest} us, {scheme} {ends}");
        assert_eq!(run(&scenario, 1).summary().flows.reordered_packets, 0);
    }
}

/// All-to-all is uniform, and queues are deep enough to avoid retransmissions: shortest paths load
/// every cable between groups equally, and Valiant's twice as much.
#[test]
fn on_uniform_traffic_valiant_costs_half_of_the_capacity() {
    let scenario = |scheme| with(scheme, all_to_all());
    let [shortest, valiant, ugal] = [Scheme::Ecmp, Scheme::Valiant, Scheme::Ugal].map(|scheme| last(&scenario(scheme)));
    println!("{shortest:.1} us, valiant {valiant:.1}, ugal {ugal:.1}");
    assert!((1.6..2.0).contains(&(valiant / shortest)), "{shortest} us, valiant {valiant}");
    assert!(ugal / shortest < 1.2, "{shortest} us, ugal {ugal}");
    let between = |scheme| {
        let global = |port: &&spray_fabric::PortOutcome| port.layer == "global";
        run(&scenario(scheme), 1).ports.iter().filter(global).map(|port| port.counters.bytes).sum::<u64>() as f64
    };
    let twice = between(Scheme::Valiant) / between(Scheme::Ecmp);
    assert!((1.9..2.3).contains(&twice), "{twice}");
}

/// Full frames of a single flow never queue: they take the shortest path, to the picosecond. A
/// shorter last frame would find the rest of the one before it.
#[test]
fn on_an_idle_network_ugal_is_minimal() {
    let workload = "kind = \"flows\"\n[[workload.flow]]\nsrc = \"h0\"\ndst = \"h71\"\nbytes = 66000";
    let time = |scheme| run(&with(scheme, scenario(workload)), 1).flows[0].fct_us;
    assert_eq!(time(Scheme::Ugal), time(Scheme::Ecmp));
    assert!(time(Scheme::Valiant) > time(Scheme::Ecmp));
}

#[test]
fn results_distinguish_links_within_groups_from_those_between() {
    //= docs/specs/switch.md#SW-18 length of the queue over time
    let summary = run(&with(Scheme::Ugal, next_group()), 1).summary();
    let layers: Vec<_> = summary.layers.iter().map(|layer| (layer.layer.as_str(), layer.ports)).collect();
    assert_eq!(layers, [("switch->host", 72), ("local", 108), ("global", 72)]);
}

/// 1 MiB from each of 64 hosts to each at the same time, on a lossless dragonfly of four groups of
/// four switches.
fn lossless() -> Scenario {
    read(
        "name = \"dragonfly\"\nsample_us = 0\ntime_limit_us = 5000\n[topology]\nkind = \"dragonfly\"\ngroups = 4\n\
                routers_per_group = 4\nhosts_per_router = 4\nglobal_cables = 3\nhost_gbps = 200\n[queue]\nlimit = \"1 bdp\"\n\
                pfc = true\ntrimming = false\n[transport]\nbalancer = \"ecmp\"\ncc = \"fixed-window\"\nsack_gap_packets = 0\n\
                rto_min_us = 4000\n[workload]\nkind = \"all-to-all\"\nbytes = \"1 MiB\"\nconcurrent_messages = 63",
    )
}

/// The cause is routing: the links of the cycle are consecutive, and each detour uses two of them.
/// The shortest paths over the same links, with the same memory, do not deadlock.
#[test]
fn detours_in_one_class_deadlock() {
    //= docs/specs/pfc.md#PFC-7 deadlock
    let run = |scheme| Simulation::new(&with(scheme, lossless())).run(Ecmp, 1, &[]).unwrap();
    let stuck = run(Scheme::Valiant);
    let deadlock = stuck.events.iter().find(|event| event.kind == EventKind::Deadlock).expect("a deadlock");
    let circle = &deadlock.detail;
    let links: Vec<_> = circle.split(' ').map(|link| link.split_once("->").unwrap()).collect();
    let next = links.iter().cycle().skip(1);
    assert!(links.iter().zip(next).all(|((_, end), (begin, _))| end == begin), "{circle}");
    let groups: HashSet<_> = links.iter().map(|(begin, _)| begin.split_once('r').unwrap().0).collect();
    assert!(groups.len() >= 2 && stuck.summary().flows.flows_completed == 0, "{circle}");
    let shortest = run(Scheme::Ecmp);
    assert!(shortest.summary().is_complete() && shortest.events.iter().all(|event| event.kind != EventKind::Deadlock));
}
