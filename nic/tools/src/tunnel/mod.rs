//! `spray tunnel`: IP packets of this machine's programs, over all paths to others. docs/tunnel.md says what users see of it.
//!
//! | file | content |
//! |---|---|
//! | `remote` | other machines, and the networks behind them |
//! | `link` | the connection to one of them |
//! | `packet` | what a message is |
//! | `lanes` | the order of packets within a flow |

mod lanes;
mod link;
mod packet;
mod remote;

use std::ops::ControlFlow;

use spray_nic::device::Device;
use spray_nic::net::{Resolver, Tun};
use spray_nic::{ConnectionId, Endpoint, EndpointConfig, EndpointEvent, Time};

use self::link::Link;
use self::packet::{HEADER, MESSAGE};
use self::remote::behind;
pub use self::remote::{Network, Remote};
use crate::args;
use crate::confine::Reach;
use crate::failure::{Failure, Outcome};
use crate::note;
use crate::session::{Path, Session, Step};
use crate::stop::Stop;

/// Packets that wait in the TUN device before it drops: what TCP sees as its bottleneck's queue.
const QUEUE: u32 = 128;
/// Packets read from the TUN device between two polls of the endpoint.
const BATCH: usize = 32;
/// Most bytes that a peer may have under way: what this side keeps in memory of it.
const GRANT_BYTES: u64 = 16 << 20;

