//! `spray tunnel`: carries IP packets to other machines over all paths (docs/tunnel.md).

mod fair;
mod inbound;
mod lanes;
mod link;
mod packet;
pub(crate) mod remote;

use std::collections::HashSet;
use std::hash::RandomState;
use std::sync::Once;

use spray_nic::device::Device;
use spray_nic::net::{Resolver, Tun};
use spray_nic::{ConnectionId, Endpoint, EndpointConfig, EndpointEvent, Time};

use self::inbound::{Inbound, THREADS};
use self::link::{Counted, Gateway};
use self::packet::{MESSAGE, PACKET};
use self::remote::behind;
use self::remote::{Remote, Subnet};
use crate::args;
use crate::confine::Reach;
use crate::failure::{Failure, Outcome};
use crate::note;
use crate::session::{PathOptions, Session, Step};
use crate::stop::Stop;

/// In packets.
const QUEUE: u32 = 128;
/// Packets between two polls of the endpoint.
const BATCH: usize = 32;
/// Outstanding bytes of a peer in a connection.
const GRANT_BYTES: u64 = 8 << 20;

/// Carries packets between the TUN device and other machines, until Ctrl-C.
///
/// # Errors
/// 2 if it could not start, 1 if the interface was removed, 130 after Ctrl-C.
pub fn tunnel(arguments: &args::Tunnel) -> Outcome {
    check(arguments)?;
    let path = PathOptions::new(&arguments.overrides)?;
    let remotes = &arguments.peer;
    let adjust = |config: &mut EndpointConfig| {
        // For each machine: its connections, ours, and those of a predecessor; some are half-open.
        config.max_connections = (remotes.len() * (Inbound::most(1) + 2) + 16) as u32;
        config.flow.max_message_bytes = MESSAGE as u64;
        config.flow.max_data_bytes = GRANT_BYTES;
    };
    let mut session = Session::open(&arguments.interface, Some(remotes[0].address), &path, THREADS, adjust)?;
    let own = session.first().endpoint.config().address;
    if let Some(same) = remotes.iter().find(|peer| peer.address == own) {
        return Err(Failure::refused(format!("--peer {} is this machine itself", same.address)));
    }
    session.outlast_outages();
    let queues = open(arguments, session.shards())?;
    for (shard, queue) in queues.iter().enumerate() {
        session.wake(shard, queue.wake_fd());
    }
    let stop = Stop::on_signals()?;
    session.confine(&Reach::Read { named: Vec::new(), files: Vec::new() })?;
    let whose = if arguments.interface.trust.insecure { ", for anybody (--insecure)" } else { "" };
    note!("spray: listening on {} as {own}{whose}; packets go by {}", session.name, queues[0].name());
    let tunnel = |(shard, queue)| Tunnel::new(shard, queue, remotes, &session);
    let mut threads: Vec<_> = queues.into_iter().enumerate().map(tunnel).collect();
    let steps = threads.iter_mut().map(|tunnel| |endpoint: &mut _, now| tunnel.step(endpoint, now));
    let outcome = session.run_all(&stop, steps.collect());
    session.end();
    for (at, remote) in remotes.iter().enumerate() {
        let Counted { sent, received, dropped, refused } = threads.iter().map(|tunnel| tunnel.links[at].counted).sum();
        let address = remote.address;
        note!("spray: {address}: {sent} packets out, {received} in; {dropped} dropped, {refused} refused");
    }
    outcome
}

fn check(arguments: &args::Tunnel) -> Outcome {
    let peers = &arguments.peer;
    let within = |network: &&Subnet| peers.iter().any(|peer| network.contains(peer.address));
    if let Some(Subnet { address, bits }) = arguments.address.iter().find(within) {
        return Err(Failure::refused(format!(
            "--address {address}/{bits} contains the outer address of a --peer, so that the tunnel's packets would loop; \
             give a network that is used nowhere else, such as 10.9.0.1/24"
        )));
    }
    if let Some(Remote { address, .. }) = peers.iter().find(|peer| peers.len() > 1 && peer.networks.is_empty()) {
        let message = format!("several --peer: give the networks behind each, as in --peer {address}=10.9.0.2");
        return Err(Failure::refused(message));
    }
    //= docs/specs/endpoint.md#END-42 an address to each key
    let (first, trust) = (peers[0].address, &arguments.interface.trust.trusted);
    if peers.len() > 1 && trust.iter().any(|trusted| trusted.address.is_none()) {
        let message = format!("several --peer: give the address of each key, as in --trust {first}=KEY");
        return Err(Failure::refused(message));
    }
    if let Some(peer) = peers.iter().find(|peer| {
        let bound = |trusted: &args::Trusted| trusted.address.is_none_or(|address| address == peer.address);
        !trust.is_empty() && !trust.iter().any(bound)
    }) {
        let address = peer.address;
        return Err(Failure::refused(format!("--peer {address} has no key: give it one by --trust {address}=KEY")));
    }
    if let Some(other) = peers.iter().find(|peer| peer.address.is_ipv4() != first.is_ipv4()) {
        let message = format!("--peer {first} and --peer {} are not of the same IP version", other.address);
        return Err(Failure::refused(message));
    }
    let mut seen = HashSet::new();
    match peers.iter().map(|peer| peer.address).find(|address| !seen.insert(*address)) {
        Some(twice) => Err(Failure::refused(format!("--peer {twice} is given twice: join its networks by commas"))),
        None => Ok(()),
    }
}

