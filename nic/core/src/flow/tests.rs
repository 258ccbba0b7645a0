//! Tests of sender and receiver; clauses are those of `docs/specs/transport.md`.

mod calibration;
mod channel;
mod edges;
mod erasure;
mod every_balancer;
mod fabric;
mod feedback;
mod flowcut;
mod hostile;
mod limits;
mod own;
mod pair;
mod probes;
mod rdma;
mod reassembly;
mod receiver;
mod sections;
mod sender;
mod silence;
mod soak;
mod terms;

use super::*;
use crate::Time;
use crate::cc::CcKind;
use crate::cc::{ControlConfig, FixedRateConfig};
use crate::loss::{ReceiverKind, RtoConfig};
use crate::now::Path;
use crate::path::BalancerKind;
use crate::tests::at;
use crate::units::Gbps;

const RECEIVERS: [ReceiverKind; 3] = [ReceiverKind::Selective, ReceiverKind::GoBackN, ReceiverKind::Irn];
const US: u64 = 1_000_000;
const BASE_RTT_PS: u64 = 10 * US;
const PAYLOAD: u32 = 1000;
const HEADER: u32 = 100;

/// 10 Gb/s and 10 us: a bandwidth-delay product of 12,500 bytes.
fn config() -> FlowConfig {
    let path = Path { bdp_packets: 12, ..Path::new(BASE_RTT_PS, 10_000_000_000, PAYLOAD + HEADER) };
    FlowConfig {
        window_packets: 64,
        rto: RtoConfig { initial_ps: 100 * US, min_ps: 50 * US, max_ps: 800 * US },
        ..FlowConfig::new(BalancerKind::RepsNoFreezing, path, HEADER)
    }
}

/// A window that never closes, so that only the rule under test holds packets back.
fn open_config() -> FlowConfig {
    let mut config = config();
    config.path.initial_window_bytes = 1 << 30;
    config.path.max_window_bytes = 1 << 30;
    config
}

/// What a connection has sent before a test begins: the initial values of its counters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    pub packets: u64,
    pub messages: u32,
    pub bytes: u64,
}

/// Paces with a fixed window and rate.
fn fixed(config: FlowConfig, window_bytes: u64, rate_bps: u64) -> FlowConfig {
    let cc = ControlConfig::FixedRate(FixedRateConfig { rate_gbps: Some(Gbps::from_bps(rate_bps)) });
    let path = Path { initial_window_bytes: window_bytes, max_window_bytes: window_bytes, ..config.path };
    FlowConfig { cc, path, ..config }
}
