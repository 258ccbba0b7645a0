//! Frames and fabrics for the tests.

use spray_fabric::{Fabric, FabricHost, LinkChange, LinkState, Node, Port, RouteEpoch, Thresholds};
use spray_pipeline::shim::{SHIM_BYTES, Shim};
use spray_test_support::AnySeal;
use spray_wire::{
    Ack, Body, Common, DSCP_CONTROL, DSCP_DATA, Data, Ecn, Envelope, EvPort, Ports, Time, emit, emit_sealed,
    switch_view,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Virtual time at which the fixtures send.
pub(super) const START_PS: u64 = 1_000_000_000;
pub(super) const LATENCY_PS: u64 = 1_000_000;
pub(super) const PS_PER_BYTE: u64 = 80;
/// Payload of a full frame.
pub(super) const FULL: u16 = 3_000;

/// Returns two leaves (0, 1) with two hosts each, two spines (2, 3); 100 Gb/s, 1 us.
///
/// Ports: leaf 0 has 0, 1 to h0, h1 and 2, 3 to the spines; leaf 1 has 4, 5 to h2, h3 and 6, 7;
/// spine 0 has 8, 9 to the leaves, spine 1 has 10, 11.
pub(super) fn fabric() -> Fabric {
    let hosts = (0..4).map(host);
    let mut ports = Vec::new();
    for leaf in 0..2 {
        ports.extend(
            [Node::Host(2 * leaf), Node::Host(2 * leaf + 1), Node::Switch(2), Node::Switch(3)].map(|to| port(leaf, to)),
        );
    }
    for spine in 2..4 {
        ports.extend([Node::Switch(0), Node::Switch(1)].map(|to| port(spine, to)));
    }
    let routes = vec![routes(0, &[0, 1])];
    Fabric { seed: 7, hosts: hosts.collect(), salts: vec![0, 1, 2, 3], ports, routes, ..Fabric::default() }
}

/// Returns routes over some spines only.
pub(super) fn routes(valid_from_ps: u64, spines: &[usize]) -> RouteEpoch {
    let leaf = |own: usize, host: usize| {
        if host / 2 == own {
            vec![own * 4 + host % 2]
        } else {
            spines.iter().map(|spine| own * 4 + 2 + spine).collect()
        }
    };
    let group = |switch: usize, host: usize| {
        if switch < 2 { leaf(switch, host) } else { vec![8 + (switch - 2) * 2 + host / 2] }
    };
    let groups = (0..4).map(|switch| (0..4).map(|host| group(switch, host)).collect()).collect();
    RouteEpoch { valid_from_ps, groups }
}

fn port(switch: usize, to: Node) -> Port {
    let queue = Thresholds {
        limit_bytes: 100_000,
        mark_min_bytes: 20_000,
        mark_max_bytes: 80_000,
        control_limit_bytes: 10_000,
        trim: true,
        ..Thresholds::NONE
    };
    let name = format!("{switch}->{to:?}");
    Port { name, switch, to, rate_bps: 100_000_000_000, latency_ps: LATENCY_PS, queue, changes: Vec::new() }
}

/// Gives both uplinks of leaf 0 a state from a time on.
pub(super) fn uplinks(fabric: &mut Fabric, at_ps: u64, state: LinkState) {
    fabric.ports[2..4].iter_mut().for_each(|port| port.changes.push(LinkChange { at_ps, state }));
}

/// Returns a host with the addresses that frames have.
pub(super) fn host(number: u16) -> FabricHost {
    let mac = [2, 0, 0, 0, 0, number as u8];
    FabricHost { name: format!("h{number}"), v4: v4(number), v6: v6(number), mac, changes: Vec::new() }
}

fn v4(host: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1)
}

fn v6(host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host + 1)
}

