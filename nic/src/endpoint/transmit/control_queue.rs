//! Headers of frames to send, and the queue of control frames, which are sent before data.
//!
//! Packet path: T4 of `docs/architecture.md`, between the turns and the device port.

use std::{collections::VecDeque, net::IpAddr};

use bytes::Bytes;
use spray_wire::{Body, Common, DSCP_CONTROL, Data, Ecn, Envelope, Ev, EvPort, INITIAL_TTL, Ports};

use crate::endpoint::{EndpointConfig, Peer, connection::Connection, seal::FrameKey};

/// Control frames that fit without allocation. They are sent after each event, which queues a few.
const RESERVE: usize = 64;

/// The headers of a frame to send, and its seal.
#[derive(Debug)]
pub(crate) struct Headers {
    pub(crate) envelope: Envelope,
    pub(crate) common: Common,
    pub(crate) body: Body,
    /// The number and key of a sealed frame.
    pub(crate) seal: Option<FrameKey>,
}

/// A control frame to send, and the message of the key exchange that follows its headers.
pub(crate) type Control = (Headers, Bytes);

/// Control frames to send, and the fields that all frames of the endpoint have in common.
#[derive(Debug)]
pub(crate) struct ControlQueue {
    mac: [u8; 6],
    address: IpAddr,
    ports: Ports,
    shard: u8,
    /// The number of entropy values of the device.
    pub(crate) evs: u16,
    frames: VecDeque<Control>,
}

impl ControlQueue {
    pub(crate) fn new(config: &EndpointConfig) -> Self {
        let EndpointConfig { mac, address, ports, shard, .. } = *config;
        Self { mac, address, ports, shard: shard.number(), evs: u16::MAX, frames: VecDeque::with_capacity(RESERVE) }
    }

    #[cfg(feature = "xdp")]
    pub(crate) fn set_mac(&mut self, mac: [u8; 6]) {
        self.mac = mac;
    }

    /// Queues a frame of a connection. Frames of the handshake are not sealed; all others are if the connection has keys.
    pub(crate) fn push_to(&mut self, connection: &mut Connection, src_port: EvPort, body: Body) {
        let (mut exchange, mut seal) = (Bytes::new(), None);
        if matches!(body, Body::Connect(_) | Body::Accept(_)) {
            exchange = connection.exchange.clone();
        } else {
            seal = connection.frame_key();
        }
        let envelope = self.control_envelope(&connection.peer, connection.port, src_port);
        let common = self.common(connection, seal.as_ref());
        self.frames.push_back((Headers { envelope, common, body, seal }, exchange));
    }

    /// Queues the answer to a frame without a connection: it has the number and cookie of that frame's common header.
    pub(crate) fn push(&mut self, peer: &Peer, to: Common, src_port: EvPort, body: Body) {
        let envelope = self.control_envelope(peer, to.shard, src_port);
        let common = Common { shard: self.shard, ..to };
        self.frames.push_back((Headers { envelope, common, body, seal: None }, Bytes::new()));
    }

    /// Returns the headers of a data frame.
    #[inline]
    pub(crate) fn data_headers(&self, connection: &mut Connection, src_port: EvPort, data: Data) -> Headers {
        let seal = connection.frame_key();
        let common = self.common(connection, seal.as_ref());
        let envelope = self.envelope(&connection.peer, connection.port, src_port, connection.config.dscp);
        Headers { envelope, common, body: Body::Data(data), seal }
    }

    #[inline]
    fn common(&self, connection: &Connection, seal: Option<&FrameKey>) -> Common {
        let cookie = seal.map_or(connection.remote.cookie, FrameKey::number);
        Common { connection: connection.remote.connection, cookie, shard: self.shard }
    }

    fn control_envelope(&self, peer: &Peer, port: u8, src_port: EvPort) -> Envelope {
        // AF_XDP sends from every port.
        let src_port = if self.evs == u16::MAX { src_port } else { sendable(src_port, self.evs.into()) };
        Envelope { ecn: Ecn::NotEct, ..self.envelope(peer, port, src_port, DSCP_CONTROL) }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<&Control> {
        self.frames.front()
    }

    pub(crate) fn remove_first(&mut self) {
        self.frames.pop_front();
    }

    /// Returns the outer headers of a frame to port number `port` of the peer.
    #[inline]
    fn envelope(&self, peer: &Peer, port: u8, src_port: EvPort, dscp: u8) -> Envelope {
        Envelope {
            src_mac: self.mac,
            dst_mac: peer.mac,
            src: self.address,
            dst: peer.address,
            src_port,
            dst_port: self.ports.at(port),
            dscp,
            ecn: Ecn::Ect0,
            ttl: INITIAL_TTL,
        }
    }
}

/// Returns the port if it is one of the device's `evs` entropy values; otherwise one that is, always the same one.
//= docs/specs/endpoint.md#END-49 ports of answers
#[cold]
fn sendable(port: EvPort, evs: u32) -> EvPort {
    match port.ev(evs) {
        Some(_) => port,
        None => Ev::new((u32::from(port.number()) % evs) as u16).port(evs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/specs/endpoint.md#END-49 ports of answers
    #[test]
    fn every_port_is_answered_on_a_port_of_the_device() {
        for evs in [4, 32, 65_535] {
            for port in (0..=u16::MAX).map(EvPort::new) {
                let sent = sendable(port, evs);
                assert!(sent.ev(evs).is_some() && (port.ev(evs).is_none() || sent == port), "{port:?} of {evs}");
            }
        }
    }
}
