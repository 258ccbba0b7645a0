//! The baselines with labels compared with ECMP and OPS, in the simulator: 32 hosts at 400 Gb/s, 4
//! MiB each.

use spray_core::path::BalancerKind::{self, Ecmp, HostDr, Mptcp, Ops, Subflow};
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::{FctEnd, Simulation, reference};
use spray_experiments::workload::{Pattern, parse_matrix};
use spray_fabric::{LinkAction, LinkEvent, TopoFile};

const FABRIC: &str = include_str!("../../../tests/reference/leafspine_32_400g.topo");
const PERMUTATION: &str = include_str!("../../../tests/reference/perm_n32_s4194304.cm");
const SEEDS: u64 = 4;

fn permutation() -> Scenario {
    let network = TopoFile::parse(FABRIC).unwrap().network();
    let matrix = parse_matrix(PERMUTATION, network.hosts.len()).unwrap();
    let mut scenario = reference("baselines", network, Pattern::Matrix(matrix));
    scenario.simulation.fct_end = FctEnd::Acked;
    scenario
}

fn apply(scenario: &mut Scenario, name: &str, action: LinkAction) {
    let links = scenario.network.links_named(name).unwrap();
    scenario.link_events.push(LinkEvent { name: name.into(), links, at_ps: 0, until_ps: None, action });
}

/// Returns the mean completion time in ns over flows and seeds.
fn mean_ns(scenario: &Scenario, balancer: BalancerKind) -> u64 {
    let simulation = Simulation::new(scenario);
    let one = |seed| {
        let result = simulation.run(balancer, seed, &[]).unwrap();
        let times = result.flows.iter().map(|flow| (flow.fct_us.expect("every flow completes") * 1e3).round() as u64);
        times.sum::<u64>() / result.flows.len() as u64
    };
    let mean = (1..=SEEDS).map(one).sum::<u64>() / SEEDS;
    println!("{balancer}: {mean} ns");
    mean
}

/// Host DR has the shortest queues (OFAN figure 6); fixed labels collide, less often the more there
/// are (OFAN figure 1).
#[test]
fn in_a_healthy_fabric_the_ranking_is_that_of_the_papers() {
    //= docs/specs/subflow.md#SUB-2 labels in turn
    //= docs/specs/subflow.md#MPTCP-1 subflows
    let scenario = permutation();
    let mean = |balancer| mean_ns(&scenario, balancer);
    let order = [HostDr, Ops, Mptcp, Ecmp].map(mean);
    assert!(order.is_sorted(), "{order:?}");
    let few = mean(Subflow);
    assert!(few > order[1] && few < order[3]);
    let many = |subflows| {
        let mut scenario = permutation();
        scenario.transport.schemes.subflow.subflows = subflows;
        mean_ns(&scenario, Subflow)
    };
    let counts = [1, 4, 16, 256].map(many);
    assert!(counts.windows(2).all(|pair| pair[0] > pair[1]), "{counts:?}");
}

/// When routing reports that one spine in four is unreachable, host DR uses the other three.
#[test]
fn host_dr_avoids_a_cable_that_routing_has_removed() {
    //= docs/specs/host-dr.md#HDR-3 reachable paths
    let mut scenario = permutation();
    apply(&mut scenario, "leaf0->spine0", LinkAction::Down { convergence_ps: 0 });
    let (host_dr, ops) = (mean_ns(&scenario, HostDr), mean_ns(&scenario, Ops));
    assert!(host_dr <= ops, "routing removes the cable from the hash for both");
    let healthy = mean_ns(&permutation(), HostDr);
    assert!(host_dr * 10 < healthy * 13);
}
