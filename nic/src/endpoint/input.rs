//! What becomes of a frame that arrives.

use spray_core::Time;
use spray_core::flow::{Accept, Arrival};
use spray_core::host::Passage;
use spray_wire::{self as wire, Body, Frame};

use super::{ConnectionId, admission::repeat::Repeat, connection::Stage, machine::Machine, seal::Verdict};

impl Machine {
    /// Handles whatever a device has received. In this crate whatever the device: readers of frames are compiled once.
    pub(crate) fn on_bytes(&mut self, now: Time, bytes: &mut [u8]) {
        match wire::parse(bytes, self.config.ports) {
            Ok(Some(frame)) => self.on_frame(now, &frame),
            Ok(None) => self.stats.not_ours += 1,
            Err(wire::Error::Sealed) => self.on_sealed(now, bytes),
            Err(error) => self.on_malformed(error),
        }
    }

    /// Counts a frame that does not parse.
    fn on_malformed(&mut self, error: wire::Error) {
        match error {
            wire::Error::HeaderChecksum
            | wire::Error::PayloadChecksum
            | wire::Error::IpChecksum
            | wire::Error::UdpChecksum => self.stats.checksum += 1,
            _ => self.stats.malformed += 1,
        }
    }

    /// Opens a sealed frame in place, and handles it if it is genuine and new.
    //= docs/specs/endpoint.md#END-35 sealed connections
    fn on_sealed(&mut self, now: Time, frame: &mut [u8]) {
        let (table, stats, ports) = (&mut self.table, &mut self.stats, self.config.ports);
        let opened = wire::open(frame, ports, |sealed| {
            let connection = table.find(ConnectionId(sealed.connection)).and_then(|index| table.slot(index));
            let Some(connection) = connection else {
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
            verdict == Verdict::Genuine
        });
        match opened {
            Ok(Some(frame)) => self.on_frame(now, &frame),
            Ok(None) => self.stats.not_ours += 1,
            Err(wire::Error::Tag) => {}
            Err(error) => self.on_malformed(error),
        }
    }

    /// Handles a frame that arrived at `now`.
    fn on_frame(&mut self, now: Time, frame: &Frame<'_>) {
        self.stats.received.count(&frame.body);
        self.stats.trimmed += u64::from(frame.trimmed);
        if frame.envelope.dst != self.config.address {
            self.stats.wrong_address += 1;
            return;
        }
        match &frame.body {
            Body::Connect(connect) => self.on_connect(now, frame, *connect),
            Body::Reset(_) => self.on_reset(now, frame),
            _ => {
                if let Some(index) = self.authenticate(now, frame) {
                    self.on_authentic(now, index, frame);
                }
            }
        }
    }

    /// The slot of a frame's connection, if the frame carries the connection's cookie and comes from its peer.
    //= docs/specs/endpoint.md#END-6 number, cookie and address
    fn authenticate(&mut self, now: Time, frame: &Frame<'_>) -> Option<u32> {
        let Some(index) = self.table.find(ConnectionId(frame.common.connection)) else {
            self.stats.unknown_connection += 1;
            if self.admission.is_none() {
                self.send_reset(now, frame);
            }
            return None;
        };
        let connection = self.table.slot(index)?;
        // Who opened a sealed frame has found out whose it is.
        if !frame.sealed {
            //= docs/specs/wire.md#WIRE-16 cookies
            if connection.cookie != frame.common.cookie || connection.peer.address != frame.envelope.src {
                self.stats.wrong_cookie += 1;
                return None;
            }
            //= docs/specs/endpoint.md#END-35 sealed connections
            if connection.seals.is_some() && !matches!(frame.body, Body::Accept(_)) {
                self.stats.unsealed += 1;
                return None;
            }
        }
        // A plain Accept for a sealed connection may be anybody's.
        if frame.sealed || connection.seals.is_none() {
            connection.heard_at = now;
        }
        Some(index)
    }

    fn on_authentic(&mut self, now: Time, index: u32, frame: &Frame<'_>) {
        let Some(connection) = self.table.slot(index) else { return };
        match (connection.stage, &frame.body) {
            (_, Body::Close(close)) => self.on_close(now, index, *close, frame.envelope.src_port),
            (Stage::Connecting, Body::Retry(retry)) => self.on_retry(now, index, *retry, frame.common.shard),
            (Stage::Connecting | Stage::Open, Body::Accept(accept)) => {
                self.on_accept(now, index, *accept, frame.common.shard, frame.payload);
            }
            (Stage::Open, Body::Rekey(rekey)) => self.on_rekey(now, index, rekey, frame.envelope.src_port),
            (Stage::Open, _) => {
                connection.repeat = Repeat::OFF;
                self.on_open(now, index, frame);
            }
            (
                Stage::HalfOpen,
                Body::Data(_)
                | Body::Ack(_)
                | Body::Nack(_)
                | Body::Probe(_)
                | Body::ProbeAck(_)
                | Body::PullRequest(_),
            ) => {
                self.on_proof(now, index);
                self.on_open(now, index, frame);
            }
            (Stage::Connecting | Stage::HalfOpen | Stage::Closing, _) => self.stats.unexpected += 1,
        }
    }

    /// Handles a frame of an open connection.
    fn on_open(&mut self, now: Time, index: u32, frame: &Frame<'_>) {
        let Some(connection) = self.table.slot(index) else { return };
        let number = connection.id.raw();
        let (port, hops, marked) = (frame.envelope.src_port, frame.envelope.hops(), frame.envelope.marked());
        let Body::Data(data) = &frame.body else {
            let path = Passage { port, hops, marked, pause: frame.is_pause() };
            let fate = self.host.on_control(now, number, connection, &frame.body, &path, &mut self.owner);
            return self.on_fate(now, index, fate);
        };
        let (trimmed, last_port, astray) = (frame.trimmed, frame.is_trimmed_last(), self.astray);
        let arrival = Arrival { data: *data, port, marked, hops, trimmed, last_port, astray };
        match self.host.on_data(now, number, connection, &arrival, frame.payload, &mut self.owner) {
            Accept::New { .. } => self.placed_bytes += u64::from(data.payload_bytes),
            Accept::Trimmed | Accept::Trailer | Accept::OutOfOrder => {}
            Accept::Duplicate => self.stats.duplicates += 1,
            Accept::OutOfWindow => self.stats.out_of_window += 1,
            Accept::Invalid => self.stats.invalid += 1,
        }
    }
}