/// The fields of a test frame.
#[derive(Clone, Copy)]
pub(super) struct Spec {
    pub(super) v6: bool,
    pub(super) from: u16,
    pub(super) to: u16,
    pub(super) port: u16,
    pub(super) ttl: u8,
    pub(super) ecn: Ecn,
    pub(super) time_ps: u64,
    /// The send time of its packet, or of the packet that it acknowledges.
    pub(super) stamp_ps: u64,
    /// The payload; `None` for an ACK.
    pub(super) payload: Option<u16>,
    /// Whether it is sealed, with arbitrary tags, which are not verified here.
    pub(super) sealed: bool,
}

impl Spec {
    /// A full data frame from h0 to h2.
    pub(super) const DATA: Self = Self {
        v6: false,
        from: 0,
        to: 2,
        port: 50_000,
        ttl: 64,
        ecn: Ecn::Ect0,
        time_ps: START_PS,
        stamp_ps: START_PS,
        payload: Some(FULL),
        sealed: false,
    };
    /// An ACK from h0 to h2.
    pub(super) const ACK: Self = Self { ecn: Ecn::NotEct, payload: None, ..Self::DATA };

    pub(super) fn len(&self) -> u64 {
        (self.frame().len() - SHIM_BYTES) as u64
    }

    pub(super) fn frame(&self) -> Vec<u8> {
        let address = |host| if self.v6 { IpAddr::V6(v6(host)) } else { IpAddr::V4(v4(host)) };
        let dscp = if self.payload.is_some() { DSCP_DATA } else { DSCP_CONTROL };
        let envelope = Envelope {
            src_mac: [2, 0, 0, 0, 0, self.from as u8],
            dst_mac: [2, 0, 0, 0, 0, self.to as u8],
            src: address(self.from),
            dst: address(self.to),
            src_port: EvPort::new(self.port),
            dst_port: spray_wire::Ports::DEFAULT.first(),
            dscp,
            ecn: self.ecn,
            ttl: self.ttl,
        };
        let common = Common { connection: 5, cookie: 0x0123_4567_89ab_cdef, ..Common::default() };
        let payload: Vec<u8> = (0..self.payload.unwrap_or(0)).map(|i| i as u8).collect();
        let mut out = vec![0; 4_096];
        let len = if self.sealed {
            emit_sealed(&mut out, &envelope, &common, &self.body(), payload.len(), &AnySeal)
        } else {
            emit(&mut out, &envelope, &common, &self.body(), &payload)
        };
        out.truncate(len.expect("a frame that fits"));
        [&Shim { virtual_time_ps: self.time_ps, ..Shim::default() }.before(&out), &*out].concat()
    }

    fn body(&self) -> Body {
        match self.payload {
            Some(payload_bytes) => Body::Data(Data {
                psn: 9,
                timestamp: Time::from_ps(self.stamp_ps),
                message: 1,
                offset: 0,
                message_bytes: u64::from(payload_bytes),
                payload_bytes,
                ack_now: false,
                ..Data::default()
            }),
            None => Body::Ack(Ack {
                cumulative: 8,
                timestamp_echo: Time::from_ps(self.stamp_ps),
                sack_base: 8,
                bitmap: [1, 0, 0, 0],
                port: EvPort::new(50_000),
                hops: 3,
                packets: 1,
                marked_packets: 0,
                marked: false,
                max_data: 1 << 20,
                ..Ack::default()
            }),
        }
    }
}

/// Trims a frame with the reference implementation of the wire crate.
pub(super) fn trimmed(mut frame: Vec<u8>) -> Vec<u8> {
    let len = switch_view::trim(&mut frame[SHIM_BYTES..], Ports::DEFAULT).expect("a data frame");
    frame.truncate(SHIM_BYTES + len);
    let mut inner = frame[SHIM_BYTES..].to_vec();
    let plain = spray_wire::parse(&inner, Ports::DEFAULT).map(|frame| frame.is_some_and(|frame| frame.trimmed));
    let seen = spray_wire::open(&mut inner, Ports::DEFAULT, |_| true);
    let seen = seen.map(|frame| frame.is_some_and(|frame| frame.trimmed));
    assert!(seen == Ok(true) || plain == Ok(true));
    frame
}
