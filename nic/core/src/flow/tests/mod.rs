//! Tests of sender and receiver; clauses are those of `docs/specs/transport.md`.

mod calibration;
mod channel;
mod edges;
mod erasure;
mod every_balancer;
mod fabric;
mod flowcut;
mod hostile;
mod limits;
mod pair;
mod probes;
mod rdma;
mod reassembly;
mod receiver;
mod sections;
mod sender;
mod silence;
mod terms;

use super::*;
use crate::cc::{CcConfig, CcKind};
use crate::cc::{ControlConfig, FixedRateConfig};
use crate::loss::{ReceiverKind, RtoConfig};
use crate::path::{BalancerKind, PathConfig};
use crate::units::Gbps;

const RECEIVERS: [ReceiverKind; 3] = [ReceiverKind::Selective, ReceiverKind::GoBackN, ReceiverKind::Irn];
const US: u64 = 1_000_000;
const BASE_RTT_PS: u64 = 10 * US;
const PAYLOAD: u32 = 1000;
const HEADER: u32 = 100;

/// 10 Gb/s and 10 us: a bandwidth-delay product of 12,500 bytes.
fn config() -> FlowConfig {
    let cc = CcConfig::for_path(BASE_RTT_PS, 10_000_000_000, PAYLOAD + HEADER);
    FlowConfig {
        window_packets: 64,
        rto: RtoConfig { initial_ps: 100 * US, min_ps: 50 * US, max_ps: 800 * US },
        ..FlowConfig::for_path(PAYLOAD, HEADER, PathConfig::new(BalancerKind::Reps, BASE_RTT_PS, 12), cc)
    }
}

/// A window that never closes, so that only the rule under test holds packets back.
fn open_config() -> FlowConfig {
    let mut config = config();
    config.cc.initial_window_bytes = 1 << 30;
    config.cc.max_window_bytes = 1 << 30;
    config
}

fn fixed(window_bytes: u64, rate_bps: u64) -> CcConfig {
    CcConfig {
        control: ControlConfig::FixedRate(FixedRateConfig { rate_gbps: Some(Gbps::from_bps(rate_bps)) }),
        initial_window_bytes: window_bytes,
        max_window_bytes: window_bytes,
        ..config().cc
    }
}
