//! Data frames without a transport, for measurements.

use spray_fabric::FabricHost;
use spray_pipeline::shim::Shim;
use spray_wire::{Body, Common, Data, Ecn, Envelope, MAX_EVS, Ports};

/// Builds an IPv4 data frame behind an empty shim, which switches forward in real time.
pub fn data_frame(from: &FabricHost, to: &FabricHost, payload_bytes: u16) -> Vec<u8> {
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

/// Returns the header bytes of an IPv4 data frame.
pub fn data_header_bytes() -> u32 {
    spray_wire::header_bytes(false, spray_wire::Kind::Data) as u32
}
