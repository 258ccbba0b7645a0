//! Control frames on their way to the link, which sends them before data.

use std::{collections::VecDeque, net::IpAddr};

use bytes::Bytes;
use spray_wire::{Body, Common, DSCP_CONTROL, Ecn, Envelope, Ev, EvPort, INITIAL_TTL, Ports};

use crate::endpoint::{EndpointConfig, Peer, connection::Connection, seal::Ticket};

/// Room for the frames of one event: a handful at most. They are sent after each event.
const RESERVE: usize = 64;

/// A control frame to send.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) envelope: Envelope,
    pub(crate) common: Common,
    pub(crate) body: Body,
    /// A message of the key exchange.
    pub(crate) exchange: Bytes,
    /// With what it is sealed, if it is.
    pub(crate) seal: Option<Ticket>,
}

/// The frames to send, what they say of their sender, and the ports that they go to.
#[derive(Debug)]
pub(crate) struct ControlQueue {
    mac: [u8; 6],
    address: IpAddr,
    ports: Ports,
    shard: u8,
    /// The number of entropy values that the device can send by.
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

    /// Queues a frame of a connection. The handshake's go as they are, others are sealed where the connection has keys.
    pub(crate) fn push_to(&mut self, connection: &mut Connection, src_port: EvPort, body: Body) {
        let (mut exchange, mut seal) = (Bytes::new(), None);
        if matches!(body, Body::Connect(_) | Body::Accept(_)) {
            exchange = connection.exchange.clone();
        } else {
            seal = connection.ticket();
        }
        let envelope = self.control_envelope(&connection.peer, connection.port, src_port);
        let common = self.common(connection, seal.as_ref());
        self.frames.push_back(Control { envelope, common, body, exchange, seal });
    }

    /// Queues a frame of no connection that answers one with the common header `to`: it goes where that came from, with the same number and
    /// cookie.
    pub(crate) fn push(&mut self, peer: &Peer, to: Common, src_port: EvPort, body: Body) {
        let envelope = self.control_envelope(peer, to.shard, src_port);
        let common = Common { shard: self.shard, ..to };
        self.frames.push_back(Control { envelope, common, body, exchange: Bytes::new(), seal: None });
    }

    /// The fields that every frame to a connection's peer carries.
    #[inline]
    pub(crate) fn common(&self, connection: &Connection, seal: Option<&Ticket>) -> Common {
        let cookie = seal.map_or(connection.remote.cookie, Ticket::number);
        Common { connection: connection.remote.connection, cookie, shard: self.shard }
    }

    fn control_envelope(&self, peer: &Peer, port: u8, src_port: EvPort) -> Envelope {
        // AF_XDP sends by every port.
        let src_port = if self.evs == u16::MAX { src_port } else { sendable(src_port, self.evs.into()) };
        Envelope { ecn: Ecn::NotEct, ..self.data_envelope(peer, port, src_port, DSCP_CONTROL) }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<&Control> {
        self.frames.front()
    }

    pub(crate) fn remove_first(&mut self) {
        self.frames.pop_front();
    }

    /// What is around a data frame to that one of the peer's ports.
    #[inline]
    pub(crate) fn data_envelope(&self, peer: &Peer, port: u8, src_port: EvPort, dscp: u8) -> Envelope {
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

/// The port itself, if it stands for one of the device's `evs` entropy values; otherwise one that does, always the same one.
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
    fn every_port_is_answered_by_one_of_the_device() {
        for evs in [4, 32, 65_535] {
            for port in (0..=u16::MAX).map(EvPort::new) {
                let sent = sendable(port, evs);
                assert!(sent.ev(evs).is_some() && (port.ev(evs).is_none() || sent == port), "{port:?} of {evs}");
            }
        }
    }
}
