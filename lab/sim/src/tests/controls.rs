//! Every congestion control under permutations and incasts.

use spray_core::cc::CcKind;

use super::*;

/// Runs `flows` over a leaf-spine of 32 hosts; returns the slowest flow's time in us, and the
/// numbers of trimmed packets and of timeouts.
fn outcome(kind: CcKind, flows: &[FlowSpec]) -> (u64, u64, u64) {
    let mut config = flow_config(BalancerKind::Reps);
    config.cc = kind.into();
    if kind == CcKind::FixedRate {
        config.path.max_window_bytes = u64::MAX;
    }
    let network = leaf_spine(4, 8, 8);
    let outcome = simulate(&spec(&network, flows, &|_| config), 1).unwrap();
    let slowest_us = outcome.flows.iter().map(|flow| flow.acked_ps.expect("a complete flow")).max().unwrap_or(0) / US;
    let sum = |count: fn(&FlowOutcome) -> u64| outcome.flows.iter().map(count).sum();
    (slowest_us, sum(|flow| flow.sender.nacks), sum(|flow| flow.sender.timeouts))
}

#[test]
fn permutations_and_incasts_end_near_the_bound_under_every_control() {
    let permutation: Vec<_> = (0..32).map(|src| flow(src, (src + 8) % 32, 4 << 20)).collect();
    let incast: Vec<_> = (8..24).map(|src| flow(src, 0, 1 << 20)).collect();
    // At 400 Gb/s with headers, 4 MiB take 85 us and 16 of 1 MiB 341 us; both plus a round trip of
    // 8.
    for kind in CcKind::ALL {
        let (took_us, trims, timeouts) = outcome(kind, &permutation);
        // One mark costs DCQCN half of its rate for longer than these flows last.
        let slack_us = if kind == CcKind::Dcqcn { 80 } else { 25 };
        assert!(took_us <= 93 + slack_us && timeouts == 0, "{kind}: {took_us} us, {trims} trims, {timeouts} timeouts");
        let (took_us, trims, timeouts) = outcome(kind, &incast);
        let reacts = !matches!(kind, CcKind::FixedRate | CcKind::FixedWindow);
        // 16 senders at line rate overflow the queue for 50 us until it halves them once more.
        let most_us = if kind == CcKind::Dcqcn { 349 * 3 / 2 } else { 349 * 5 / 4 };
        assert!(took_us <= most_us || !reacts, "{kind}: {took_us} us, {trims} trims, {timeouts} timeouts");
    }
}
