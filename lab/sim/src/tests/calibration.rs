//! Senders that measure their path: their initial estimates do not matter.

use spray_core::cc::{CcKind, ControlConfig};

use super::*;

const BASE_RTT_PS: u64 = 8_337_000;

/// Returns the configuration of a sender whose path estimates are wrong by `factor`; it measures
/// the path as real connections do. With `None` the estimates are correct and never updated.
fn with_estimates(balancer: BalancerKind, control: ControlConfig, factor: Option<f64>) -> FlowConfig {
    let wrong = |value: u64| (value as f64 * factor.unwrap_or(1.0)) as u64;
    let mut config = flow_config(balancer);
    config.cc = control;
    config.path = Path { bdp_packets: wrong(100) as u32, ..Path::new(wrong(BASE_RTT_PS), wrong(BPS), 4_150) };
    config.window_packets = 1024;
    if factor.is_some() {
        // The minimum timeout of real connections is that of a host, independent of the path.
        config.rto = RtoConfig { initial_ps: 83 * US, min_ps: US, max_ps: 16 * US };
        config = config.learning();
    }
    config
}

/// Mean completion time of 32 flows of `packets` each to the next leaf. With `slow`, one cable has
/// a tenth of its rate.
fn mean_us(config: FlowConfig, slow: bool, packets: u64, seed: u64) -> f64 {
    let network = leaf_spine(4, 8, 8);
    let links = network.links_named("leaf0->spine0").unwrap();
    let action = LinkAction::Rate { ppm: 100_000 };
    let event = LinkEvent { name: "leaf0->spine0".into(), links, at_ps: 0, until_ps: None, action };
    let flows: Vec<_> = (0..32).map(|src| flow(src, (src + 8) % 32, packets * PAYLOAD)).collect();
    let events = if slow { std::slice::from_ref(&event) } else { &[] };
    let (queue, config) = (|bps| Thresholds { trim: false, ..queue(bps) }, |_| config);
    let outcome = simulate(&SimSpec { events, queue: &queue, seed, ..spec(&network, &flows, &config) }, 1).unwrap();
    let total: u64 = outcome.flows.iter().map(|flow| flow.acked_ps.expect("a complete flow")).sum();
    total as f64 / 32.0 / US as f64
}

fn dctcp() -> ControlConfig {
    flow_config(BalancerKind::Reps).cc
}

/// The mean of [`mean_us`] over seeds.
fn mean_of_seeds_us(config: FlowConfig, slow: bool, packets: u64) -> f64 {
    (5..13).map(|seed| mean_us(config, slow, packets, seed)).sum::<f64>() / 8.0
}

#[test]
fn wrong_initial_estimates_have_no_effect() {
    //= docs/specs/calibration.md#CAL-5 initial estimates
    let balancers = BalancerKind::ALL.into_iter().map(|balancer| (balancer, dctcp()));
    let rates = |kind: CcKind| kind != CcKind::FixedRate;
    let controls = CcKind::ALL.into_iter().filter(|kind| rates(*kind)).map(|kind| kind.config(&Default::default()));
    let controls = controls.map(|control| (BalancerKind::RepsPlus, control));
    for (balancer, control) in balancers.chain(controls) {
        for slow in [false, true] {
            let [low, right, high] =
                [0.1, 1.0, 10.0].map(|factor| mean_us(with_estimates(balancer, control, Some(factor)), slow, 1024, 5));
            assert_eq!((low, high), (right, right), "{balancer}, {control:?}, slow {slow}");
        }
    }
}

#[test]
fn one_slow_cable_does_not_delay_slow_start() {
    //= docs/specs/calibration.md#CAL-6 conservative slow start
    let config = with_estimates(BalancerKind::RepsPlus, dctcp(), Some(1.0));
    for packets in [1024, 4096] {
        let (healthy, slow) = (mean_of_seeds_us(config, false, packets), mean_of_seeds_us(config, true, packets));
        // A quarter of the flows share 7.1 cables of 8: 3.2 % more on average. Some packets take
        // the slow cable before it is detected.
        let capacity = healthy * (0.75 + 0.25 * 8.0 / 7.1);
        assert!(slow < capacity + 6.0, "{packets} packets: {slow} us against {capacity} us");
    }
}

#[test]
fn measuring_the_path_costs_a_few_round_trips() {
    //= docs/specs/calibration.md#CAL-3 slow start
    for balancer in [BalancerKind::Ops, BalancerKind::Reps, BalancerKind::RepsPlus] {
        let [known, measured] =
            [None, Some(1.0)].map(|factor| mean_us(with_estimates(balancer, dctcp(), factor), false, 1024, 5));
        assert!(
            (known..known + 3.0 * (BASE_RTT_PS as f64 / US as f64)).contains(&measured),
            "{balancer}: {measured} us against {known} us"
        );
    }
}

/// Flows of 32 MiB share uplinks of half their rates, with the default control: returns the mean
/// completion time and the share of retransmitted packets. Queues hold `limit_bytes`, and mark with
/// `marks`.
fn shared(limit_bytes: u32, marks: bool, seed: u64) -> (f64, f64) {
    let network = leaf_spine(4, 4, 8);
    let flows: Vec<_> = (0..32).map(|src| flow(src, (src + 8) % 32, 8192 * PAYLOAD)).collect();
    let config = with_estimates(BalancerKind::RepsPlus, CcKind::Nscc.config(&Default::default()), Some(1.0));
    let queue = |bps| {
        let usual = Thresholds { trim: false, limit_bytes, ..queue(bps) };
        if marks { usual } else { Thresholds { mark_min_bytes: limit_bytes, mark_max_bytes: limit_bytes, ..usual } }
    };
    let config = |_| config;
    let outcome = simulate(&SimSpec { queue: &queue, seed, ..spec(&network, &flows, &config) }, 1).unwrap();
    let total: u64 = outcome.flows.iter().map(|flow| flow.acked_ps.expect("a complete flow")).sum();
    let again: u64 = outcome.flows.iter().map(|flow| flow.sender.retransmits).sum();
    (total as f64 / 32.0 / US as f64, again as f64 / (32.0 * 8192.0))
}

#[test]
fn a_network_without_marking_is_equally_fast() {
    //= docs/specs/calibration.md#CAL-7 networks that do not mark
    //= docs/specs/calibration.md#CAL-8 losses by queue overflow
    for (limit_bytes, most_again) in [(600_000, 0.09), (4_000_000, 0.002)] {
        for seed in 1..3 {
            let ((marked_us, _), (us, again)) = (shared(limit_bytes, true, seed), shared(limit_bytes, false, seed));
            assert!(us < marked_us * 1.1, "{limit_bytes} bytes, seed {seed}: {us} us against {marked_us} us");
            assert!(again < most_again, "{limit_bytes} bytes, seed {seed}: {again}");
        }
    }
}
