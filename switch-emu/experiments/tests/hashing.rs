//! What switches hash decides which paths packets take.

use std::path::Path;

use spray_core::path::BalancerKind;
use spray_experiments::scenario::{Document, Scenario};
use spray_experiments::sim::Simulation;

/// Spines, of eight, that the packets of one flow take from leaf to leaf under these settings of `[switch]`.
fn spines(balancer: BalancerKind, settings: &str) -> usize {
    let text = format!(
        "name = \"hashing\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 8\nhosts_per_leaf = 1\nhost_gbps = 100\n\
         [workload]\nkind = \"flows\"\nflow = [{{ src = \"h0\", dst = \"h1\", bytes = \"1 MB\" }}]\n[transport]\nip = 6\n\
         [switch]\n{settings}\n"
    );
    let scenario = Scenario::read(&Document::parse(Path::new("hashing.toml"), &text).unwrap()).unwrap();
    let result = Simulation::new(&scenario).run(balancer, 1, &[]).unwrap();
    assert!(result.summary().is_complete());
    let used = |name: &str| result.ports.iter().any(|port| port.name == name && port.counters.frames > 0);
    (0..8).filter(|spine| used(&format!("leaf0->spine{spine}"))).count()
}

#[test]
fn the_flow_label_is_an_entropy_value() {
    //= docs/specs/wire.md#WIRE-13 EVs and ports
    //= docs/specs/switching.md#SWC-23 what is hashed
    for hash in ["ideal", "crc16", "crc32", "xor"] {
        let spines = |balancer, fields| spines(balancer, &format!("hash = \"{hash}\"\nhash_fields = \"{fields}\""));
        for fields in ["five-tuple", "ports", "flow-label"] {
            assert_eq!(spines(BalancerKind::Ops, fields), 8, "{hash}, {fields}");
            assert_eq!(spines(BalancerKind::Ecmp, fields), 1, "{hash}, {fields}: one label");
        }
        assert_eq!(spines(BalancerKind::Ops, "addresses"), 1, "{hash}");
    }
}
