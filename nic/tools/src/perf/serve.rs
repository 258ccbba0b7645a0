//! `spray serve`: answers `spray perf`, several at once, until Ctrl-C.

use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::ControlFlow;

use serde_json::json;
use spray_nic::device::Device;
use spray_nic::{ConnectionId, Endpoint, EndpointEvent, Shard, Time};

use super::adjust;
use super::format::{Message, What, data};
use super::pump::Pump;
use crate::args;
use crate::confine::Reach;
use crate::failure::Outcome;
use crate::session::{PS_PER_S, Path, Session, Step};
use crate::stop::Stop;
use crate::transfer::gbps;
use crate::{note, say};

/// Waits for clients and does what they ask for.
///
/// # Errors
/// 2 when it could not start, 1 when the interface was removed, 130 after Ctrl-C.
pub fn serve(arguments: &args::Serve) -> Outcome {
    let path = Path::new(&arguments.overrides)?;
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
}

#[derive(Debug)]
struct Client {
    peer: IpAddr,
    /// When its request came.
    begun_at: Time,
    pump: Option<Pump>,
    /// A request has come.
    asked: bool,
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
        ControlFlow::Continue(())
    }

    fn on_event<D: Device>(&mut self, event: EndpointEvent, endpoint: &mut Endpoint<D>, now: Time) {
        match event {
            EndpointEvent::Accepted { connection, peer, .. } => {
                let client = Client { peer: peer.address, begun_at: now, pump: None, asked: false };
                self.clients.insert(connection, client);
            }
            EndpointEvent::Received { connection, data, .. } => {
                let Some(client) = self.clients.get_mut(&connection) else { return };
                if client.take(&data, endpoint, connection, now).is_none() {
                    note!("spray: {} says what no `spray perf` says; its connection is closed", client.peer);
                    endpoint.abort(connection);
                }
                endpoint.recycle(data);
            }
            EndpointEvent::Delivered { connection, .. } => {
                let pump = self.clients.get_mut(&connection).and_then(|client| client.pump.as_mut());
                pump.into_iter().for_each(Pump::on_delivered);
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
            // Where there is no room, the client waits in vain, which is its own doing: it has one under way.
            Message::Ping => endpoint.send(connection, message.to_vec().into()).ok().map(drop),
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
