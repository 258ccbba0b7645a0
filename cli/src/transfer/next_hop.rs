//! Where frames to a peer go: the next router, or the peer itself. The kernel's routes and neighbours tell (netlink), at the start and
//! whenever they change.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::{FutureExt, StreamExt, TryStreamExt};
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteVia};
use rtnetlink::{Handle, MulticastGroup, RouteMessageBuilder, new_multicast_connection};
use socket2::{Domain, Socket, Type};
use spray_nic::Endpoint;
use spray_nic::device::Device;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::network::ask;
use crate::failure::{Failure, Outcome};

/// From where a command sends.
#[derive(Debug)]
pub struct Source {
    pub interface: String,
    pub index: u32,
    pub address: IpAddr,
}

impl Source {
    /// The Ethernet address to which frames to `peer` go. Where the kernel does not know it, the kernel is made to ask.
    ///
    /// # Errors
    /// When there is no route, or the next hop does not answer within two seconds.
    pub fn resolve(&self, peer: IpAddr) -> Outcome<[u8; 6]> {
        ask(async |handle| {
            let hop = self.next_hop(&handle, peer).await?;
            for attempt in 0..20 {
                if let Some(mac) = self.neighbour(&handle, hop).await? {
                    return Ok(mac);
                }
                if attempt % 5 == 0 {
                    self.provoke(peer);
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let what = if hop == peer { "the receiver".into() } else { format!("the router on the way to {peer}") };
            Err(Failure::refused(format!(
                "{hop}, {what}, does not answer on {}: is the cable in, and are the addresses right? `ip neighbour` tells whom the \
                 kernel knows; --peer-mac gives the Ethernet address by hand",
                self.interface
            )))
        })
    }

    /// Where the kernel's routes send packets to `peer` over the interface: a router, or the peer itself.
    async fn next_hop(&self, handle: &Handle, peer: IpAddr) -> Outcome<IpAddr> {
        let Self { interface, address, .. } = self;
        let no_route = |why: &str| {
            let mend =
                "`ip route get` tells the kernel's choice; give another --interface, or the next hop's --peer-mac";
            Failure::refused(format!("no route from {address} to {peer} over {interface}: {why}; {mend}"))
        };
        let question = self.question(peer).ok_or_else(|| no_route("they are not of the same IP version"))?;
        let found = handle.route().get(question).execute().try_next().await;
        let route = found.map_err(|error| no_route(&error.to_string()))?.ok_or_else(|| no_route("there is none"))?;
        let gateway = route.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::Gateway(RouteAddress::Inet(gateway)) => Some(IpAddr::V4(*gateway)),
            RouteAttribute::Gateway(RouteAddress::Inet6(gateway)) => Some(IpAddr::V6(*gateway)),
            RouteAttribute::Via(RouteVia::Inet6(gateway)) => Some(IpAddr::V6(*gateway)),
            _ => None,
        });
        Ok(gateway.unwrap_or(peer))
    }

    fn question(&self, peer: IpAddr) -> Option<RouteMessage> {
        match (self.address, peer) {
            (IpAddr::V4(own), IpAddr::V4(peer)) => Some(
                RouteMessageBuilder::<Ipv4Addr>::new()
                    .destination_prefix(peer, 32)
                    .source_prefix(own, 32)
                    .output_interface(self.index)
                    .build(),
            ),
            (IpAddr::V6(own), IpAddr::V6(peer)) => Some(
                RouteMessageBuilder::<Ipv6Addr>::new()
                    .destination_prefix(peer, 128)
                    .source_prefix(own, 128)
                    .output_interface(self.index)
                    .build(),
            ),
            _ => None,
        }
    }

    /// The Ethernet address of a neighbour, if the kernel knows it.
    async fn neighbour(&self, handle: &Handle, hop: IpAddr) -> Outcome<Option<[u8; 6]>> {
        let family = if hop.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let mut table = handle.neighbours().get().set_address_family(family).execute();
        let mut mac = None;
        while let Some(entry) = table.try_next().await.map_err(Failure::failed)? {
            if entry.header.ifindex == self.index && destination(&entry) == Some(hop) {
                mac = mac.or_else(|| link_address(&entry));
            }
        }
        Ok(mac)
    }

