//! Random failures and routing that converges at once, late or never, on both engines.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::sync::atomic::AtomicBool;

use spray_core::path::BalancerKind;
use spray_experiments::engine::Engine;
use spray_experiments::results::RunResult;
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::Sim;

/// Two of 16 links between leaves and spines are down from the start. The timeouts are long enough
/// for a whole window to be lost and retransmitted.
fn scenario(convergence: &str, switch: &str) -> Scenario {
    let text = format!(
        "name = \"routing\"\nseed = 4\n[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 2\n\
         [workload]\nkind = \"cross-leaf-permutation\"\nbytes = \"400 kB\"\n[switch]\nscheme = \"{switch}\"\n\
         [routing]\nconvergence_us = {convergence}\n\
         [[failure]]\nwhat = \"tor-agg\"\nshare = 0.12\naction = \"down\"\n"
    );
    Scenario::parse(Path::new("routing.toml"), &text).unwrap()
}

fn run(engine: &dyn Engine, scenario: &Scenario) -> RunResult {
    let tell = &mut |_| ();
    let prepared = engine.prepare(scenario, tell).unwrap();
    prepared.run(BalancerKind::Ops, 4, tell, &AtomicBool::new(false)).unwrap()
}

/// Returns the number of frames lost on the links that are down, and the time of the last loss in
/// ps.
fn lost(result: &RunResult) -> (u64, u64) {
    let counters = result.ports.iter().map(|port| &port.counters);
    let down: u64 = counters.clone().map(spray_experiments::results::PortCounters::drops_link).sum();
    (down, counters.map(|counters| counters.last_link_drop_ps).max().unwrap_or(0))
}

fn check(engine: &dyn Engine, schemes: &[&str]) {
    //= docs/specs/switching.md#SWC-22 routing converges after G
    for switch in schemes {
        let at_once = run(engine, &scenario("0", switch));
        assert!(at_once.flows.iter().all(|flow| flow.fct_us.is_some()), "{switch}");
        assert_eq!(lost(&at_once).0, 0, "{switch}: routes are right from the beginning");
        let late = run(engine, &scenario("20", switch));
        let (frames, last_ps) = lost(&late);
        assert!(frames > 0 && (10_000_000..30_000_000).contains(&last_ps), "{switch}: {frames} until {last_ps}");
        let (frames, last_ps) = lost(&run(engine, &scenario("\"never\"", switch)));
        assert!(frames > 0 && last_ps > 30_000_000, "{switch}: {frames} until {last_ps}");
    }
}

#[test]
fn routing_converges_in_the_simulator() {
    check(&Sim::default(), &["ecmp", "wcmp", "rr-permuted", "ofan"]);
}

#[cfg(all(target_os = "linux", feature = "xdp"))]
#[test]
fn routing_converges_in_the_kernel() {
    if !spray_test_support::has_root() {
        return;
    }
    check(&spray_experiments::xdp::Xdp::default(), &["ofan"]);
}