/// Carries packets between this machine's TUN device and others, until Ctrl-C.
///
/// # Errors
/// 2 when it could not start, 1 when the interface was removed, 130 after Ctrl-C.
pub fn tunnel(arguments: &args::Tunnel) -> Outcome {
    check(arguments)?;
    let path = Path::new(&arguments.overrides)?;
    path.check()?;
    let peers = arguments.peer.len();
    let adjust = |config: &mut EndpointConfig| {
        // Each may begin anew while its old connection is still known, and some are half-open.
        config.max_connections = 2 * peers as u32 + 16;
        config.flow.max_message_bytes = MESSAGE as u64;
        config.flow.max_data_bytes = GRANT_BYTES;
    };
    let mut session = Session::open_with(&interface(arguments), Some(arguments.peer[0].address), &path, adjust)?;
    let own = session.config().address;
    if let Some(same) = arguments.peer.iter().find(|peer| peer.address == own) {
        return Err(Failure::refused(format!("--peer {} is this machine itself", same.address)));
    }
    session.outlast_outages();
    let resolver = session.resolver();
    let tun = open(arguments)?;
    session.wake(0, tun.wake_fd());
    let stop = Stop::on_signals()?;
    session.confine(&Reach::Read { named: Vec::new(), files: Vec::new() })?;
    let whose = if arguments.insecure { ", for anybody (--insecure)" } else { "" };
    note!("spray: listening on {} as {own}{whose}; packets go by {}", session.device_name(), tun.name());
    let links = arguments.peer.iter().map(|remote| Link::new(remote.clone(), own)).collect();
    let mut tunnel = Tunnel { tun, links, resolver, wants: true, buffer: vec![0; MESSAGE].into() };
    let outcome = session.run(&stop, |endpoint, now| tunnel.step(endpoint, now));
    session.end();
    for Link { remote, counted, .. } in &tunnel.links {
        note!(
            "spray: {}: {} packets out, {} in; {} dropped without a connection or room, {} refused",
            remote.address,
            counted.sent,
            counted.received,
            counted.dropped,
            counted.refused
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
    let bare = peers.iter().find(|peer| peers.len() > 1 && peer.networks.is_empty());
    if let Some(bare) = bare {
        return Err(Failure::refused(format!(
            "several --peer: say which addresses in the tunnel are behind each, as in --peer {}=10.9.0.2",
            bare.address
        )));
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

/// The arguments of a session that correspond.
fn interface(arguments: &args::Tunnel) -> args::Interface {
    let args::Tunnel { key, trust, insecure, .. } = arguments;
    args::Interface {
        way: arguments.way.clone(),
        trust: args::Trust { key: key.clone(), peer: trust.clone(), insecure: *insecure },
        steered: arguments.steered,
        zero_copy: false,
        copy: arguments.copy,
        busy_poll: arguments.busy_poll,
        timeout: arguments.timeout,
        publish: arguments.publish,
        captures: arguments.captures.clone(),
    }
}

fn open(arguments: &args::Tunnel) -> Outcome<Tun> {
    let name = &arguments.name;
    let tun = Tun::open(name).map_err(|error| {
        Failure::refused(format!(
            "cannot make the TUN device {name}: {error}; run as root, on a kernel with CONFIG_TUN (`modprobe tun`), and give \
             another --name if there is one of that name"
        ))
    })?;
    let addresses: Vec<_> = arguments.address.iter().map(|network| (network.address, network.bits)).collect();
    tun.set_up(&addresses, arguments.mtu, QUEUE)
        .map_err(|error| Failure::refused(format!("cannot set {} up: {error}", tun.name())))?;
    Ok(tun)
}

/// A TUN device and the machines behind it.
struct Tunnel {
    tun: Tun,
    links: Vec<Link>,
    /// Tells next hops, where the device does not find them.
    resolver: Option<Resolver>,
    /// Whether a packet ends a sleep.
    wants: bool,
    buffer: Box<[u8]>,
}

impl Tunnel {
    /// Does what the last poll of the endpoint has made possible.
    fn step<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) -> Step {
        while let Some(event) = endpoint.poll_event() {
            tell(self.on_event(event, endpoint, now));
        }
        for link in &mut self.links {
            tell(link.poll(endpoint, self.resolver.as_ref(), now));
        }
        match self.read(endpoint) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                let message = format!("the TUN device {} is gone: {error}", self.tun.name());
                ControlFlow::Break(Err(Failure::failed(message)))
            }
        }
    }

    /// Reads what programs send. While the one connection there is has enough to send, packets wait in the device, whose queue is short.
    fn read<D: Device>(&mut self, endpoint: &mut Endpoint<D>) -> std::io::Result<()> {
        let is_full = |links: &[Link]| matches!(links, [only] if only.is_full());
        let wants = !is_full(&self.links);
        if wants != std::mem::replace(&mut self.wants, wants) {
            self.tun.want(wants)?;
        }
        for _ in 0..BATCH {
            if is_full(&self.links) {
                break;
            }
            let Some(bytes) = self.tun.read(&mut self.buffer[HEADER..])? else { break };
            let message = &mut self.buffer[..HEADER + bytes];
            // What is no IP packet, and what nobody is behind, goes nowhere: the kernel sends both by itself, for neighbours and groups.
            let Some(flow) = message.get(HEADER + Tun::HEADER..).and_then(packet::flow) else { continue };
            let Some(at) = behind(self.links.iter().map(|link| &link.remote), flow.destination) else { continue };
            self.links[at].send(endpoint, message, flow.lane);
        }
        Ok(())
    }

    fn link(&mut self, connection: ConnectionId) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.connection() == Some(connection))
    }

    /// Takes an event. Returns what the user is to be told.
    fn on_event<D: Device>(&mut self, event: EndpointEvent, endpoint: &mut Endpoint<D>, now: Time) -> Option<String> {
        match event {
            EndpointEvent::Connected { connection, .. } => self.link(connection)?.begin(connection),
            EndpointEvent::Accepted { connection, peer, .. } => {
                let Some(link) = self.links.iter_mut().find(|link| link.remote.address == peer.address) else {
                    endpoint.abort(connection);
                    return None;
                };
                link.accept(endpoint, connection)
            }
            EndpointEvent::Received { connection, data, .. } => {
                let Self { links, tun, .. } = self;
                let link = links.iter_mut().find(|link| link.connection() == Some(connection))?;
                link.receive(endpoint, connection, data, |packet| tun.write(packet).is_ok());
                None
            }
            EndpointEvent::Delivered { connection, message, .. } => {
                self.link(connection)?.on_delivered(message);
                None
            }
            EndpointEvent::Closed { connection, .. } => self.link(connection)?.fail("it closed the tunnel", now),
            EndpointEvent::Failed { connection, error, .. } => self.link(connection)?.fail(error, now),
            _ => None,
        }
    }
}

fn tell(line: Option<String>) {
    line.inspect(|line| note!("spray: {line}"));
}
