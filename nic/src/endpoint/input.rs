//! Arriving frames: parsing, opening, and the check that a frame belongs to its connection.
//!
//! Packet path: R3 of `docs/architecture.md`, between the event loop and the halves of the connection.

use std::net::IpAddr;

use spray_core::Time;
use spray_wire::{self as wire, Body, Frame};

use super::{
    ConnectionId,
    admission::retransmit::Retransmit,
    connection::{Connection, Stage},
    machine::Machine,
    seal::Verdict,
    shared::{Handled, Outcome, Shared},
};

impl Machine {
    /// Handles a frame that arrived on the queue of this shard, or `misrouted` on that of another. Not generic over the
    /// device, so that the parser is instantiated once.
    pub(crate) fn on_bytes(&mut self, now: Time, bytes: &mut [u8], misrouted: bool) -> Handled {
        // By reference: a frame is 200 bytes, which a move would copy.
        match &wire::parse(bytes, self.config.ports) {
            Ok(Some(frame)) => return self.on_plain(now, frame, misrouted),
            Ok(None) => self.shared.stats.not_ours += 1,
            Err(wire::Error::Sealed) => return self.on_sealed(now, bytes, misrouted),
            Err(error) => self.on_malformed(*error),
        }
        Handled::default()
    }

    fn on_malformed(&mut self, error: wire::Error) {
        match error {
            wire::Error::HeaderChecksum
            | wire::Error::PayloadChecksum
            | wire::Error::IpChecksum
            | wire::Error::UdpChecksum => self.shared.stats.checksum += 1,
            _ => self.shared.stats.malformed += 1,
        }
    }

    /// Decrypts a sealed frame in place, and handles it if it is authentic and no replay.
    //= docs/specs/endpoint.md#END-35 sealed connections
    fn on_sealed(&mut self, now: Time, bytes: &mut [u8], misrouted: bool) -> Handled {
        let (table, stats, ports) = (&mut self.table, &mut self.shared.stats, self.config.ports);
        let mut found = None;
        let opened = wire::open(bytes, ports, |sealed| {
            let Some(connection) = table.get_mut(ConnectionId(sealed.connection)) else {
                stats.unknown_connection += 1;
                return false;
            };
            let seals = connection.seals.as_deref_mut().filter(|_| connection.peer.address == sealed.source);
            let Some(seals) = seals else {
                stats.wrong_cookie += 1;
                return false;
            };
            let verdict = seals.open(now, sealed);
            stats.forged += u64::from(verdict == Verdict::Forged);
            stats.replayed += u64::from(verdict == Verdict::Replayed);
            found = Some(connection);
            verdict == Verdict::Genuine
        });
        match (&opened, found) {
            (Ok(Some(frame)), Some(connection)) => {
                if self.shared.count(frame, self.config.address) {
                    let slot = connection.slot;
                    let handled = self.shared.on_authentic(now, connection, frame, misrouted);
                    return self.conclude(now, slot, frame, misrouted, handled);
                }
            }
            (Ok(Some(_)) | Err(wire::Error::Tag), _) => {}
            (Ok(None), _) => self.shared.stats.not_ours += 1,
            (Err(error), _) => self.on_malformed(*error),
        }
        Handled::default()
    }

