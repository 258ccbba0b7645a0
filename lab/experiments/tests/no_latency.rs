//! Fabrics without cable latency: a trimmed header returns to its sender in less than the
//! serialisation time of its packet.

use spray_core::cc::CcKind;
use spray_core::path::BalancerKind;
use spray_experiments::results::FlowResult;
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::Simulation;

fn scenario(cc: CcKind, receiver: &str, more: &str) -> Scenario {
    let text = format!(
        "name = 'no-latency'\ntime_limit_us = 20000\n[topology]\nkind = 'leaf-spine'\nleaves = 4\nspines = 2\n\
         hosts_per_leaf = 8\nhost_gbps = 10\nlatency_us = 0\n{more}\n[transport]\npayload_bytes = 1000\n\
         cc = '{cc}'\nreceiver = '{receiver}'\n"
    );
    Scenario::parse("no-latency.toml".as_ref(), &text).unwrap()
}

/// Checks that every flow ends within a multiple of the time of the fabric's links for all data,
/// and that no packet circulates forever.
fn ends(scenario: &Scenario, balancer: BalancerKind, most_us: f64) {
    let result = Simulation::new(scenario).run(balancer, 1, &[]).unwrap();
    let case = format!("{balancer}, {:?}", scenario.transport.cc);
    let last = result.flows.iter().map(|flow| flow.end_us.unwrap_or(f64::INFINITY)).fold(0.0, f64::max);
    assert!(last < most_us, "{case}: {last} us");
    let count = |of: fn(&FlowResult) -> u64| result.flows.iter().map(of).sum::<u64>();
    let (sent, again) = (count(|flow| flow.sender.packets_sent), count(|flow| flow.sender.retransmits));
    assert!(2 * again < 5 * (sent - again), "{case}: {again} of {sent} packets retransmitted");
}

//= docs/specs/transport.md#TRN-66 trimmed again
#[test]
fn every_balancer_and_control_completes_with_scarce_uplinks() {
    for cc in CcKind::ALL {
        for receiver in ["selective", "irn"] {
            let scenario = scenario(cc, receiver, "[workload]\nkind = 'permutation'\nbytes = '128 KiB'");
            // A leaf's eight messages take 440 us over its two uplinks, and three times as long if
            // one uplink carries five of them.
            BalancerKind::ALL.iter().for_each(|balancer| ends(&scenario, *balancer, 2_500.0));
        }
    }
}

//= docs/specs/transport.md#TRN-66 trimmed again
#[test]
fn an_incast_completes_with_every_control() {
    for cc in CcKind::ALL {
        let scenario = scenario(cc, "selective", "[workload]\nkind = 'incast'\nbytes = '32 KiB'");
        // 31 messages take 850 us over the receiver's link.
        [BalancerKind::Ecmp, BalancerKind::Flowcut, BalancerKind::Mptcp, BalancerKind::Reps]
            .iter()
            .for_each(|balancer| ends(&scenario, *balancer, 4_000.0));
    }
}
