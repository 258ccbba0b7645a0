//! Connections, links and queues without limits, to measure the machine with.

use spray_core::cc::{ControlConfig, FixedRateConfig};
use spray_core::flow::FlowConfig;
use spray_core::loss::RtoConfig;
use spray_core::path::{BalancerKind, Path};
use spray_core::units::Gbps;
use spray_fabric::Thresholds;

/// A plausible round trip through the machine.
const RTT_PS: u64 = 100_000_000;
/// Ten times what a thread may have to wait for its core.
pub const RTO_PS: u64 = 50_000_000_000;
/// Largest rate that a switch takes: the machine is to be measured, not the queues.
pub const RATE_BPS: u64 = 1_000_000_000_000;

/// A queue that no machine can fill. Runs in real time have it, since they measure the machine and not the fabric.
pub const OPEN_QUEUE: Thresholds = Thresholds {
    limit_bytes: 2_500_000,
    mark_min_bytes: 2_500_000,
    mark_max_bytes: 2_500_000,
    control_limit_bytes: 2_500_000,
    trim: false,
    ..Thresholds::NONE
};

/// A connection with a fixed window and without pacing, whose timers stay out of the way. In real time all packets of one poll
/// have one time, so that pacing would let a single one go.
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
