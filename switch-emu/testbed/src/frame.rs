//! What measurements of the machine send: connections that nothing holds back, and frames without a transport.

use spray_core::cc::{ControlConfig, FixedRateConfig};
use spray_core::flow::FlowConfig;
use spray_core::loss::RtoConfig;
use spray_core::path::{BalancerKind, Path};
use spray_core::units::Gbps;
use spray_fabric::Host;
use spray_pipeline::shim::Shim;
use spray_wire::{Body, Common, Data, Ecn, Envelope, MAX_EVS, Ports};

/// A plausible round trip through the machine.
pub(crate) const RTT_PS: u64 = 100_000_000;
/// Ten times what a thread may have to wait for its core.
pub(crate) const RTO_PS: u64 = 50_000_000_000;
/// Largest rate that a switch takes: the machine is to be measured, not the queues.
pub(crate) const RATE_BPS: u64 = 1_000_000_000_000;

/// A connection with a fixed window and without pacing, whose timers stay out of the way. In real time all packets of one poll
/// have one time, so that pacing would let a single one go.
pub(crate) fn unpaced(balancer: BalancerKind, payload_bytes: u32, header_bytes: u32, window_bytes: u64) -> FlowConfig {
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

/// A data frame with `payload_bytes` from one host to another over IPv4, in real time, with the shim for which switches forward it.
pub(crate) fn data_frame(from: &Host, to: &Host, payload_bytes: u16) -> Vec<u8> {
    let envelope = Envelope {
        src_mac: from.mac,
        dst_mac: to.mac,
        src: from.v4.into(),
        dst: to.v4.into(),
        src_port: spray_wire::Ev::new(0).port(MAX_EVS),
        dst_port: Ports::DEFAULT.first(),
        dscp: spray_wire::DSCP_DATA,
        ecn: Ecn::Ect0,
        ttl: spray_wire::INITIAL_TTL,
    };
    let data = Data { message_bytes: payload_bytes.into(), payload_bytes, ..Data::default() };
    let payload = vec![0x5a; payload_bytes.into()];
    let mut frame = vec![0; data_header_bytes() as usize + payload.len()];
    spray_wire::emit(&mut frame, &envelope, &Common::default(), &Body::Data(data), &payload)
        .expect("both addresses are of IPv4, the payload is as long as the header says, and there is room for both");
    [&Shim::default().before(&frame), &*frame].concat()
}

/// Bytes of a data frame over IPv4 besides its payload.
pub(crate) fn data_header_bytes() -> u32 {
    spray_wire::header_bytes(false, spray_wire::Kind::Data) as u32
}