fn open(arguments: &args::Tunnel, threads: usize) -> Outcome<Vec<Tun>> {
    let name = &arguments.name;
    const HINT: &str = "run as root, on a kernel with CONFIG_TUN (`modprobe tun`), with a --name that is not in use";
    let queues = Tun::open(name, threads)
        .map_err(|error| Failure::refused(format!("cannot create the TUN device {name}: {error}; {HINT}")))?;
    let addresses: Vec<_> = arguments.address.iter().map(|network| (network.address, network.bits)).collect();
    let first = &queues[0];
    let set_up = first.set_up(&addresses, arguments.mtu, QUEUE);
    set_up.map_err(|error| Failure::refused(format!("cannot set {} up: {error}", first.name())))?;
    Ok(queues)
}

struct Tunnel {
    shard: usize,
    tun: Tun,
    links: Vec<Gateway>,
    inbound: Inbound,
    /// If the device does not resolve next hops.
    resolver: Option<Resolver>,
    buffer: Box<[u8]>,
    hash: RandomState,
}

impl Tunnel {
    fn new(shard: usize, tun: Tun, remotes: &[Remote], session: &Session) -> Self {
        let (links, inbound) = (remotes.iter().cloned().map(Gateway::new).collect(), Inbound::new(session.shards()));
        let (resolver, buffer) = (session.first().resolver(), vec![0; PACKET].into());
        Self { shard, tun, links, inbound, resolver, buffer, hash: RandomState::new() }
    }

    fn step<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) -> Step {
        // The first thread reports for all.
        let tells = self.shard == 0;
        let tell = |line: Option<String>| drop(line.filter(|_| tells).inspect(|line| note!("spray: {line}")));
        while let Some(event) = endpoint.poll_event() {
            tell(self.on_event(event, endpoint, now));
        }
        for link in &mut self.links {
            tell(link.poll(endpoint, self.resolver.as_ref(), now));
        }
        let read = self.read(endpoint);
        Ok(read.map_err(|error| Failure::failed(format!("the TUN device {} is gone: {error}", self.tun.name())))?)
    }

    fn read<D: Device>(&mut self, endpoint: &mut Endpoint<D>) -> std::io::Result<()> {
        for _ in 0..BATCH {
            let Some(bytes) = self.tun.read(&mut self.buffer)? else { break };
            // The kernel also sends neighbour discovery and multicast.
            let Some(flow) = self.buffer.get(Tun::HEADER..bytes).and_then(packet::flow) else { continue };
            if self.links.iter().any(|link| link.remote.address == flow.destination) {
                static SAID: Once = Once::new();
                let (to, name) = (flow.destination, self.tun.name());
                SAID.call_once(|| {
                    note!(
                        "spray: packets to the outer address {to} are routed into {name}, and dropped: see `ip route \
                         get {to}`, and add a better route: `ip route add {to} dev INTERFACE`"
                    );
                });
                continue;
            }
            let Some(at) = behind(self.links.iter().map(|link| &link.remote), flow.destination) else { continue };
            self.links[at].take(flow.lane(&self.hash), &mut self.buffer, bytes);
        }
        self.links.iter_mut().for_each(|link| link.send(endpoint));
        Ok(())
    }

    fn link(&mut self, connection: ConnectionId) -> Option<&mut Gateway> {
        self.links.iter_mut().find(|link| link.connection() == Some(connection))
    }

    /// Returns a message for the user.
    fn on_event<D: Device>(&mut self, event: EndpointEvent, endpoint: &mut Endpoint<D>, now: Time) -> Option<String> {
        match event {
            EndpointEvent::Connected { connection, .. } => self.link(connection)?.begin(connection),
            EndpointEvent::Accepted { connection, peer, .. } => {
                let at = self.links.iter().position(|link| link.remote.address == peer.address);
                let gone = at.map_or(Some(connection), |at| self.inbound.accept(connection, at));
                gone.into_iter().for_each(|connection| endpoint.abort(connection));
                None
            }
            EndpointEvent::Received { connection, data, .. } => {
                let Self { links, tun, inbound, .. } = self;
                let out = |lane, packet: &[u8]| tun.write(lane, packet).is_ok();
                inbound.receive(endpoint, links, connection, data, out);
                None
            }
            EndpointEvent::Delivered { connection, message, .. } => {
                self.link(connection)?.on_delivered(message);
                None
            }
            EndpointEvent::Closed { connection, .. } => self.on_end(connection, "it closed the tunnel", now),
            EndpointEvent::Failed { connection, error, .. } => self.on_end(connection, error, now),
            _ => None,
        }
    }

    fn on_end(&mut self, connection: ConnectionId, why: impl ToString, now: Time) -> Option<String> {
        self.inbound.end(connection);
        self.link(connection)?.fail(why, now)
    }
}
