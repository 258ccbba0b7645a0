//! Connections, links and queues without limits, to measure the machine.

use spray_core::cc::{ControlConfig, FixedRateConfig};
use spray_core::flow::FlowConfig;
use spray_core::loss::RtoConfig;
use spray_core::path::{BalancerKind, Path};
use spray_core::units::Gbps;
use spray_fabric::Thresholds;

/// A plausible round-trip time through the machine.
const RTT_PS: u64 = 100_000_000;
/// Retransmission timeout: ten times the longest wait of a thread for a core.
pub const RTO_PS: u64 = 50_000_000_000;
/// Highest rate that a switch accepts, so that queues do not limit a measurement.
pub const RATE_BPS: u64 = 1_000_000_000_000;

/// A queue that no machine can fill, for runs in real time, which measure the machine.
pub const OPEN_QUEUE: Thresholds = Thresholds {
    limit_bytes: 2_500_000,
    mark_min_bytes: 2_500_000,
    mark_max_bytes: 2_500_000,
    control_limit_bytes: 2_500_000,
    trim: false,
    ..Thresholds::NONE
};

/// Returns a connection with a fixed window and long timeouts. It is not paced: in real time all
/// packets of a poll have the same time, so that pacing would release only one.
pub fn unpaced(balancer: BalancerKind, payload_bytes: u32, header_bytes: u32, window_bytes: u64) -> FlowConfig {
    let path = Path {
        initial_window_bytes: window_bytes,
        max_window_bytes: window_bytes,
        ..Path::new(RTT_PS, RATE_BPS, payload_bytes + header_bytes)
    };
    FlowConfig {
        rto: RtoConfig { initial_ps: RTO_PS, min_ps: RTO_PS, max_ps: RTO_PS },
        cc: ControlConfig::FixedRate(FixedRateConfig { rate_gbps: Some(Gbps::from_bps(u64::MAX)) }),
        ..FlowConfig::new(balancer, path, header_bytes)
    }
}
