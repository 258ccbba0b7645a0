//! Control frames on their way to the link, which sends them before data.

use std::{collections::VecDeque, net::IpAddr};

use bytes::Bytes;
use spray_wire::{Body, Common, DSCP_CONTROL, Ecn, Envelope, EvPort, INITIAL_TTL, Ports};

use super::{Peer, connection::Connection, seal::Ticket};

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

/// The frames to send, the addresses that they leave from, and the ports that they go to.
#[derive(Debug)]
pub(crate) struct Outlet {
    mac: [u8; 6],
    address: IpAddr,
    ports: Ports,
    frames: VecDeque<Control>,
}

impl Outlet {
    pub(crate) fn new(mac: [u8; 6], address: IpAddr, ports: Ports) -> Self {
        Self { mac, address, ports, frames: VecDeque::with_capacity(RESERVE) }
    }

    /// Queues a frame of a connection. The handshake's go as they are, others are sealed where the connection has keys.
    pub(crate) fn push_to(&mut self, connection: &mut Connection, src_port: EvPort, body: Body) {
        let (mut exchange, mut seal) = (Bytes::new(), None);
        if matches!(body, Body::Connect(_) | Body::Accept(_)) {
            exchange = connection.exchange_message();
        } else {
            seal = connection.ticket();
        }
        let envelope = self.control_envelope(&connection.peer, src_port);
        let common = connection.common(seal.as_ref());
        self.frames.push_back(Control { envelope, common, body, exchange, seal });
    }

    /// Queues a frame of no connection.
    pub(crate) fn push(&mut self, peer: &Peer, common: Common, src_port: EvPort, body: Body) {
        let envelope = self.control_envelope(peer, src_port);
        self.frames.push_back(Control { envelope, common, body, exchange: Bytes::new(), seal: None });
    }

    fn control_envelope(&self, peer: &Peer, src_port: EvPort) -> Envelope {
        Envelope { ecn: Ecn::NotEct, ..self.data_envelope(peer, src_port, DSCP_CONTROL) }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<&Control> {
        self.frames.front()
    }

    pub(crate) fn remove_first(&mut self) {
        self.frames.pop_front();
    }

    #[inline]
    pub(crate) fn data_envelope(&self, peer: &Peer, src_port: EvPort, dscp: u8) -> Envelope {
        Envelope {
            src_mac: self.mac,
            dst_mac: peer.mac,
            src: self.address,
            dst: peer.address,
            src_port,
            dst_port: self.ports.first(),
            dscp,
            ecn: Ecn::Ect0,
            ttl: INITIAL_TTL,
        }
    }
}