    /// Any packet to the peer makes the kernel look for the next hop, or check that it is still there. This one goes to the discard
    /// port, over the interface whatever other routes there are.
    fn provoke(&self, peer: IpAddr) {
        const DISCARD: u16 = 9;
        let send = || -> std::io::Result<()> {
            let socket = Socket::new(Domain::for_address((self.address, 0).into()), Type::DGRAM, None)?;
            socket.bind_device(Some(self.interface.as_bytes()))?;
            socket.bind(&SocketAddr::new(self.address, 0).into())?;
            socket.send_to(&[0], &SocketAddr::new(peer, DISCARD).into()).map(drop)
        };
        // Where it cannot be sent, no next hop will be found, which is told.
        let _ = send();
    }

    /// Looks the next hop of every peer up when asked to, and when routes or neighbours change.
    async fn watch(self, mut peers: UnboundedReceiver<Vec<IpAddr>>, found: mpsc::Sender<Found>) -> Outcome {
        let groups = [MulticastGroup::Neigh, MulticastGroup::Ipv4Route, MulticastGroup::Ipv6Route];
        let (connection, handle, mut news) = new_multicast_connection(&groups).map_err(Failure::failed)?;
        tokio::spawn(connection);
        let mut watched = Vec::new();
        loop {
            tokio::select! {
                told = peers.recv() => match told {
                    Some(told) => {
                        watched = told;
                        watched.iter().for_each(|&peer| self.provoke(peer));
                    }
                    None => return Ok(()),
                },
                Some(_) = news.next() => {
                    // Changes come in groups, and a lookup answers for all of them.
                    tokio::time::sleep(SETTLING).await;
                    while let Some(Some(_)) = news.next().now_or_never() {}
                }
            }
            for &peer in &watched {
                // Without a route or an answer, the old next hop may still be right.
                let Ok(hop) = self.next_hop(&handle, peer).await else { continue };
                match self.neighbour(&handle, hop).await {
                    Ok(Some(mac)) => drop(found.send((peer, mac))),
                    _ => self.provoke(peer),
                }
            }
        }
    }
}

fn destination(entry: &NeighbourMessage) -> Option<IpAddr> {
    entry.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(v4)) => Some(IpAddr::V4(*v4)),
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(v6)) => Some(IpAddr::V6(*v6)),
        _ => None,
    })
}

fn link_address(entry: &NeighbourMessage) -> Option<[u8; 6]> {
    entry.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(bytes) => bytes.as_slice().try_into().ok(),
        _ => None,
    })
}

/// A peer, and where frames to it go.
type Found = (IpAddr, [u8; 6]);

/// How long changes of routes settle before they are looked at.
const SETTLING: Duration = Duration::from_millis(10);
/// How often the kernel is asked without having told a change, and made to check that the next hop is still there: frames over AF_XDP
/// do not make it.
const TICK: Duration = Duration::from_secs(2);

/// Keeps the next hops of an endpoint's connections up to date.
#[derive(Debug)]
pub struct NextHops {
    peers: Option<UnboundedSender<Vec<IpAddr>>>,
    found: mpsc::Receiver<Found>,
    thread: Option<JoinHandle<()>>,
    next: Option<Instant>,
}

impl NextHops {
    /// Begins to follow routes and neighbours.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn follow(source: Source) -> Outcome<Self> {
        let ((peers, told), (finds, found)) = (unbounded_channel(), mpsc::channel());
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            // Without it the next hops are those of the start.
            let _ = runtime.map(|runtime| runtime.block_on(source.watch(told, finds)));
        };
        let thread = std::thread::Builder::new().name("spray-routes".into()).spawn(work).map_err(Failure::failed)?;
        Ok(Self { peers: Some(peers), found, thread: Some(thread), next: None })
    }

    /// Gives the endpoint what was found since the last call, and says now and then which peers it has.
    pub fn update<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Instant) {
        while let Ok((peer, mac)) = self.found.try_recv() {
            endpoint.set_next_hop(peer, mac);
        }
        if self.next.is_none_or(|next| next <= now) {
            self.next = Some(now + TICK);
            let _ = self.peers.as_ref().map(|channel| channel.send(endpoint.peers().collect()));
        }
    }
}

impl Drop for NextHops {
    fn drop(&mut self) {
        self.peers = None;
        if let Some(thread) = self.thread.take() {
            // A panic has already been reported.
            let _ = thread.join();
        }
    }
}
