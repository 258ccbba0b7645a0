//! Bare frames between two endpoints, counted but not taken: what the transport between them is measured against.

use std::net::IpAddr;

use spray_wire::frame::envelop;
use spray_wire::offsets::{udp_payload_offset, v4, v6};

use rand_core::RngCore;
use spray_core::path::Ev;

use super::connection::Connection;
use super::machine::Machine;
use super::stats::BareArrivals;
use super::{ConnectionId, Endpoint};
use crate::device::Device;
use crate::device::bare::{Bare, least, number, payload};

impl<D: Device> Endpoint<D> {
    /// The fewest and most bytes of a bare frame, from its Ethernet header on.
    #[must_use]
    pub fn bare_bytes(&self) -> [usize; 2] {
        [least(self.config().address.is_ipv6()), self.link.device.max_frame()]
    }

    /// Bare frames of so many bytes to the peer of an open connection, by all of the connection's entropy values. They acknowledge and mean
    /// nothing, and are not sealed. `None` where there is no such connection, or no frame of that size.
    pub fn bare(&mut self, connection: ConnectionId, bytes: usize) -> Option<Bare> {
        let [least, most] = self.bare_bytes();
        let Machine { table, owner, host, .. } = &mut self.machine;
        let own = table.get(connection).filter(|own| own.flow.is_some() && (least..=most).contains(&bytes))?;
        let evs = own.config.path.evs.min(self.link.device.evs());
        let port = Ev::new(0).port(evs.into());
        let start = udp_payload_offset(own.peer.address.is_ipv6());
        let (mut frame, head) = (vec![FILL; bytes], payload(port.number(), own.remote.connection, host.rng.next_u64()));
        frame.get_mut(start..start + head.len())?.copy_from_slice(&head);
        envelop(
            &mut frame,
            &owner.control_queue.data_envelope(&own.peer, own.port, port, own.config.dscp),
            bytes - start,
        )
        .ok()?;
        Some(Bare::new(&frame).spread(evs))
    }

    /// Sends bare frames now, `most` at most and as many as the device takes, and returns how many.
    pub fn send_bare(&mut self, bare: &mut Bare, most: u64) -> u64 {
        let sent = bare.send(&mut self.link.device, most);
        self.asked += sent;
        self.link.flush();
        sent
    }

    /// Counts bare frames of so many bytes that come to a connection from its peer, beginning at 0; with 0 bytes counts them no longer. See
    /// [`ConnectionStats::bare_frames`](super::ConnectionStats::bare_frames).
    pub fn count_bare(&mut self, connection: ConnectionId, bytes: u32) {
        let Machine { table, counts_bare, .. } = &mut self.machine;
        if let Some(own) = table.find(connection).and_then(|slot| table.slot(slot)) {
            own.bare = BareArrivals { bytes, frames: if bytes > 0 { 0 } else { own.bare.frames } };
        }
        *counts_bare = table.iter().any(|own| own.bare.bytes > 0);
    }
}

/// What fills bare frames.
const FILL: u8 = 0xba;

impl Machine {
    /// Counts a bare frame, where its connection counts them. Whether it was one.
    pub(super) fn take_bare(&mut self, frame: &[u8]) -> bool {
        let Some((number, is_v6)) = number(frame, self.config.ports) else { return false };
        let own = self.table.find(ConnectionId(number)).and_then(|slot| self.table.slot(slot));
        let own = own.filter(|own| own.bare.bytes > 0 && is_from(own, frame, is_v6));
        own.map(|own| own.bare.frames += u64::from(frame.len() == own.bare.bytes as usize)).is_some()
    }
}

/// Whether the peer of a connection has sent a frame, as far as that says so.
fn is_from(connection: &Connection, frame: &[u8], is_v6: bool) -> bool {
    match connection.peer.address {
        IpAddr::V4(peer) => !is_v6 && frame.get(v4::SRC..v4::DST) == Some(&peer.octets()[..]),
        IpAddr::V6(peer) => is_v6 && frame.get(v6::SRC..v6::DST) == Some(&peer.octets()[..]),
    }
}
