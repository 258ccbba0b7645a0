//! `spray serve`: the server of `spray perf`.

use std::collections::HashMap;
use std::net::IpAddr;

use bytes::Bytes;
use serde_json::json;
use spray_core::link::PS_PER_S;
use spray_nic::device::Device;
use spray_nic::{ConnectionId, Endpoint, EndpointConfig, EndpointEvent, MessageId, Shard, Time};

use super::cpu::Cpu;
use super::format::{Figures, Message, What};
use super::interval::Overhead;
use super::pump::Pump;
use super::{MOST_BYTES, adjust};
use crate::args;
use crate::confine::Reach;
use crate::failure::Outcome;
use crate::places::{self, HALF_OPEN, Pace, Party};
use crate::session::{PathOptions, Session, Step};
use crate::stop::Stop;
use crate::{note, say};

/// Timeout of the request, and later of progress in either direction.
const PATIENCE_PS: u64 = 10 * PS_PER_S;
const CHECK_PS: u64 = PS_PER_S;
const PINGED_BYTES: usize = 2 * MOST_BYTES as usize;

/// In a thread.
//= docs/specs/endpoint.md#END-27 holds 64 connections
const CLIENTS: usize = 64;

pub(super) fn has_room(config: &mut EndpointConfig) {
    adjust(config);
    config.max_connections = (CLIENTS + HALF_OPEN) as u32;
}

/// Serves clients until Ctrl-C.
///
/// # Errors
/// 2 if it could not start, 1 if the interface was removed, 130 after Ctrl-C.
pub fn serve(arguments: &args::Serve) -> Outcome {
    let path = PathOptions::new(&arguments.overrides)?;
    let own = arguments.interface.steered.from;
    let mut session = Session::open(&arguments.interface, own, &path, Shard::MAX, has_room)?;
    session.outlast_outages();
    let stop = Stop::on_signals()?;
    session.confine(&Reach::Read { named: Vec::new(), files: Vec::new() })?;
    let whose = if arguments.interface.trust.insecure { ", for anybody (--insecure)" } else { "" };
    note!("listening on {} as {}{whose}", session.name, session.first().endpoint.config().address);
    let mut servers: Vec<Server> = (0..session.shards()).map(|_| Server::default()).collect();
    let steps = servers.iter_mut().map(|server| |endpoint: &mut _, now| server.step(endpoint, now));
    let outcome = session.run_all(&stop, steps.collect());
    session.end();
    outcome
}

#[derive(Debug, Default)]
pub(super) struct Server {
    clients: HashMap<ConnectionId, Client>,
    check_at: Time,
}

#[derive(Debug)]
struct Client {
    peer: IpAddr,
    /// When it connected: data may precede a lost request.
    begun_at: Time,
    begun_cpu: Cpu,
    pump: Option<Pump>,
    asked: bool,
    ended: bool,
    /// Of the figures; 0 before they are sent.
    answer_bytes: u64,
    overhead: Overhead,
    pings: HashMap<MessageId, usize>,
    /// Bytes of both directions, and when they last grew.
    moved: (u64, Time),
    pace: Pace,
    /// Preempted: its connection is about to end.
    leaves: bool,
}

impl Server {
    pub(super) fn step<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) -> Step {
        while let Some(event) = endpoint.poll_event() {
            self.on_event(event, endpoint, now);
        }
        for (connection, client) in &mut self.clients {
            if let Some(pump) = &mut client.pump {
                pump.fill(endpoint, *connection, now);
            }
            client.answer(endpoint, *connection, now);
        }
        if now >= self.check_at {
            self.check_at = now.after(CHECK_PS);
            self.check(endpoint, now);
        }
        Ok(())
    }

    fn check<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) {
        for (&connection, client) in &mut self.clients {
            let stats = endpoint.connection_stats(connection).unwrap_or_default();
            let moved = stats.receiver.bytes + stats.sender.bytes_acked;
            if client.asked && moved > client.moved.0 {
                client.moved = (moved, now);
            }
            client.pace.on_bytes(moved, now);
            if now.since(client.moved.1) > PATIENCE_PS {
                note!("spray: {} makes no progress; its connection is closed", client.peer);
                endpoint.abort(connection);
            }
        }
    }

    fn accept<D: Device>(&mut self, new: ConnectionId, peer: IpAddr, endpoint: &mut Endpoint<D>, now: Time) {
        self.clients.insert(new, Client::new(peer, now));
        let others = self.clients.iter().filter(|(id, client)| **id != new && !client.leaves);
        let taken = others.map(|(&id, client)| {
            let overdue_ps = (!client.asked).then(|| now.since(client.moved.1));
            places::Slot { id, party: Party::of(endpoint, id, client.peer), pace: client.pace, overdue_ps }
        });
        let taken: Vec<_> = taken.collect();
        if taken.len() < CLIENTS {
            return;
        }
        let gone = places::gives_way(&taken, &Party::of(endpoint, new, peer)).unwrap_or(new);
        endpoint.abort(gone);
        if let Some(client) = self.clients.get_mut(&gone) {
            client.leaves = true;
            note!("spray: {CLIENTS} connections are served: that of {} is closed", client.peer);
        }
    }

    fn on_event<D: Device>(&mut self, event: EndpointEvent, endpoint: &mut Endpoint<D>, now: Time) {
        match event {
            EndpointEvent::Accepted { connection, peer, .. } => self.accept(connection, peer.address, endpoint, now),
            EndpointEvent::Received { connection, data, .. } => {
                let Some(client) = self.clients.get_mut(&connection) else { return };
                if client.take(&data, endpoint, connection, now).is_none() {
                    note!("spray: {} violates the protocol of `spray perf`; its connection is closed", client.peer);
                    endpoint.abort(connection);
                }
            }
            EndpointEvent::Delivered { connection, message, .. } => {
                let Some(client) = self.clients.get_mut(&connection) else { return };
                if client.answer_bytes > 0 {
                    client.overhead.acked = client.answer_bytes;
                } else if client.pings.remove(&message).is_none() {
                    client.pump.iter_mut().for_each(Pump::on_delivered);
                }
            }
            EndpointEvent::Closed { connection, .. } | EndpointEvent::Failed { connection, .. } => {
                if let Some(client) = self.clients.remove(&connection).filter(|client| client.asked) {
                    client.tell(endpoint, connection, now);
                }
            }
            _ => {}
        }
    }
}