    /// Handles a frame that is not sealed, if it has the connection's cookie and comes from its peer.
    //= docs/specs/endpoint.md#END-6 number, cookie and address
    fn on_plain(&mut self, now: Time, frame: &Frame<'_>, misrouted: bool) -> Handled {
        if !self.shared.count(frame, self.config.address) {
            return Handled::default();
        }
        match &frame.body {
            Body::Connect(connect) => self.on_connect(now, frame, *connect),
            Body::Reset(_) => self.on_reset(now, frame),
            _ => {
                let Some(connection) = self.table.get_mut(ConnectionId(frame.common.connection)) else {
                    self.shared.stats.unknown_connection += 1;
                    if self.admission.is_none() {
                        self.send_reset(now, frame);
                    }
                    return Handled::default();
                };
                let slot = connection.slot;
                //= docs/specs/wire.md#WIRE-16 cookies
                if connection.cookie != frame.common.cookie || connection.peer.address != frame.envelope.src {
                    self.shared.stats.wrong_cookie += 1;
                } else if connection.seals.is_some() && !matches!(frame.body, Body::Accept(_)) {
                    //= docs/specs/endpoint.md#END-35 sealed connections
                    self.shared.stats.unsealed += 1;
                } else {
                    let handled = self.shared.on_authentic(now, connection, frame, misrouted);
                    return self.conclude(now, slot, frame, misrouted, handled);
                }
            }
        }
        Handled::default()
    }

    /// Handles a frame that [`Shared::on_authentic`] has not, and the end of its connection.
    #[inline]
    fn conclude(
        &mut self,
        now: Time,
        slot: u32,
        frame: &Frame<'_>,
        misrouted: bool,
        handled: Option<Handled>,
    ) -> Handled {
        let handled = handled.unwrap_or_else(|| self.on_handshake(now, slot, frame, misrouted));
        if handled.outcome != Outcome::Open {
            self.on_outcome(now, slot, handled.outcome);
        }
        handled
    }

    /// Handles a frame of the handshake, of the exchange of fresh keys or of the end, or any frame while the connection
    /// is not open.
    fn on_handshake(&mut self, now: Time, slot: u32, frame: &Frame<'_>, misrouted: bool) -> Handled {
        let Some(connection) = self.table.slot(slot) else { return Handled::default() };
        match (connection.stage, &frame.body) {
            (_, Body::Close(close)) => self.on_close(now, slot, *close, frame.envelope.src_port),
            (Stage::Connecting, Body::Retry(retry)) => self.on_retry(now, slot, *retry, frame.common.shard),
            (Stage::Connecting | Stage::Open, Body::Accept(accept)) => {
                self.on_accept(now, slot, *accept, frame.common.shard, frame.payload);
            }
            (Stage::Open, Body::Rekey(rekey)) => self.on_rekey(now, slot, rekey, frame.envelope.src_port),
            (
                Stage::HalfOpen,
                Body::Data(_)
                | Body::Ack(_)
                | Body::Nack(_)
                | Body::Probe(_)
                | Body::ProbeAck(_)
                | Body::PullRequest(_),
            ) => {
                self.on_proof(now, slot);
                if let Some(connection) = self.table.slot(slot) {
                    return self.shared.on_frame(now, connection, frame, misrouted);
                }
            }
            _ => self.shared.stats.unexpected += 1,
        }
        Handled::default()
    }
}

impl Shared {
    /// Counts a frame. Returns whether it is addressed to this endpoint.
    fn count(&mut self, frame: &Frame<'_>, address: IpAddr) -> bool {
        self.stats.received.count(&frame.body);
        self.stats.trimmed += u64::from(frame.trimmed);
        let is_ours = frame.envelope.dst == address;
        self.stats.wrong_address += u64::from(!is_ours);
        is_ours
    }

    /// Handles a frame of an open connection. Returns `None` for one that [`Machine::on_handshake`] handles.
    #[inline]
    fn on_authentic(
        &mut self,
        now: Time,
        connection: &mut Connection,
        frame: &Frame<'_>,
        misrouted: bool,
    ) -> Option<Handled> {
        // An Accept for a connection with keys is not sealed, so it does not show that the peer is alive.
        if frame.sealed || connection.seals.is_none() {
            connection.last_arrival = now;
        }
        let is_handshake = matches!(frame.body, Body::Close(_) | Body::Accept(_) | Body::Rekey(_));
        if connection.stage != Stage::Open || is_handshake {
            return None;
        }
        connection.retransmit = Retransmit::OFF;
        Some(self.on_frame(now, connection, frame, misrouted))
    }
}
