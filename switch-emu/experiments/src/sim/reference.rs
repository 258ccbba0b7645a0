//! The settings of the published REPS simulations, on any fabric and matrix.

use spray_core::path::BalancerKind;

use crate::scenario::{Chassis, Emulation, FrameSizes, Queue, QueueLength, Scenario, Transport};
use crate::workload::Workload;
use spray_fabric::Network;

/// Bytes of a full data frame in the published simulations.
const PACKET_BYTES: u32 = 4_150;
/// Bytes of its header, and of every control frame.
const HEADER_BYTES: u32 = 64;

/// Open packets: four bandwidth-delay products across two tiers, more than two of the largest windows across three.
const WINDOW_PACKETS: u32 = 512;

/// `workload` on `network` as the published simulations run it: packets of 4,150 bytes of which 64 are header, control
/// frames of 64, queues of 100 packets marking between 20 % and 80 %, trimming, an ACK per packet, 65,535 entropy values,
/// losses found by trimmed headers and by the timer alone, which does not back off.
pub fn reference(name: &str, network: Network, workload: Workload) -> Scenario {
    Scenario {
        name: name.into(),
        condition: "healthy".into(),
        seed: 1,
        time_limit_ps: None,
        sample_ps: 0,
        network,
        workload,
        transport: Transport {
            balancers: vec![BalancerKind::Reps],
            payload_bytes: PACKET_BYTES - HEADER_BYTES,
            frames: Some(FrameSizes { header_bytes: HEADER_BYTES, control_bytes: HEADER_BYTES }),
            sack_gap_packets: None,
            published_acks: true,
            // No more than the least: no backoff.
            rto_max_ps: Some(0),
            window_packets: WINDOW_PACKETS,
            ..Transport::default()
        },
        queue: Queue {
            limit: QueueLength::Packets(100.0),
            mark_min: QueueLength::Percent(20.0),
            mark_max: QueueLength::Percent(80.0),
            control_limit: QueueLength::Percent(100.0),
            trimming: true,
        },
        link_events: Vec::new(),
        emulation: Emulation { dilation: None, chassis: Chassis::Fabric, threads: None },
    }
}