impl Client {
    fn new(peer: IpAddr, now: Time) -> Self {
        Self {
            peer,
            begun_at: now,
            begun_cpu: Cpu::now(),
            pump: None,
            asked: false,
            ended: false,
            answer_bytes: 0,
            overhead: Overhead::default(),
            pings: HashMap::new(),
            moved: (0, now),
            pace: Pace::new(now),
            leaves: false,
        }
    }

    /// `None` if it violates the protocol.
    fn take<D: Device>(
        &mut self,
        message: &[u8],
        endpoint: &mut Endpoint<D>,
        connection: ConnectionId,
        now: Time,
    ) -> Option<()> {
        match Message::decode(message)? {
            Message::Request(request) if !self.asked => {
                self.asked = true;
                self.overhead.received += message.len() as u64;
                let sends = matches!(request.what, What::Down | What::Both);
                let for_ps = u64::from(request.seconds) * PS_PER_S;
                self.pump = sends.then(|| Pump::new(&request, now, for_ps));
            }
            Message::End if self.asked && !self.ended => {
                self.ended = true;
                self.overhead.received += message.len() as u64;
                self.pump.iter_mut().for_each(Pump::stop);
            }
            Message::Ping if !self.ended => self.ping(message.to_vec().into(), endpoint, connection)?,
            Message::Data | Message::Ping => {}
            Message::Request(_) | Message::End | Message::Figures(_) => return None,
        }
        Some(())
    }

    fn figures<D: Device>(&self, endpoint: &Endpoint<D>, connection: ConnectionId, now: Time) -> Figures {
        let stats = endpoint.connection_stats(connection).unwrap_or_default();
        let Cpu { user_us, system_us } = Cpu::now().since(self.begun_cpu);
        Figures {
            elapsed_us: now.since(self.begun_at) / 1_000_000,
            received_bytes: stats.receiver.bytes.saturating_sub(self.overhead.received),
            sent_bytes: stats.sender.bytes_acked.saturating_sub(self.overhead.acked),
            packets_sent: stats.sender.packets_sent,
            retransmits: stats.sender.retransmits,
            user_us,
            system_us,
        }
    }

    fn answer<D: Device>(&mut self, endpoint: &mut Endpoint<D>, connection: ConnectionId, now: Time) {
        let is_drained = self.pump.as_ref().is_none_or(Pump::is_drained);
        if self.ended && self.answer_bytes == 0 && is_drained {
            let answer = Message::Figures(self.figures(endpoint, connection, now)).encode();
            self.answer_bytes = answer.len() as u64;
            if endpoint.send(connection, answer).is_err() {
                endpoint.abort(connection);
            }
        }
    }

    /// `None` if too much is outstanding.
    fn ping<D: Device>(&mut self, ping: Bytes, endpoint: &mut Endpoint<D>, connection: ConnectionId) -> Option<()> {
        if self.pings.values().sum::<usize>() + ping.len() > PINGED_BYTES {
            return None;
        }
        let bytes = ping.len();
        self.pings.insert(endpoint.send(connection, ping).ok()?, bytes);
        Some(())
    }

    fn tell<D: Device>(&self, endpoint: &Endpoint<D>, connection: ConnectionId, now: Time) {
        let (figures, peer) = (self.figures(endpoint, connection, now), self.peer);
        say!("{peer}: {}", figures.line());
        // It can always be encoded.
        let _ = say::object(&json!({
            "from": peer,
            "seconds": figures.elapsed_us as f64 / 1e6,
            "received_bytes": figures.received_bytes,
            "sent_bytes": figures.sent_bytes,
            "retransmits": figures.retransmits,
        }));
    }
}

#[cfg(test)]
mod tests {
    use spray_nic::device::MemoryNetwork;
    use spray_nic::{EndpointConfig, Peer};

    use super::super::format::ping;
    use super::*;

    #[test]
    fn unsent_ping_replies_are_bounded() {
        let (address, mac) = ([10, 0, 0, 1].into(), [2; 6]);
        let mut config = EndpointConfig::real(address, mac, 3498).unwrap();
        adjust(&mut config);
        let mut endpoint = Endpoint::new(MemoryNetwork::default().attach(mac), config).unwrap();
        let peer = Peer { address: [10, 0, 0, 2].into(), mac: [4; 6] };
        let connection = endpoint.connect(Time::ZERO, peer, None).unwrap();
        let mut client = Client::new(peer.address, Time::ZERO);
        let mut take = |bytes| client.take(&ping(bytes), &mut endpoint, connection, Time::ZERO);
        assert_eq!([MOST_BYTES, MOST_BYTES, 1].map(&mut take), [Some(()), Some(()), None]);
    }
}
