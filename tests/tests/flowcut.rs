//! Flowcut with real packets: the fabric makes it drain, and packets arrive in order.

use spray_experiments::scenario::Scenario;
use spray_tests::{assert_sound, run, shared_turn, small};

#[test]
fn a_slow_uplink_is_drained_and_avoided_without_reordering() {
    let Some(_turn) = shared_turn() else { return };
    let rest = "[transport]\nbalancer = \"flowcut\"\n[queue]\nlimit = \"400 packets\"\nmark_min = \"400 packets\"\n\
                mark_max = \"400 packets\"\ntrimming = false\n\
                [[link_event]]\nlink = \"leaf0-spine0\"\naction = \"rate\"\nfactor = 0.1\n";
    let result = run(&Scenario { seed: 2, ..small("2 MiB", rest) });
    assert_sound(&result);
    assert_eq!(result.counted().1.order.reordered, 0);
    assert!(result.flows.iter().all(|flow| flow.receiver.order.reordered == 0));
    let drained_ps = result.counted().0.drained_ps;
    assert!(drained_ps > 0, "{:?}", result.flows);
    let bytes = |name: &str| result.ports.iter().find(|port| port.name == name).unwrap().counters.bytes;
    assert!(bytes("leaf0->spine0") < bytes("leaf0->spine1"), "flows are rerouted from the slow uplink");
}
