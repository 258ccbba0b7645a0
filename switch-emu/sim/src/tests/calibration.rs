//! Senders that learn their path: what they were told of it does not matter.

use super::*;

/// Mean completion time of 32 flows of 4 MiB, each to the next leaf, whose senders learn the path from a first guess that is
/// wrong by `factor`, or who are told with `None`. One cable has a tenth of its rate with `slow`.
fn mean_us(balancer: BalancerKind, slow: bool, factor: Option<f64>, seed: u64) -> f64 {
    let learns = factor.is_some();
    let factor = factor.unwrap_or(1.0);
    let network = leaf_spine(4, 8, 8);
    let links = network.links_named("leaf0->spine0").unwrap();
    let action = LinkAction::Rate { ppm: 100_000 };
    let event = LinkEvent { name: "leaf0->spine0".into(), links, at_ps: 0, until_ps: None, action };
    let flows: Vec<_> = (0..32).map(|src| flow(src, (src + 8) % 32, 1024 * PAYLOAD)).collect();
    let base_rtt_ps = (8_337_000.0 * factor) as u64;
    let mut config = flow_config(balancer);
    config.cc = CcConfig { control: config.cc.control, ..CcConfig::for_path(base_rtt_ps, BPS, 4_150) };
    config.path = PathConfig::new(balancer, base_rtt_ps, (100.0 * factor) as u32);
    config.window_packets = 1024;
    let config = if learns { config.learning() } else { config };
    let spec = SimSpec {
        network: &network,
        events: if slow { std::slice::from_ref(&event) } else { &[] },
        queue: &|bps| Thresholds { trim: false, ..queue(bps) },
        flows: &flows,
        triggers: &[],
        flow_config: &|_, _| config,
        ideal_code: false,
        frames: FrameBytes::all(64),
        seed,
        until_ps: 60_000 * US,
        sample_ps: 0,
    };
    let outcome = simulate(&spec).unwrap();
    let total: u64 = outcome.flows.iter().map(|flow| flow.acked_ps.expect("a complete flow")).sum();
    total as f64 / 32.0 / US as f64
}

#[test]
fn a_wrong_guess_at_the_path_changes_little() {
    //= docs/specs/calibration.md#CAL-5 guesses
    use BalancerKind::{Flowcut, Mprdma, Ops, Reps, RepsPlus};
    for balancer in [Ops, Reps, RepsPlus, Flowcut, Mprdma] {
        for slow in [false, true] {
            let mean = |factor| (5..9).map(|seed| mean_us(balancer, slow, factor, seed)).sum::<f64>() / 4.0;
            let right = mean(Some(1.0));
            for factor in [0.1, 10.0] {
                let wrong = mean(Some(factor));
                let apart = (wrong - right).abs() / right;
                assert!(apart < 0.02, "{balancer}, slow {slow}, guess times {factor}: {wrong} us against {right} us");
            }
        }
    }
}

#[test]
fn learning_the_path_costs_a_few_round_trips() {
    //= docs/specs/calibration.md#CAL-3 the start
    const ROUND_TRIP_US: f64 = 8.337;
    for balancer in [BalancerKind::Ops, BalancerKind::Reps, BalancerKind::RepsPlus] {
        let (told, learned) = (mean_us(balancer, false, None, 5), mean_us(balancer, false, Some(1.0), 5));
        assert!((told..told + 3.0 * ROUND_TRIP_US).contains(&learned), "{balancer}: {learned} us against {told} us");
    }
}
