//! Where frames to a peer go: the next router, or the peer itself. The kernel's routes and neighbours tell (netlink), at the start and
//! whenever they change.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::{FutureExt, Stream, StreamExt, TryStreamExt};
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteVia};
use rtnetlink::{Handle, MulticastGroup, RouteMessageBuilder, new_multicast_connection};
use socket2::{Domain, Socket, Type};
use spray_nic::Endpoint;
use spray_nic::device::Device;
use tokio::runtime::Runtime;
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
            let prod = self.prod();
            for attempt in 0..20 {
                if let Some(mac) = self.neighbour(&handle, hop).await? {
                    return Ok(mac);
                }
                if attempt % 5 == 0 {
                    provoke(prod.as_ref(), peer);
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

    /// A socket whose packets leave by the interface, whatever other routes there are. Where there is none, no next hop will be found,
    /// which is told.
    fn prod(&self) -> Option<Socket> {
        let open = || -> std::io::Result<Socket> {
            let socket = Socket::new(Domain::for_address((self.address, 0).into()), Type::DGRAM, None)?;
            socket.bind_device(Some(self.interface.as_bytes()))?;
            socket.bind(&SocketAddr::new(self.address, 0).into())?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        open().ok()
    }

    /// Looks the next hop of every peer up when asked to, and when there is news of routes or neighbours.
    async fn watch(
        self,
        handle: Handle,
        mut news: impl Stream + Unpin,
        prod: Option<Socket>,
        mut peers: UnboundedReceiver<Vec<IpAddr>>,
        found: mpsc::Sender<Found>,
    ) {
        let mut watched = Vec::new();
        loop {
            tokio::select! {
                told = peers.recv() => match told {
                    Some(told) => {
                        watched = told;
                        watched.iter().for_each(|&peer| provoke(prod.as_ref(), peer));
                    }
                    None => return,
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
                    _ => provoke(prod.as_ref(), peer),
                }
            }
        }
    }
}

/// Any packet to the peer makes the kernel look for the next hop, or check that it is still there. This one goes to the discard port.
fn provoke(prod: Option<&Socket>, peer: IpAddr) {
    const DISCARD: u16 = 9;
    // Where it cannot be sent, no next hop will be found, which is told.
    let _ = prod.map(|socket| socket.send_to(&[0], &SocketAddr::new(peer, DISCARD).into()));
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
pub struct NextHops {
    /// What the thread is to do, until it is started.
    work: Option<(Runtime, Work)>,
    peers: Option<UnboundedSender<Vec<IpAddr>>>,
    found: mpsc::Receiver<Found>,
    thread: Option<JoinHandle<()>>,
    next: Option<Instant>,
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

impl NextHops {
    /// Opens all that it takes to follow routes and neighbours.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn open(source: Source) -> Outcome<Self> {
        const GROUPS: [MulticastGroup; 3] =
            [MulticastGroup::Neigh, MulticastGroup::Ipv4Route, MulticastGroup::Ipv6Route];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
        let entered = runtime.enter();
        let (connection, handle, news) = new_multicast_connection(&GROUPS).map_err(Failure::failed)?;
        runtime.spawn(connection);
        let ((peers, told), (finds, found)) = (unbounded_channel(), mpsc::channel());
        let prod = source.prod();
        let work: Work = Box::pin(source.watch(handle, news, prod, told, finds));
        drop(entered);
        Ok(Self { work: Some((runtime, work)), peers: Some(peers), found, thread: None, next: None })
    }

    /// Begins to follow them, by a thread that opens nothing more.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(&mut self) -> Outcome {
        let Some((runtime, work)) = self.work.take() else { return Ok(()) };
        let thread = std::thread::Builder::new().name("spray-routes".into()).spawn(move || runtime.block_on(work));
        self.thread = Some(thread.map_err(Failure::failed)?);
        Ok(())
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
