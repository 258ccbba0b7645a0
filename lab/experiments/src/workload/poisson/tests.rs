use super::*;
use crate::workload::Sizes;
use spray_fabric::LeafSpine;

const BPS: u64 = 100_000_000_000;

fn network() -> Network {
    LeafSpine::uniform([3, 2, 4], BPS, 0).network()
}

fn poisson(load: f64, sizes: Sizes) -> Poisson {
    let sizes = Distribution::published(sizes, 1 << 20);
    Poisson { load, sizes, cross_leaf: true, start_ps: 5_000_000, until_ps: 200_000_000_000 }
}

fn flows(poisson: &Poisson, seed: u64) -> Vec<Flow> {
    poisson.flows(&network(), &(0..12).collect::<Vec<_>>(), seed)
}

//= docs/specs/open-loop.md#OL-1 times between arrivals
#[test]
fn messages_arrive_at_the_configured_load() {
    for load in [0.1, 0.6, 1.0] {
        let poisson = poisson(load, Sizes::Alibaba);
        let all = flows(&poisson, 1);
        let bytes: u64 = all.iter().map(|flow| flow.bytes).sum();
        let span_s = (poisson.until_ps - poisson.start_ps) as f64 / 1e12;
        let found = bytes as f64 * 8.0 / span_s / (12.0 * BPS as f64);
        assert!((found / load - 1.0).abs() < 0.05, "{load}: {found}");
        let expected = poisson.expected(&network(), &(0..12).collect::<Vec<_>>());
        assert!((all.len() as f64 / expected - 1.0).abs() < 4.0 / expected.sqrt(), "{} {expected}", all.len());
    }
}

//= docs/specs/open-loop.md#OL-1 times between arrivals
#[test]
fn gaps_are_exponential() {
    let all = flows(&poisson(0.8, Sizes::Alibaba), 2);
    let mut gaps: Vec<f64> = Vec::new();
    for host in 0..12 {
        let times: Vec<u64> = all.iter().filter(|flow| flow.src == host).map(|flow| flow.start_ps).collect();
        gaps.extend(times.windows(2).map(|pair| (pair[1] - pair[0]) as f64));
    }
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let allowed = 4.0 / (gaps.len() as f64).sqrt();
    // The share of exponential gaps that exceed this multiple of the mean.
    for means in [0.1, 0.5, 1.0, 2.0, 4.0] {
        let longer = gaps.iter().filter(|gap| **gap > means * mean).count() as f64 / gaps.len() as f64;
        assert!((longer - f64::exp(-means)).abs() < allowed, "{means}: {longer}");
    }
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.05);
}

//= docs/specs/open-loop.md#OL-2 follow from the seed alone
#[test]
fn messages_depend_on_the_seed_and_are_sorted_within_their_span() {
    let poisson = poisson(0.3, Sizes::Hadoop);
    let all = flows(&poisson, 1);
    assert_eq!(all, flows(&poisson, 1));
    assert_ne!(all, flows(&poisson, 2));
    assert!(all.iter().enumerate().all(|(number, flow)| flow.flow as usize == number && flow.src / 4 != flow.dst / 4));
    assert!(all.windows(2).all(|pair| pair[0].start_ps <= pair[1].start_ps));
    assert!(all.iter().all(|flow| (poisson.start_ps..poisson.until_ps).contains(&flow.start_ps)));
    // A longer span includes the messages of a shorter one.
    let shorter = Poisson { until_ps: poisson.until_ps / 2, ..poisson.clone() };
    let key = |flow: &Flow| (flow.start_ps, flow.src, flow.dst, flow.bytes);
    let early: Vec<_> = all.iter().filter(|flow| flow.start_ps < shorter.until_ps).map(key).collect();
    assert!(flows(&shorter, 1).iter().map(key).eq(early));
}
