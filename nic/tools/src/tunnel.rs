//! `spray tunnel`: IP packets of this machine's programs, over all paths to others. docs/tunnel.md says what users see of it.
//!
//! | file | content |
//! |---|---|
//! | `remote` | other machines, and the networks behind them |
//! | `link` | what goes to one of them |
//! | `fair` | turns of flows, where packets wait |
//! | `inbound` | what comes from them |
//! | `packet` | what a message is |
//! | `lanes` | the order of packets within a flow |

mod fair;
mod inbound;
mod lanes;
mod link;
mod packet;
pub(crate) mod remote;

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

/// Packets that wait in the TUN device before it drops: those between two looks.
const QUEUE: u32 = 128;
/// Packets read from the TUN device between two polls of the endpoint.
const BATCH: usize = 32;
/// Most bytes that a peer may have under way in a connection: what this side keeps in memory of it.
const GRANT_BYTES: u64 = 8 << 20;

/// Carries packets between this machine's TUN device and others, until Ctrl-C.
///
/// # Errors
/// 2 when it could not start, 1 when the interface was removed, 130 after Ctrl-C.
pub fn tunnel(arguments: &args::Tunnel) -> Outcome {
    check(arguments)?;
    let path = PathOptions::new(&arguments.overrides)?;
    path.check()?;
    let remotes = &arguments.peer;
    let adjust = |config: &mut EndpointConfig| {
        // Each has those that it begins and one of ours, old ones may still be known, and some are half-open.
        config.max_connections = (remotes.len() * (Inbound::most(1) + 2) + 16) as u32;
        config.flow.max_message_bytes = MESSAGE as u64;
        config.flow.max_data_bytes = GRANT_BYTES;
    };
    let mut session = Session::open(&interface(arguments), Some(remotes[0].address), &path, THREADS, adjust)?;
    let own = session.config().address;
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
    let whose = if arguments.insecure { ", for anybody (--insecure)" } else { "" };
    note!("spray: listening on {} as {own}{whose}; packets go by {}", session.device_name(), queues[0].name());
    let tunnel = |(shard, queue)| Tunnel::new(shard, queue, remotes, &session);
    let mut threads: Vec<_> = queues.into_iter().enumerate().map(tunnel).collect();
    let steps = threads.iter_mut().map(|tunnel| |endpoint: &mut _, now| tunnel.step(endpoint, now));
    let outcome = session.run_all(&stop, steps.collect());
    session.end();
    for (at, remote) in remotes.iter().enumerate() {
        let Counted { sent, received, dropped, refused } = threads.iter().map(|tunnel| tunnel.links[at].counted).sum();
        note!(
            "spray: {}: {sent} packets out, {received} in; {dropped} dropped without a connection or room, {refused} refused",
            remote.address
        );
    }
    outcome
}

fn check(arguments: &args::Tunnel) -> Outcome {
    if arguments.key.is_none() && !arguments.insecure {
        return Err(Failure::refused(
            "no key: make one with `spray keygen FILE`, give it with --key FILE, and the same file to the other machines (or their \
             public keys to this one, with --trust). Or say --insecure: then anybody on the network may send and read",
        ));
    }
    let peers = &arguments.peer;
    let within = |network: &&Subnet| peers.iter().any(|peer| network.contains(peer.address));
    if let Some(Subnet { address, bits }) = arguments.address.iter().find(within) {
        return Err(Failure::refused(format!(
            "--address {address}/{bits} is a network with the outer address of a --peer in it: packets of the tunnel would go into the tunnel; \
             give a network that is used nowhere else, such as 10.9.0.1/24"
        )));
    }
    let bare = peers.iter().find(|peer| peers.len() > 1 && peer.networks.is_empty());
    if let Some(bare) = bare {
        return Err(Failure::refused(format!(
            "several --peer: say which addresses in the tunnel are behind each, as in --peer {}=10.9.0.2",
            bare.address
        )));
    }
    //= docs/specs/endpoint.md#END-42 an address to each key
    let trust = &arguments.trust;
    if peers.len() > 1 && trust.iter().any(|trusted| trusted.address.is_none()) {
        return Err(Failure::refused(format!(
            "several --peer: say whose each key is, as in --trust {}=KEY",
            peers[0].address
        )));
    }
    if let Some(peer) = peers.iter().find(|peer| {
        let bound = |trusted: &args::Trusted| trusted.address.is_none_or(|address| address == peer.address);
        !trust.is_empty() && !trust.iter().any(bound)
    }) {
        let address = peer.address;
        return Err(Failure::refused(format!("--peer {address} has no key: give it one by --trust {address}=KEY")));
    }
    let first = peers[0].address;
    if let Some(other) = peers.iter().find(|peer| peer.address.is_ipv4() != first.is_ipv4()) {
        let message = format!("--peer {first} and --peer {} are not of the same IP version", other.address);
        return Err(Failure::refused(message));
    }
    let twice = (1..peers.len()).find(|&at| peers[..at].iter().any(|peer| peer.address == peers[at].address));
    match twice {
        Some(at) => {
            let address = peers[at].address;
            Err(Failure::refused(format!(
                "--peer {address} comes twice: give its networks in one, with commas between"
            )))
        }
        None => Ok(()),
    }
}

