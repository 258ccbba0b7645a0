//! Ordered Chaos with real packets: the receiver reports packets dropped by a lossy link, and
//! nothing else is retransmitted.

use spray_core::path::BalancerKind;
use spray_tests::{in_time, parse, testbed, turn};

#[test]
fn only_packets_lost_on_a_lossy_link_are_retransmitted() {
    let Some(_turn) = turn() else { return };
    let scenario = parse(
        "name = \"lossy-subflows\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
         [workload]\nkind = \"cross-leaf-permutation\"\nbytes = \"2 MiB\"\n[queue]\ntrimming = false\n[transport]\nsack_gap_packets = 0\n\
         [emulation]\ndilation = 1000\n\
         [[link_event]]\nlink = \"leaf0->spine0\"\nat_us = 0\naction = \"loss\"\nprobability = 0.03\n",
    );
    let testbed = testbed(&scenario);
    let result = in_time(&testbed, &scenario, BalancerKind::OrderedChaos);
    let lost: u64 = result.ports.iter().map(|port| port.counters.drops_random + port.counters.drops_queue).sum();
    let (sender, receiver) = result.counted();
    // The lost frames include probes and ACKs; only data packets are retransmitted.
    assert!(sender.retransmits > 0 && sender.retransmits <= lost, "{lost} lost, {sender:?}");
    assert_eq!((sender.timeouts, receiver.duplicates), (0, 0), "{sender:?}, {receiver:?}");
}
