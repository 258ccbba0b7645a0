//! Frames that arrive.

use spray_core::flow::{self, Arrival};
use spray_wire::{self as wire, Body, Frame, ProbeAck};

use super::{
    ConnectionId,
    connection::{Connection, State},
    machine::Machine,
    messages::Piece,
    service::KEEP_ALIVE,
};

impl Machine {
    /// Counts a frame that does not parse.
    pub(crate) fn on_malformed(&mut self, error: wire::Error) {
        match error {
            wire::Error::HeaderChecksum
            | wire::Error::PayloadChecksum
            | wire::Error::IpChecksum
            | wire::Error::UdpChecksum => self.stats.checksum += 1,
            _ => self.stats.malformed += 1,
        }
    }

    /// Handles a frame that arrived at `now_ps`.
    pub(crate) fn on_frame(&mut self, now_ps: u64, frame: &Frame<'_>) {
        self.stats.received.count(&frame.body);
        self.stats.trimmed += u64::from(frame.trimmed);
        if frame.envelope.dst != self.config.address {
            self.stats.wrong_address += 1;
            return;
        }
        match frame.body {
            Body::Connect(connect) => self.on_connect(now_ps, frame, connect),
            Body::Reset(_) => self.on_reset(now_ps, frame),
            _ => {
                if let Some(index) = self.authenticate(now_ps, frame) {
                    self.on_authentic(now_ps, index, frame);
                    self.service(now_ps, index);
                }
            }
        }
    }

    /// The slot of the connection that a frame belongs to, if it carries that connection's cookie and comes from its peer.
    //= docs/specs/endpoint.md#END-6
    fn authenticate(&mut self, now_ps: u64, frame: &Frame<'_>) -> Option<u32> {
        let Some(index) = self.table.find(ConnectionId(frame.common.connection)) else {
            self.stats.unknown_connection += 1;
            self.send_reset(now_ps, frame);
            return None;
        };
        let connection = self.table.slot(index)?;
        if connection.cookie != frame.common.cookie || connection.peer.address != frame.envelope.src {
            self.stats.wrong_cookie += 1;
            return None;
        }
        connection.heard_ps = now_ps;
        Some(index)
    }

    fn on_authentic(&mut self, now_ps: u64, index: u32, frame: &Frame<'_>) {
        let Some(connection) = self.table.slot(index) else { return };
        match (connection.state, frame.body) {
            (_, Body::Close(close)) => self.on_close(now_ps, index, close, frame.envelope.src_port),
            (State::Connecting | State::Open, Body::Accept(accept)) => self.on_accept(now_ps, index, accept),
            (State::Open, _) => self.on_open(now_ps, index, frame),
            (
                State::HalfOpen,
                Body::Data(_)
                | Body::Ack(_)
                | Body::Nack(_)
                | Body::Probe(_)
                | Body::ProbeAck(_)
                | Body::PullRequest(_),
            ) => {
                self.on_proof(now_ps, index);
                self.on_open(now_ps, index, frame);
            }
            (State::Connecting | State::HalfOpen | State::Closing, _) => self.stats.unexpected += 1,
        }
    }

    /// Handles a frame of an open connection.
    fn on_open(&mut self, now_ps: u64, index: u32, frame: &Frame<'_>) {
        let Some(connection) = self.table.slot(index) else { return };
        self.log.connection = connection.id;
        let Some(flow) = connection.flow.as_deref_mut() else { return };
        match frame.body {
            Body::Data(data) => {
                let arrival = arrival_of(frame, data);
                let accepted = flow.receiver.on_data(now_ps, &arrival);
                self.place(index, accepted, data, frame.payload);
                if frame.trimmed {
                    self.on_trimmed(now_ps, index);
                }
            }
            Body::Pull(pull) => flow.sender.on_pull(now_ps, &pull),
            Body::PullRequest(request) => self.on_pull_request(now_ps, index, request),
            Body::Ack(ack) => flow.sender.on_ack(now_ps, &ack, &mut self.log),
            Body::Nack(nack) => flow.sender.on_nack(now_ps, &nack, &mut self.log),
            Body::Probe(probe) => self.answer_probe(index, frame, probe),
            Body::ProbeAck(answer) if answer.token == KEEP_ALIVE => {}
            Body::ProbeAck(answer) => flow.sender.on_probe_ack(now_ps, &answer, &mut self.log),
            _ => self.stats.unexpected += 1,
        }
    }

    /// Puts a payload in its place if the receiver wants it.
    fn place(&mut self, index: u32, accepted: flow::Accept, data: wire::Data, payload: &[u8]) {
        let Some(Connection { flow: Some(flow), .. }) = self.table.slot(index) else { return };
        match accepted {
            flow::Accept::New { place: false } | flow::Accept::Trimmed | flow::Accept::Probe => {}
            flow::Accept::New { place: true } => {
                let wire::Data { message, message_bytes, offset, timestamp_ps, .. } = data;
                let piece = Piece { message, message_bytes, offset, timestamp_ps, payload };
                if !flow.inbox.place(&piece, &mut self.pool) {
                    self.stats.invalid += 1;
                }
            }
            flow::Accept::Duplicate => self.stats.duplicates += 1,
            flow::Accept::OutOfWindow => self.stats.out_of_window += 1,
            flow::Accept::Invalid => self.stats.invalid += 1,
        }
    }

    /// Answers over the port that the probe came on, as an acknowledgement would.
    fn answer_probe(&mut self, index: u32, frame: &Frame<'_>, probe: wire::Probe) {
        let ev = frame.envelope.src_port;
        let (hops, marked) = (frame.envelope.hops(), frame.envelope.marked());
        let answer = ProbeAck { token: probe.token, timestamp_ps: probe.timestamp_ps, ev, hops, marked };
        if let Some(connection) = self.table.slot(index) {
            self.outlet.push_to(connection, ev, Body::ProbeAck(answer));
        }
    }
}

fn arrival_of(frame: &Frame<'_>, data: wire::Data) -> Arrival {
    let wire::Envelope { src_port: port, .. } = frame.envelope;
    let (marked, hops) = (frame.envelope.marked(), frame.envelope.hops());
    Arrival { data, port, marked, hops, trimmed: frame.trimmed }
}
