//! Control frames on their way to the link, which sends them before data.

use std::{collections::VecDeque, net::IpAddr};

use spray_wire::{Body, Common, DSCP_CONTROL, DSCP_DATA, Ecn, Envelope, EvPort, INITIAL_TTL};

use super::{Peer, connection::Connection};

/// Room for the frames of one event: a handful at most. They are sent after each event.
const RESERVE: usize = 64;

/// A control frame to send.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) envelope: Envelope,
    pub(crate) common: Common,
    pub(crate) body: Body,
}

/// The frames to send, and the addresses that they leave from.
#[derive(Debug)]
pub(crate) struct Outlet {
    mac: [u8; 6],
    address: IpAddr,
    frames: VecDeque<Control>,
}

impl Outlet {
    pub(crate) fn new(mac: [u8; 6], address: IpAddr) -> Self {
        Self { mac, address, frames: VecDeque::with_capacity(RESERVE) }
    }

    /// Queues a frame of a connection.
    pub(crate) fn push_to(&mut self, connection: &Connection, src_port: EvPort, body: Body) {
        self.push(&connection.peer, connection.common(), src_port, body);
    }

    pub(crate) fn push(&mut self, peer: &Peer, common: Common, src_port: EvPort, body: Body) {
        let envelope = Envelope { dscp: DSCP_CONTROL, ecn: Ecn::NotEct, ..self.data_envelope(peer, src_port) };
        self.frames.push_back(Control { envelope, common, body });
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<&Control> {
        self.frames.front()
    }

    pub(crate) fn remove_first(&mut self) {
        self.frames.pop_front();
    }

    #[inline]
    pub(crate) fn data_envelope(&self, peer: &Peer, src_port: EvPort) -> Envelope {
        Envelope {
            src_mac: self.mac,
            dst_mac: peer.mac,
            src: self.address,
            dst: peer.address,
            src_port,
            dscp: DSCP_DATA,
            ecn: Ecn::Ect0,
            ttl: INITIAL_TTL,
        }
    }
}
