//! Frames that arrive at a port in the same picosecond are treated fairly.

use spray_core::cc::CcKind;

use super::*;

/// Returns the payload that each of `senders` synchronised hosts gets through host 0's port of 50
/// packets, before any retransmission.
fn delivered(senders: usize, seed: u64, threads: usize) -> Vec<u64> {
    let network = leaf_spine(1, 1, senders + 1);
    let flows: Vec<_> = (1..=senders).map(|src| flow(src, 0, 64 << 20)).collect();
    let few = |bps| Thresholds { limit_bytes: 50 * 4_150, trim: false, mark_min_bytes: 1 << 30, ..queue(bps) };
    let config = |_| {
        let mut config = flow_config(BalancerKind::Ecmp);
        (config.rto.initial_ps, config.rto.min_ps, config.rto.max_ps) = (10_000 * US, 10_000 * US, 10_000 * US);
        (config.path.max_window_bytes, config.path.trimming) = (u64::MAX, false);
        config.cc = CcKind::FixedRate.into();
        config
    };
    let spec = SimSpec { queue: &few, until_ps: 700 * US, seed, ..spec(&network, &flows, &config) };
    simulate(&spec, threads).unwrap().flows.iter().map(|flow| flow.receiver.bytes).collect()
}

//= docs/specs/emulation.md#EMU-9 equal senders get equal shares
#[test]
fn synchronised_senders_get_equal_shares_of_a_port() {
    for senders in [2, 8] {
        let seeds: Vec<_> = (1..=16).map(|seed| delivered(senders, seed, 1)).collect();
        let sums: Vec<u64> = (0..senders).map(|flow| seeds.iter().map(|delivered| delivered[flow]).sum()).collect();
        assert!(differ_percent(&sums) < 10.0, "{sums:?}");
        // About 600 packets get through: shares vary by chance, and with the seed.
        seeds.iter().for_each(|delivered| assert!(differ_percent(delivered) < 45.0, "{delivered:?}"));
        assert!(seeds.windows(2).all(|pair| pair[0] != pair[1]), "seeds differ: {seeds:?}");
        assert_eq!(delivered(senders, 1, 3), seeds[0]);
    }
}

/// The largest deviation from the mean in per cent.
fn differ_percent(bytes: &[u64]) -> f64 {
    let mean = bytes.iter().sum::<u64>() as f64 / bytes.len() as f64;
    bytes.iter().map(|bytes| (*bytes as f64 / mean - 1.0).abs() * 100.0).fold(0.0, f64::max)
}
