//! Flowcut with senders that measure their path, and with queues of many round-trip times.

use super::*;

/// Completion time of a flow of 16 MB between the leaves, in milliseconds. The leaf's four uplinks
/// are slow, of 200 Mb/s, and one has a tenth of that, as over plain routers
/// (`docs/results/real-network.md`).
fn fct_ms(balancer: BalancerKind, path_seed: u64) -> f64 {
    let network = LeafSpine::uniform([2, 4, 1], 10_000_000_000, US).network();
    let uplink = |spine: usize| {
        let name = format!("leaf0->spine{spine}");
        let action = LinkAction::Rate { ppm: if spine == 0 { 2_000 } else { 20_000 } };
        LinkEvent { links: network.links_named(&name).unwrap(), name, at_ps: 0, until_ps: None, action }
    };
    let events: Vec<_> = (0..4).map(uplink).collect();
    let marks = |bps| Thresholds {
        trim: false,
        mark_min_bytes: 60_000,
        mark_max_bytes: 60_001,
        limit_bytes: 250_000,
        ..queue(bps)
    };
    let flows = [FlowSpec { path_seed: Some(path_seed), ..flow(0, 1, 4096 * PAYLOAD) }];
    let rto = RtoConfig { initial_ps: 10_000 * US, min_ps: 5_000 * US, max_ps: 80_000 * US };
    let config = FlowConfig { rto, window_packets: 1024, ..flow_config(balancer) }.learning();
    let config = |_| config;
    let spec = SimSpec {
        events: &events,
        queue: &marks,
        seed: path_seed,
        until_ps: 20_000_000 * US,
        ..spec(&network, &flows, &config)
    };
    let outcome = simulate(&spec, 1).unwrap();
    outcome.flows[0].acked_ps.expect("a complete flow") as f64 / US as f64 / 1e3
}

#[test]
fn no_flow_stays_on_a_slow_path() {
    //= docs/specs/flowcut.md#FLC-17 comparison of paths
    let ecmp: Vec<_> = (0..256).map(|seed| fct_ms(BalancerKind::Ecmp, seed)).collect();
    let best = ecmp.iter().copied().fold(f64::INFINITY, f64::min);
    let slow = ecmp.iter().filter(|fct| **fct > 5.0 * best).count();
    assert!((1..256).contains(&slow), "{slow} of 256 start on the slow path");
    let mut total = 0.0;
    for (seed, ecmp) in (0..256).zip(&ecmp) {
        let flowcut = fct_ms(BalancerKind::Flowcut, seed);
        // One of 256 draws the slow path four times in a row, and waits for another trial.
        assert!(flowcut < 6.5 * best, "path seed {seed}: {flowcut} ms, {ecmp} with ecmp, {best} at best");
        total += flowcut;
    }
    assert!(total / 256.0 < 1.25 * best, "{} ms in the mean, {best} at best", total / 256.0);
}
