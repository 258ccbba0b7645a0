//! Host DR with real packets: the engine's paths are those of the kernel's switches.

use spray_core::path::BalancerKind;
use spray_tests::{in_time, parse, testbed, turn};

/// Returns one flow of 200 packets over four spines, with the further settings in `rest`.
fn text(rest: &str) -> String {
    format!(
        "name = \"host-dr\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 1\n\
         [workload]\nkind = \"flows\"\n[[workload.flow]]\nsrc = \"h0\"\ndst = \"h1\"\nbytes = 600000\n{rest}"
    )
}

/// Returns the data packets on leaf 0's uplinks; no packets are sent to its host, and all frames of
/// the handshake together are shorter than one data packet.
fn uplinks(rest: &str) -> Vec<u64> {
    let scenario = parse(&text(rest));
    let testbed = testbed(&scenario);
    let result = in_time(&testbed, &scenario, BalancerKind::HostDr);
    let uplinks = result.ports.iter().filter(|port| port.name.starts_with("leaf0->spine"));
    uplinks.map(|port| port.counters.bytes / u64::from(scenario.packet_bytes())).collect()
}

#[test]
fn packets_take_all_spines_in_turn() {
    //= docs/specs/host-dr.md#HDR-1 rotation over turning switches
    let Some(_turn) = turn() else { return };
    for rest in ["", "[transport]\nip = 6\n", "[emulation]\nchassis = \"per-switch\"\n"] {
        let counts = uplinks(rest);
        // Retransmissions caused by the machine take part in the rotation too.
        let spread = counts.iter().max().unwrap() - counts.iter().min().unwrap();
        assert!(counts.len() == 4 && counts[0] >= 50 && spread <= 1, "{rest}: {counts:?}");
    }
}

#[test]
fn a_path_removed_by_routing_is_no_longer_used() {
    //= docs/specs/host-dr.md#HDR-3 reachable paths
    let Some(_turn) = turn() else { return };
    let down = "[[link_event]]\nlink = \"spine2->leaf1\"\nat_us = 0\naction = \"down\"\nconvergence_us = 0\n";
    let counts = uplinks(down);
    assert_eq!(counts[2], 0, "{counts:?}");
    let others = [counts[0], counts[1], counts[3]];
    assert!(others.iter().max().unwrap() - others.iter().min().unwrap() <= 1, "{counts:?}");
}
