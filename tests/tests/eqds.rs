//! EQDS with real packets: senders respect their credit, and every byte arrives.

use spray_core::path::BalancerKind;
use spray_experiments::results::RunResult;
use spray_tests::{in_time, parse, testbed, turn};

fn trims(result: &RunResult) -> u64 {
    result.ports.iter().map(|port| port.counters.trims).sum()
}

#[test]
fn an_incast_on_credit_is_trimmed_in_its_first_window_only() {
    let Some(_turn) = turn() else { return };
    let scenario = parse(
        "name = \"incast-eqds\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
         [workload]\nkind = \"incast\"\nbytes = \"512 KiB\"\n[queue]\nlimit = \"20 packets\"\n[transport]\ncc = \"eqds\"\n",
    );
    let testbed = testbed(&scenario);
    for balancer in [BalancerKind::Reps, BalancerKind::Ops, BalancerKind::Ecmp] {
        let result = in_time(&testbed, &scenario, balancer);
        // 100 Gb/s for about 10 us: each of three senders may send about 40 packets without credit.
        let trims = trims(&result);
        assert!(trims > 0 && trims < 3 * 50, "{balancer}: {trims} trims, {:?}", result.counted());
        assert_eq!((result.counted().0.timeouts, result.counted().0.retransmits), (0, trims), "{balancer}");
        // The time of three messages with their headers on the last link at 99 % of its rate, and
        // two round trips.
        let (slowest, paced) = (result.flows.iter().filter_map(|flow| flow.fct_us).fold(0.0, f64::max), 132.0);
        assert!(slowest < paced + 20.0, "{balancer}: {slowest} us");
    }
}
