use super::*;
use crate::sim::reference;
use crate::workload::{FlowTemplate, Pattern};
use spray_fabric::{FatTree, LeafSpine};

/// OFAN's setting (§5): 800 Gb/s, 0.5 us per link, payloads of 4,096 bytes. The inter-frame gap of
/// 20 bytes is counted as header.
fn scenario(network: Network, pattern: Pattern) -> Scenario {
    let mut scenario = reference("bound", network, pattern);
    scenario.transport.payload_bytes = 4_096;
    (scenario.simulation.header_bytes, scenario.simulation.control_bytes) = (Some(82), Some(84));
    scenario
}

fn fat_tree(k: usize) -> Network {
    FatTree::uniform([k, k / 2, k / 2, k * k / 4, k / 2], 800_000_000_000, 500_000).network()
}

fn down(network: &Network, name: &str) -> LinkEvent {
    let links = network.links_named(name).unwrap();
    LinkEvent { name: name.into(), links, at_ps: 0, until_ps: None, action: LinkAction::Down { convergence_ps: 0 } }
}

const EACH: FlowTemplate = FlowTemplate { bytes: 256 * 4_096, start_ps: 0 };

#[test]
fn the_permutation_bound_is_that_of_the_paper() {
    // OFAN appendix B: 17.05694 us. The gaps counted as header add 20 bytes at each of the five
    // later hops, and for one ACK.
    let bound = scenario(fat_tree(4), Pattern::CrossPodPermutation(EACH)).bound(1, &[]);
    assert!((17_056_940..17_060_000).contains(&bound.completion_ps), "{bound:?}");
    assert!((bound.rate_bps - 800e9).abs() < 1.0, "{bound:?}");
}

#[test]
fn all_to_all_is_bounded_by_its_serialisation() {
    let bound = scenario(fat_tree(8), Pattern::AllToAll { each: EACH, open: None }).bound(1, &[]);
    assert!((bound.rate_bps - 800e9 / 127.0).abs() < 1.0, "{bound:?}");
    // OFAN §5: about 1.3 ms. Each host's link carries 127 x 256 data frames and the same number of
    // ACKs.
    let sent_ps = 127 * 256 * (4_178 + 84) * 10;
    assert!((sent_ps..sent_ps + 10_000_000).contains(&bound.completion_ps), "{bound:?}");
}

#[test]
fn a_failed_uplink_reduces_the_rate_by_its_share() {
    // Four hosts on leaf 0 send over its four uplinks; without one, four flows share three.
    let network = LeafSpine::uniform([2, 4, 4], 100_000_000_000, 1_000_000).network();
    let event = down(&network, "leaf0-spine1");
    let bound = scenario(network, Pattern::CrossLeafPermutation(EACH)).bound(1, &[event]);
    let with_acks = 75e9 * 4_178.0 / (4_178.0 + 84.0);
    assert!((bound.rate_bps - with_acks).abs() < 1.0, "{bound:?}");
}

#[test]
fn acks_are_included_at_the_bottleneck() {
    // Data of leaf 1's hosts shares a link with the ACKs for leaf 0's, one per eight packets.
    let network = LeafSpine::uniform([2, 4, 4], 100_000_000_000, 1_000_000).network();
    let event = down(&network, "leaf0-spine1");
    let mut scenario = scenario(network, Pattern::CrossLeafPermutation(EACH));
    scenario.transport.ack_every = 8;
    let bound = scenario.bound(1, &[event]);
    let with_acks = 75e9 * 4_178.0 / (4_178.0 + 84.0 / 8.0);
    assert!((bound.rate_bps - with_acks).abs() < 1.0, "{bound:?}");
}

#[test]
fn flows_are_split_evenly_over_paths_not_ports() {
    // OFAN appendix A: agg2 of pod 1 loses one of its two cables to the cores, so that it has one
    // of the three paths into pod 1.
    let network = fat_tree(4);
    let event = down(&network, "agg2-core0");
    let flows =
        |dst: usize| Pattern::Flows(vec![Flow { flow: 0, src: 0, dst, bytes: 4_096, start_ps: 0, ..Flow::default() }]);
    let scenario = scenario(network.clone(), flows(4));
    let paths = ShortestPaths::new(&network, |link| !event.links.contains(&link));
    let loads = loads(&network, &paths, &scenario.flows(1));
    let load = |name: &str| loads[network.links.iter().position(|link| link.name == name).unwrap()];
    assert!((load("tor0->agg0") - 1.0 / 3.0).abs() < 1e-9 && (load("tor0->agg1") - 2.0 / 3.0).abs() < 1e-9);
    assert_eq!([load("h0->tor0"), load("tor2->h4")], [1.0, 1.0]);
}