fn interface(arguments: &args::Tunnel) -> args::Interface {
    let args::Tunnel { key, trust, psk, insecure, .. } = arguments;
    args::Interface {
        way: arguments.way.clone(),
        trust: args::Trust { key: key.clone(), peer: trust.clone(), psk: psk.clone(), insecure: *insecure },
        steered: arguments.steered,
        zero_copy: false,
        copy: arguments.copy,
        busy_poll: arguments.busy_poll,
        timeout: arguments.timeout,
        publish: arguments.publish,
        captures: arguments.captures.clone(),
    }
}

fn open(arguments: &args::Tunnel, threads: usize) -> Outcome<Vec<Tun>> {
    let name = &arguments.name;
    let queues = Tun::open(name, threads).map_err(|error| {
        Failure::refused(format!(
            "cannot make the TUN device {name}: {error}; run as root, on a kernel with CONFIG_TUN (`modprobe tun`), and give \
             another --name if there is one of that name"
        ))
    })?;
    let addresses: Vec<_> = arguments.address.iter().map(|network| (network.address, network.bits)).collect();
    let first = &queues[0];
    first
        .set_up(&addresses, arguments.mtu, QUEUE)
        .map_err(|error| Failure::refused(format!("cannot set {} up: {error}", first.name())))?;
    Ok(queues)
}

/// A thread of a tunnel: a queue of the TUN device, and connections to the machines behind it.
struct Tunnel {
    shard: usize,
    tun: Tun,
    links: Vec<Gateway>,
    inbound: Inbound,
    /// Tells next hops, where the device does not find them.
    resolver: Option<Resolver>,
    buffer: Box<[u8]>,
    /// By which flows are put into lanes.
    hash: RandomState,
}

impl Tunnel {
    fn new(shard: usize, tun: Tun, remotes: &[Remote], session: &Session) -> Self {
        let (links, inbound) = (remotes.iter().cloned().map(Gateway::new).collect(), Inbound::new(session.shards()));
        let (resolver, buffer) = (session.resolver(), vec![0; PACKET].into());
        Self { shard, tun, links, inbound, resolver, buffer, hash: RandomState::new() }
    }

    fn step<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) -> Step {
        // What happens to the connections of one thread happens to all.
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

    /// Reads what programs send, and has connections send what they have room for.
    fn read<D: Device>(&mut self, endpoint: &mut Endpoint<D>) -> std::io::Result<()> {
        for _ in 0..BATCH {
            let Some(bytes) = self.tun.read(&mut self.buffer)? else { break };
            // What is no IP packet, and what nobody is behind, goes nowhere: the kernel sends both by itself, for neighbours and groups.
            let Some(flow) = self.buffer.get(Tun::HEADER..bytes).and_then(packet::flow) else { continue };
            if self.links.iter().any(|link| link.remote.address == flow.destination) {
                static SAID: Once = Once::new();
                let (to, name) = (flow.destination, self.tun.name());
                SAID.call_once(|| {
                    note!(
                        "spray: packets to the outer address {to} come into the tunnel, and are dropped: a route leads there by {name}; \
                         `ip route get {to}` shows it, and `ip route add {to} dev INTERFACE` is a better one"
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

    /// Takes an event. Returns what the user is to be told.
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
