//! `spray serve`: answers `spray perf`, several at once, until Ctrl-C.

use std::collections::HashMap;
use std::net::IpAddr;

use serde_json::json;
use spray_nic::device::Device;
use spray_nic::{ConnectionId, Endpoint, EndpointEvent, MessageId, Shard, Time};

use super::format::{Message, What, data};
use super::pump::Pump;
use super::{MOST_BYTES, adjust};
use crate::args;
use crate::confine::Reach;
use crate::failure::Outcome;
use crate::session::{PS_PER_S, PathOptions, Session, Step};
use crate::stop::Stop;
use crate::transfer::gbps;
use crate::{note, say};

/// How long a client may take for its request, and later for a byte in either direction.
const PATIENCE_PS: u64 = 10 * PS_PER_S;
/// How often that is looked at.
const CHECK_PS: u64 = PS_PER_S;
/// Most bytes of pings of one client that are on their way back: it sends one after the other.
const PINGED_BYTES: usize = 2 * MOST_BYTES as usize;

/// Waits for clients and does what they ask for.
///
/// # Errors
/// 2 when it could not start, 1 when the interface was removed, 130 after Ctrl-C.
pub fn serve(arguments: &args::Serve) -> Outcome {
    let path = PathOptions::new(&arguments.overrides)?;
    path.check()?;
    let own = arguments.interface.steered.from;
    let mut session = Session::open_shards(&arguments.interface, own, &path, Shard::MOST, adjust)?;
    let stop = Stop::on_signals()?;
    session.confine(&Reach::Read { named: Vec::new(), files: Vec::new() })?;
    let whose = if arguments.interface.trust.insecure { ", for anybody (--insecure)" } else { "" };
    note!("listening on {} as {}{whose}", session.device_name(), session.config().address);
    let mut servers: Vec<Server> = (0..session.shards()).map(|_| Server::default()).collect();
    let steps = servers.iter_mut().map(|server| |endpoint: &mut _, now| server.step(endpoint, now));
    let outcome = session.run_all(&stop, steps.collect());
    session.end();
    outcome
}

/// All clients.
#[derive(Debug, Default)]
pub(super) struct Server {
    clients: HashMap<ConnectionId, Client>,
    /// When they are next looked at.
    check_at: Time,
}

#[derive(Debug)]
struct Client {
    peer: IpAddr,
    /// When its request came.
    begun_at: Time,
    pump: Option<Pump>,
    /// A request has come.
    asked: bool,
    /// Pings on their way back, with their lengths.
    pings: HashMap<MessageId, usize>,
    /// Bytes that had gone both ways, and since when there are no more.
    moved: (u64, Time),
}

impl Server {
    /// Does what the last poll of the endpoint has made possible.
    pub(super) fn step<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) -> Step {
        while let Some(event) = endpoint.poll_event() {
            self.on_event(event, endpoint, now);
        }
        for (connection, client) in &mut self.clients {
            if let Some(pump) = &mut client.pump {
                pump.fill(endpoint, *connection, now);
            }
        }
        if now >= self.check_at {
            self.check_at = now.after(CHECK_PS);
            self.check(endpoint, now);
        }
        Ok(())
    }

    /// Ends the connections of clients that neither ask for anything nor move a byte: others may wait for their places.
    fn check<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) {
        for (&connection, client) in &mut self.clients {
            let stats = endpoint.connection_stats(connection).unwrap_or_default();
            let moved = stats.receiver.bytes + stats.sender.bytes_acked;
            if client.asked && moved > client.moved.0 {
                client.moved = (moved, now);
            }
            if now.since(client.moved.1) > PATIENCE_PS {
                note!("spray: {} does nothing; its connection is closed", client.peer);
                endpoint.abort(connection);
            }
        }
    }

    fn on_event<D: Device>(&mut self, event: EndpointEvent, endpoint: &mut Endpoint<D>, now: Time) {
        match event {
            EndpointEvent::Accepted { connection, peer, .. } => {
                self.clients.insert(connection, Client::new(peer.address, now));
            }
            EndpointEvent::Received { connection, data, .. } => {
                let Some(client) = self.clients.get_mut(&connection) else { return };
                if client.take(&data, endpoint, connection, now).is_none() {
                    note!("spray: {} says what no `spray perf` says; its connection is closed", client.peer);
                    endpoint.abort(connection);
                }
            }
            EndpointEvent::Delivered { connection, message, .. } => {
                let Some(client) = self.clients.get_mut(&connection) else { return };
                if client.pings.remove(&message).is_none() {
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
        Self { peer, begun_at: now, pump: None, asked: false, pings: HashMap::new(), moved: (0, now) }
    }

    /// Takes a message; `None` for one that no client sends.
    fn take<D: Device>(
        &mut self,
        message: &[u8],
        endpoint: &mut Endpoint<D>,
        connection: ConnectionId,
        now: Time,
    ) -> Option<()> {
        match Message::decode(message)? {
            Message::Request(_) if self.asked => None,
            Message::Request(request) => {
                (self.asked, self.begun_at) = (true, now);
                let until = now.after(u64::from(request.seconds) * PS_PER_S);
                let sends = matches!(request.what, What::Down | What::Both);
                self.pump = sends.then(|| Pump::new(data(request.bytes), until));
                Some(())
            }
            Message::Data => Some(()),
            Message::Ping if self.pings.values().sum::<usize>() + message.len() > PINGED_BYTES => None,
            Message::Ping => {
                let echo = endpoint.send(connection, message.to_vec().into()).ok()?;
                self.pings.insert(echo, message.len());
                Some(())
            }
        }
    }

    /// Says what has gone each way, once the connection has ended.
    fn tell<D: Device>(&self, endpoint: &Endpoint<D>, connection: ConnectionId, now: Time) {
        let stats = endpoint.connection_stats(connection).unwrap_or_default();
        let seconds = now.since(self.begun_at) as f64 / PS_PER_S as f64;
        let (received, sent, peer) = (stats.receiver.bytes, stats.sender.bytes_acked, self.peer);
        say!(
            "{peer}: {seconds:.1} s, received {received} bytes ({:.2} Gb/s), sent {sent} ({:.2} Gb/s)",
            gbps(received, seconds),
            gbps(sent, seconds)
        );
        // It has a form in JSON.
        let _ = say::object(&json!({
            "from": peer,
            "seconds": seconds,
            "received_bytes": received,
            "sent_bytes": sent,
            "retransmits": stats.sender.retransmits,
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
    fn pings_on_their_way_back_are_bounded() {
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
