//! Host DR predicts the switches' hash: its packets are spread as evenly as possible over all
//! paths, and over none that routing has removed.

use spray_core::path::BalancerKind;
use spray_experiments::results::RunResult;
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::{FctEnd, Simulation, reference};
use spray_experiments::workload::{Pattern, parse_matrix};
use spray_fabric::{FatTree, LeafSpine, LinkAction, LinkEvent, Network};

const BPS: u64 = 400_000_000_000;
const US: u64 = 1_000_000;
const PACKETS: u64 = 960;

fn leaf_spine() -> Network {
    LeafSpine::uniform([2, 8, 4], BPS, US).network()
}

fn fat_tree() -> Network {
    FatTree::uniform([2, 2, 4, 16, 4], BPS, US).network()
}

/// Returns one flow of [`PACKETS`] packets between two hosts.
fn scenario(network: Network, from: usize, to: usize) -> Scenario {
    let bytes = PACKETS * 4_086;
    let text = format!("Nodes {}\nConnections 1\n{from}->{to} id 1 start 0 size {bytes}\n", network.hosts.len());
    let matrix = parse_matrix(&text, network.hosts.len()).unwrap();
    let mut scenario = reference("one", network, Pattern::Matrix(matrix));
    scenario.simulation.fct_end = FctEnd::Acked;
    scenario
}

fn run(scenario: &Scenario, seed: u64) -> RunResult {
    let result = Simulation::new(scenario).run(BalancerKind::HostDr, seed, &[]).unwrap();
    assert!(result.flows.iter().all(|flow| flow.fct_us.is_some()));
    result
}

/// Returns the number of data frames over each port whose name has this prefix and suffix; no other
/// frames are longer than a header.
fn frames(result: &RunResult, from: &str, to: &str) -> Vec<u64> {
    let named = |name: &str| name.starts_with(from) && name.contains(&format!("->{to}"));
    result.ports.iter().filter(|port| named(&port.name)).map(|port| port.counters.frames).collect()
}

#[test]
fn packets_take_all_spines_in_turn() {
    //= docs/specs/host-dr.md#HDR-1 rotation over turning switches
    //= docs/specs/host-dr.md#HDR-9 definition of a path
    //= docs/specs/host-dr.md#HDR-10 EVs for each path
    for seed in 1..=5 {
        let result = run(&scenario(leaf_spine(), 0, 4), seed);
        assert_eq!(frames(&result, "leaf0", "spine"), [PACKETS / 8; 8], "seed {seed}");
    }
}

#[test]
fn acks_take_all_spines_in_turn() {
    //= docs/specs/host-dr.md#HDR-2 classes of packets
    for seed in 1..=5 {
        let result = run(&scenario(leaf_spine(), 0, 4), seed);
        let acks = frames(&result, "leaf1", "spine");
        let (least, most) = (acks.iter().min().unwrap(), acks.iter().max().unwrap());
        assert!(*least > 10 && most - least <= 1, "seed {seed}: {acks:?}");
    }
}

#[test]
fn packets_take_all_cores_in_turn() {
    //= docs/specs/host-dr.md#HDR-1 rotation over turning switches
    for seed in 1..=5 {
        let result = run(&scenario(fat_tree(), 0, 15), seed);
        for agg in ["agg0", "agg1", "agg2", "agg3"] {
            assert_eq!(frames(&result, agg, "core"), [PACKETS / 16; 4], "seed {seed}");
        }
        let near = run(&scenario(fat_tree(), 0, 4), seed);
        assert_eq!(
            frames(&near, "tor0", "agg"),
            [PACKETS / 4; 4],
            "within a pod aggregation switches are the turning switches"
        );
        assert_eq!(frames(&near, "agg", "core").iter().sum::<u64>(), 0);
    }
}

#[test]
fn a_path_removed_by_routing_is_no_longer_used() {
    //= docs/specs/host-dr.md#HDR-3 reachable paths
    let mut scenario = scenario(leaf_spine(), 0, 4);
    let links = scenario.network.links_named("spine3->leaf1").unwrap();
    let action = LinkAction::Down { convergence_ps: 0 };
    scenario.link_events.push(LinkEvent { name: "x".into(), links, at_ps: 0, until_ps: None, action });
    let mut counts = frames(&run(&scenario, 1), "leaf0", "spine");
    counts.sort_unstable();
    assert_eq!(counts[0], 0);
    assert!(counts[7] - counts[1] <= 1, "{counts:?}");
    // Routing detects the failure while the flow is active, and later the repair.
    scenario.link_events[0].at_ps = 20 * US;
    scenario.link_events[0].until_ps = Some(30 * US);
    let counts = frames(&run(&scenario, 1), "leaf0", "spine");
    assert!(counts[3] > 40 && counts[3] < counts[2], "{counts:?}");
    let others: Vec<_> = counts.iter().enumerate().filter(|(spine, _)| *spine != 3).map(|(_, count)| *count).collect();
    // Each of the two changes interrupts a round.
    assert!(others.iter().max().unwrap() - others.iter().min().unwrap() <= 6, "{counts:?}");
}

#[test]
fn with_few_values_some_paths_are_unused_and_all_packets_arrive() {
    //= docs/specs/host-dr.md#HDR-10 EVs for each path
    for evs in [1, 2, 9] {
        let mut scenario = scenario(leaf_spine(), 0, 4);
        scenario.transport.evs = Some(evs);
        let counts = frames(&run(&scenario, 1), "leaf0", "spine");
        assert_eq!(counts.iter().sum::<u64>(), PACKETS);
        let used: Vec<_> = counts.iter().filter(|count| **count > 0).collect();
        assert!(used.len() <= evs as usize && used.iter().all(|count| count.abs_diff(*used[0]) <= 1), "{counts:?}");
    }
}
