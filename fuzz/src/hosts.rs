use std::net::{IpAddr, Ipv4Addr};

use spray_nic::Peer;
use spray_nic::device::{Device, MemoryDevice};
use spray_wire::{Ecn, Envelope, EvPort, Ports};

pub(crate) fn host(number: u8) -> Peer {
    Peer { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, number)), mac: [2, 0, 0, 0, 0, number] }
}

pub(crate) fn envelope(from: Peer, to: Peer) -> Envelope {
    Envelope {
        src_mac: from.mac,
        dst_mac: to.mac,
        src: from.address,
        dst: to.address,
        src_port: EvPort::new(50_000),
        dst_port: Ports::DEFAULT.first(),
        dscp: 0,
        ecn: Ecn::NotEct,
        ttl: 64,
    }
}

/// Sends bytes, or drops them if no frame is free.
pub(crate) fn transmit(device: &mut MemoryDevice, bytes: &[u8]) {
    let Some(frame) = device.allocate() else { return };
    device.frame_mut(&frame)[..bytes.len()].copy_from_slice(bytes);
    if let Err(frame) = device.transmit(frame, bytes.len() as u32) {
        device.release(frame);
    }
    device.flush().expect("its link is up");
}
