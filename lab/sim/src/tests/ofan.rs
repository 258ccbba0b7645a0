//! The OFAN paper's lower bound on a permutation (OFAN appendix B), in its setting (OFAN §3): three
//! tiers, 800 Gb/s, 0.5 us a link, 4,096 bytes of payload and 62 of header, ACKs of 64 bytes, 20
//! bytes between frames.

use super::*;
use spray_fabric::FatTree;

const OFAN_BPS: u64 = 800_000_000_000;
const PS_PER_BYTE: u64 = 10;
const LINK_PS: u64 = 500_000;
const HOPS: u64 = 6;
const DATA: u64 = 4_096 + 62;
const ACK: u64 = 64;
const GAP: u64 = 20;

/// Earliest arrival of the ACK of packet `m`, by the paper's three modes of communication.
///
/// The last equation is printed with the data packets' time at each hop; the paper's own example,
/// 17.05694 us for 256 packets, results with the ACKs' time, which the preceding text also states.
fn bound_ps(m: u64) -> u64 {
    let propagation = HOPS * LINK_PS;
    let [data, ack] = [DATA, ACK].map(|bytes| bytes * PS_PER_BYTE);
    let [data_gap, ack_gap] = [DATA + GAP, ACK + GAP].map(|bytes| bytes * PS_PER_BYTE);
    let alone = (propagation + (HOPS - 1) * data).div_ceil(data_gap) + 1;
    let first = propagation + HOPS * data + (alone - 1) * data_gap + ack_gap;
    let interleaved = |i: u64| first + (i - 1) * (data_gap + ack_gap);
    let last_interleaved = m - alone + 1;
    let mut acks: Vec<u64> = (1..=last_interleaved).map(interleaved).collect();
    for i in last_interleaved + 1..=m {
        let sent = interleaved(last_interleaved) + (i - last_interleaved) * ack_gap;
        let arrived = acks[(i - alone) as usize] + (HOPS - 1) * ack + propagation;
        acks.push(sent.max(arrived));
    }
    acks[m as usize - 1]
}

/// The paper's `k`-ary fat tree.
fn fat_tree(k: usize) -> Network {
    let half = k / 2;
    FatTree::uniform([k, half, half, half * half, half], OFAN_BPS, LINK_PS).network()
}

/// Runs `flows` with the paper's ideal congestion control (full rate); returns the time of the last
/// ACK.
fn completion_ps(network: &Network, flows: &[FlowSpec], balancer: BalancerKind, seed: u64) -> u64 {
    let base_rtt_ps = 2 * HOPS * LINK_PS + HOPS * (DATA + ACK) * PS_PER_BYTE;
    let frame_bytes = (DATA + GAP) as u32;
    let path = Path {
        trimming: true,
        bdp_packets: 160,
        initial_window_bytes: 1 << 30,
        max_window_bytes: 1 << 30,
        ..Path::new(base_rtt_ps, OFAN_BPS, frame_bytes)
    };
    let flow = FlowConfig {
        sack_gap_packets: None,
        max_data_bytes: 1 << 40,
        max_message_bytes: 1 << 40,
        ..FlowConfig::new(balancer, path, frame_bytes - 4_096)
    };
    let deep = Thresholds {
        limit_bytes: 8_000_000,
        mark_min_bytes: 8_000_000,
        mark_max_bytes: 8_000_000,
        control_limit_bytes: 8_000_000,
        trim: false,
        ..Thresholds::NONE
    };
    let config = |_| flow;
    let spec = SimSpec {
        queue: &|_| deep,
        frames: FrameBytes::all((ACK + GAP) as u32),
        seed,
        until_ps: 1_000 * US,
        ..spec(network, flows, &config)
    };
    let outcome = simulate(&spec, 1).unwrap();
    outcome.flows.iter().map(|flow| flow.acked_ps.expect("a complete flow")).max().unwrap_or(0)
}

#[test]
fn the_bound_is_that_of_the_paper() {
    assert_eq!(bound_ps(256), 17_056_940);
}

#[test]
fn two_flows_reach_the_bound_and_never_beat_it() {
    let network = fat_tree(4);
    let bytes = 256 * 4_096;
    let there_and_back = [flow(0, 15, bytes), flow(15, 0, bytes)];
    let best = (1..=20).map(|seed| completion_ps(&network, &there_and_back, BalancerKind::Ecmp, seed)).min().unwrap();
    assert!(best >= bound_ps(256), "{best}");
    assert!(best < bound_ps(256) + 3 * (DATA + GAP) * PS_PER_BYTE, "{best}: within three packets of the bound");
}

#[test]
fn no_permutation_beats_the_bound() {
    let network = fat_tree(4);
    let all: Vec<_> = (0..16).map(|src| flow(src, (src + 8) % 16, 256 * 4_096)).collect();
    for balancer in BalancerKind::ALL {
        for seed in 1..=5 {
            let took = completion_ps(&network, &all, balancer, seed);
            assert!(took >= bound_ps(256), "{balancer}, seed {seed}: {took}");
        }
    }
}
