//! The hash input of switches determines which paths packets take.

use std::collections::HashSet;
use std::path::Path;

use spray_core::path::BalancerKind;
use spray_experiments::scenario::{Document, Scenario};
use spray_experiments::sim::Simulation;
use spray_fabric::{RouteTable, Thresholds, addresses, compile, flow_key};
use spray_pipeline::scheme::hashed;
use spray_wire::EvPort;

/// Returns one flow from leaf to leaf over eight spines, with these settings of `[switch]`.
fn scenario(settings: &str) -> Scenario {
    let text = format!(
        "name = \"hashing\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 8\nhosts_per_leaf = 1\nhost_gbps = 100\n\
         [workload]\nkind = \"flows\"\nflow = [{{ src = \"h0\", dst = \"h1\", bytes = \"1 MB\" }}]\n[transport]\nip = 6\n\
         [switch]\n{settings}\n"
    );
    Scenario::read(&Document::parse(Path::new("hashing.toml"), &text).unwrap()).unwrap()
}

/// Returns the spines that its packets take.
fn taken(scenario: &Scenario, balancer: BalancerKind) -> Vec<usize> {
    let result = Simulation::new(scenario).run(balancer, 1, &[]).unwrap();
    assert!(result.summary().is_complete());
    let used = |name: &str| result.ports.iter().any(|port| port.name == name && port.counters.frames > 0);
    (0..8).filter(|spine| used(&format!("leaf0->spine{spine}"))).collect()
}

fn spines(balancer: BalancerKind, settings: &str) -> usize {
    taken(&scenario(settings), balancer).len()
}

#[test]
fn addresses_are_those_of_the_emulated_hosts() {
    //= docs/specs/switching.md#SWC-23 hash input
    let mut seen = HashSet::new();
    for function in ["ideal", "crc16", "crc32", "xor"] {
        let scenario = scenario(&format!("hash = \"{function}\"\nhash_fields = \"addresses\""));
        let network = &scenario.network;
        let fabric = compile(network, 1, |_| Thresholds::NONE, &[]).unwrap();
        let [from, to] = [0, 1].map(|host| fabric.hosts[host].v6.into());
        let flow = network.switching.hash.digest(&flow_key(addresses(from, to), EvPort::new(0)));
        let choice =
            hashed(&RouteTable::new(network, &[], 1, |link| link as u32), 0, network.leaf_of(0) as u32, 1, flow);
        let expected = choice.unwrap().rank as usize;
        assert_eq!(taken(&scenario, BalancerKind::Ops), [expected], "{function}");
        seen.insert(expected);
    }
    assert!(seen.len() > 1, "{seen:?}");
}

#[test]
fn the_flow_label_is_an_entropy_value() {
    //= docs/specs/wire.md#WIRE-13 EVs and ports
    //= docs/specs/switching.md#SWC-23 hash input
    for hash in ["ideal", "crc16", "crc32", "xor"] {
        let spines = |balancer, fields| spines(balancer, &format!("hash = \"{hash}\"\nhash_fields = \"{fields}\""));
        for fields in ["five-tuple", "ports", "flow-label"] {
            assert_eq!(spines(BalancerKind::Ops, fields), 8, "{hash}, {fields}");
            assert_eq!(spines(BalancerKind::Ecmp, fields), 1, "{hash}, {fields}: a single label");
        }
        assert_eq!(spines(BalancerKind::Ops, "addresses"), 1, "{hash}");
    }
}
