//! Next hops of peers, from the kernel's routes and neighbours (netlink), kept up to date.

use spray_core::Time;
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::{FutureExt, Stream, StreamExt, TryStreamExt};
use rtnetlink::packet_route::link::LinkFlags;
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteVia};
use rtnetlink::{Handle, MulticastGroup, new_multicast_connection};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::attach_monitor::{AttachMonitor, Counts};
use super::link::{self, LinkStatus, Mtu, Notification};
use super::neighbour_probe::NeighbourProbe;
use super::neighbours::PermanentNeighbours;
use super::{Interface, NetError, netlink};
use crate::device::Device;
use crate::endpoint::Endpoint;
use crate::real::ps;

/// The sending side of an endpoint.
#[derive(Clone, Debug)]
pub struct Egress {
    /// The interface with the routes.
    pub interface: Interface,
    /// The index of the interface that sends: the same, or a member port of a bridge.
    pub device: u32,
    /// The MTU of that interface.
    pub mtu: u32,
    /// The endpoint's IP address.
    pub address: IpAddr,
    /// Time limit for the link to come up, and for the next hop's answer.
    pub timeout: Duration,
    /// The permanent neighbour entries in use.
    pub permanent: PermanentNeighbours,
}

/// Poll intervals for link and neighbour: short at first, since most answer immediately.
const FIRST_POLL: Duration = Duration::from_millis(1);
const POLL: Duration = Duration::from_millis(100);
const PROBE: Duration = Duration::from_millis(500);

impl Egress {
    /// Creates the source of an endpoint of this address on an interface that it has taken over.
    pub fn of(interface: &Interface, address: IpAddr, timeout: Duration) -> Self {
        let (device, mtu) = (interface.index, interface.mtu);
        let permanent = PermanentNeighbours::default();
        Self { interface: interface.l3_interface().clone(), device, mtu, address, timeout, permanent }
    }

    /// Returns the Ethernet address of the next hop to `peer`, resolved by the kernel if necessary,
    /// after the link is up: attaching a program resets that of some NICs.
    ///
    /// # Errors
    /// There is no route or, until the timeout, no link or no answer of the next hop.
    pub fn resolve(&self, peer: IpAddr) -> Result<[u8; 6], NetError> {
        netlink(async |handle| self.resolve_with(&handle, &self.probe(), peer).await)
    }

    fn probe(&self) -> NeighbourProbe {
        NeighbourProbe::open(&self.interface.name, self.address)
    }

    async fn resolve_with(&self, handle: &Handle, probe: &NeighbourProbe, peer: IpAddr) -> Result<[u8; 6], NetError> {
        let hop = self.next_hop(handle, peer).await?;
        self.interface.delete_stale(handle, hop).await?;
        let (mut waited, mut pause, mut probe_at) = (Duration::ZERO, FIRST_POLL, Duration::ZERO);
        let mut has_link = true;
        while waited <= self.timeout {
            has_link = self.has_link(handle).await?;
            // Without a link, entries are outdated.
            if has_link && let Some(mac) = self.neighbour(handle, hop).await? {
                return Ok(mac);
            }
            if waited >= probe_at {
                probe.send(peer);
                probe_at = waited + PROBE;
            }
            tokio::time::sleep(pause).await;
            (waited, pause) = (waited + pause, (pause * 2).min(POLL));
        }
        let interface = self.interface.name.clone();
        if !has_link {
            return Err(NetError::NoLink(interface));
        }
        let what = if hop == peer { "the peer itself".into() } else { format!("the router to {peer}") };
        Err(NetError::NeighbourUnreachable { hop, what, interface })
    }

    async fn has_link(&self, handle: &Handle) -> Result<bool, NetError> {
        let mut links = handle.link().get().match_index(self.interface.index).execute();
        let link = links.try_next().await.map_err(NetError::netlink)?;
        Ok(link.is_some_and(|link| link.header.flags.contains(LinkFlags::LowerUp)))
    }

    /// Returns the next hop to `peer` over the interface: a router, or the peer itself.
    async fn next_hop(&self, handle: &Handle, peer: IpAddr) -> Result<IpAddr, NetError> {
        let no_route = |why: &str| NetError::NoRoute {
            interface: self.interface.name.clone(),
            from: self.address,
            to: peer,
            why: why.into(),
        };
        let request = self.interface.route_request(peer, Some(self.address));
        let request = request.ok_or_else(|| no_route("their IP versions differ"))?;
        let found = handle.route().get(request).execute().try_next().await;
        let route =
            found.map_err(|error| no_route(&error.to_string()))?.ok_or_else(|| no_route("the kernel has none"))?;
        Ok(gateway(&route).unwrap_or(peer))
    }

    async fn neighbour(&self, handle: &Handle, hop: IpAddr) -> Result<Option<[u8; 6]>, NetError> {
        let entry = self.interface.query_neighbour(handle, hop).await?;
        self.permanent.set(hop, entry.filter(|(_, is_permanent)| *is_permanent).map(|(mac, _)| mac));
        Ok(entry.map(|(mac, _)| mac))
    }

    /// Serves each request by a task, which ends early if its reply is dropped.
    async fn serve(self, handle: Handle, probe: Arc<NeighbourProbe>, mut requests: UnboundedReceiver<Request>) {
        while let Some(Request { peer, timeout, mut reply }) = requests.recv().await {
            let source = Self { timeout: timeout.min(self.timeout), ..self.clone() };
            let (handle, probe) = (handle.clone(), Arc::clone(&probe));
            tokio::spawn(async move {
                let answer = tokio::select! {
                    answer = source.resolve_with(&handle, &probe, peer) => answer,
                    () = reply.closed() => return,
                };
                drop(reply.send(answer));
            });
        }
    }

    /// Resolves all next hops when shards announce peers, and when routes or neighbours change.
    async fn watch(
        self,
        handle: Handle,
        mut notifications: impl Stream<Item = (Notification, impl Sized)> + Unpin,
        mut inputs: Inputs,
        shards: Vec<mpsc::Sender<Update>>,
    ) {
        let mut link = LinkStatus::new(self.device, inputs.mtu, self.interface.index, self.interface.mac);
        let probe = Arc::new(inputs.probe);
        // Its own task, since changes have to settle, and probing neighbours causes many of them.
        tokio::spawn(self.clone().serve(handle.clone(), Arc::clone(&probe), inputs.requests));
        let mut watched = vec![Vec::new(); shards.len()];
        loop {
            tokio::select! {
                announced = inputs.peers.recv() => match announced {
                    Some((shard, peers)) => {
                        peers.iter().for_each(|&peer| probe.send(peer));
                        watched[shard] = peers;
                    }
                    None => return,
                },
                Some((notification, _)) = notifications.next() => {
                    let mac = link.mac;
                    let mut change = link.on_notification(&notification);
                    // Changes come in groups, and one lookup covers all of them.
                    tokio::time::sleep(SETTLING).await;
                    while let Some(Some((notification, _))) = notifications.next().now_or_never() {
                        change = link.on_notification(&notification).or(change);
                    }
                    if let Some(change) = change {
                        shards.iter().for_each(|shard| drop(shard.send(Update::Link(change))));
                    }
                    if link.mac != mac {
                        shards.iter().for_each(|shard| drop(shard.send(Update::OwnMac(link.mac))));
                    }
                }
            }
            let peers: BTreeSet<IpAddr> = watched.iter().flatten().copied().collect();
            for peer in peers {
                // Without a route or an answer, the old next hop may still be valid.
                let Ok(hop) = self.next_hop(&handle, peer).await else { continue };
                match self.neighbour(&handle, hop).await {
                    Ok(Some(mac)) => shards.iter().for_each(|shard| drop(shard.send(Update::Hop(peer, mac)))),
                    _ => probe.send(peer),
                }
            }
        }
    }
}

impl PermanentNeighbours {
    /// Returns the permanent entry of the next hop from `own` to `peer`, if any, and its interface.
    ///
    /// # Errors
    /// There is no route.
    pub fn for_peer(peer: IpAddr, own: IpAddr) -> Result<(Self, String), NetError> {
        netlink(async |handle| {
            let why = || "the kernel has none".into();
            let no_route = || NetError::NoRoute { interface: "any".into(), from: own, to: peer, why: why() };
            let request = Interface::default().route_request(peer, Some(own)).ok_or_else(no_route)?;
            let route = handle.route().get(request).execute().try_next().await.ok().flatten().ok_or_else(no_route)?;
            let index = route.attributes.iter().find_map(|attribute| match attribute {
                RouteAttribute::Oif(index) => Some(*index),
                _ => None,
            });
            let index = index.ok_or_else(no_route)?;
            let link = handle.link().get().match_index(index).execute().try_next().await.map_err(NetError::netlink)?;
            let interface = link.as_ref().map(Interface::from).ok_or_else(no_route)?;
            let (all, hop) = (Self::default(), gateway(&route).unwrap_or(peer));
            if let Some((mac, true)) = interface.query_neighbour(&handle, hop).await? {
                all.set(hop, Some(mac));
            }
            Ok((all, interface.name))
        })
    }
}

fn gateway(route: &RouteMessage) -> Option<IpAddr> {
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(RouteAddress::Inet(gateway)) => Some(IpAddr::V4(*gateway)),
        RouteAttribute::Gateway(RouteAddress::Inet6(gateway)) => Some(IpAddr::V6(*gateway)),
        RouteAttribute::Via(RouteVia::Inet6(gateway)) => Some(IpAddr::V6(*gateway)),
        _ => None,
    })
}

struct Inputs {
    peers: UnboundedReceiver<(usize, Vec<IpAddr>)>,
    requests: UnboundedReceiver<Request>,
    probe: NeighbourProbe,
    mtu: Mtu,
}

struct Request {
    peer: IpAddr,
    timeout: Duration,
    reply: oneshot::Sender<Answer>,
}

type Answer = Result<[u8; 6], NetError>;

impl Interface {
    /// Returns the next hop's Ethernet address, from [`own_address`](Self::own_address).
    ///
    /// # Errors
    /// There is no such address or no route, or the next hop does not answer within two seconds.
    pub fn next_hop(&self, peer: IpAddr) -> Result<[u8; 6], NetError> {
        Egress::of(self, self.own_address(Some(peer))?, Duration::from_secs(2)).resolve(peer)
    }
}

enum Update {
    Hop(IpAddr, [u8; 6]),
    Link(link::Change),
    OwnMac([u8; 6]),
}

/// Delay from changes of routes or peers to the lookup.
const SETTLING: Duration = Duration::from_millis(10);
const SETTLING_PS: u64 = ps(SETTLING);
/// Interval of lookups without notifications, which also probe the next hop: AF_XDP frames do not.
const TICK_PS: u64 = 2_000_000_000_000;
/// Time limit of a client's next hop. The client retransmits its Connect.
const CLIENT_TIMEOUT: Duration = Duration::from_millis(100);
/// Maximum number of clients waiting for their next hops.
const RESOLVING: usize = 64;
/// Interval of polls for answers, in nanoseconds.
const RESOLVING_NS: u64 = 200_000;

/// Keeps the next hops of an endpoint's connections up to date. One thread follows the kernel's
/// routes and neighbours for all endpoints of a host.
pub struct NextHops {
    /// The thread's work, until it is started.
    work: Option<(Runtime, Work)>,
    shard: usize,
    follows_routes: bool,
    peers: Option<UnboundedSender<(usize, Vec<IpAddr>)>>,
    requests: UnboundedSender<Request>,
    updates: mpsc::Receiver<Update>,
    clients: Vec<(IpAddr, oneshot::Receiver<Answer>)>,
    thread: Arc<OnceLock<JoinOnDrop>>,
    /// Time of the last announcement of peers, and the number of connections opened until then.
    announced: Option<(Time, u64)>,
    monitor: AttachMonitor,
    mtu: Mtu,
    permanent: PermanentNeighbours,
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

struct JoinOnDrop(Option<JoinHandle<()>>);

impl Drop for JoinOnDrop {
    fn drop(&mut self) {
        // A panic was already reported.
        let _ = self.0.take().map(JoinHandle::join);
    }
}

impl NextHops {
    /// Opens all resources to follow routes and neighbours of the calling thread's network
    /// namespace, for a host of `shards`. Without `follows_routes` frames go to the peers' own next
    /// hops.
    pub fn open(source: Egress, shards: usize, follows_routes: bool) -> Result<Vec<Self>, NetError> {
        const GROUPS: [MulticastGroup; 4] =
            [MulticastGroup::Link, MulticastGroup::Neigh, MulticastGroup::Ipv4Route, MulticastGroup::Ipv6Route];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let (connection, handle, notifications) = new_multicast_connection(&GROUPS)?;
        runtime.spawn(connection);
        let ((peers, peers_in), (requests, requests_in)) = (unbounded_channel(), unbounded_channel());
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..shards).map(|_| mpsc::channel()).unzip();
        let (mtu, permanent) = (Mtu::new(source.mtu), source.permanent.clone());
        let inputs = Inputs { peers: peers_in, requests: requests_in, probe: source.probe(), mtu: mtu.clone() };
        let work: Work = Box::pin(source.watch(handle, notifications, inputs, senders));
        drop(entered);
        let (mut work, thread) = (Some((runtime, work)), Arc::default());
        let of = |(shard, updates)| Self {
            work: work.take(),
            shard,
            follows_routes,
            peers: Some(peers.clone()),
            requests: requests.clone(),
            updates,
            clients: Vec::with_capacity(RESOLVING),
            thread: Arc::clone(&thread),
            announced: None,
            monitor: AttachMonitor::new(shard),
            mtu: mtu.clone(),
            permanent: permanent.clone(),
        };
        Ok(receivers.into_iter().enumerate().map(of).collect())
    }

    /// Starts the thread, on the first shard. It opens nothing more.
    pub fn start(&mut self) -> io::Result<()> {
        let Some((runtime, work)) = self.work.take() else { return Ok(()) };
        let thread = std::thread::Builder::new().name("spray-routes".into()).spawn(move || runtime.block_on(work))?;
        let _ = self.thread.set(JoinOnDrop(Some(thread)));
        Ok(())
    }

    /// Returns the interface's MTU, which is kept up to date.
    pub fn mtu(&self) -> Mtu {
        self.mtu.clone()
    }

    /// Returns the permanent neighbour entries in use.
    pub fn permanent(&self) -> PermanentNeighbours {
        self.permanent.clone()
    }

    /// Returns the resolver, for any thread; `None` if routes are not followed.
    pub fn resolver(&self) -> Option<Resolver> {
        self.follows_routes.then(|| Resolver(self.requests.clone()))
    }

    /// Passes results of the thread to the endpoint, and announces its peers regularly and soon
    /// after a new one. `now` is the time of its poll. Returns the nanoseconds until the next call
    /// is due.
    pub fn update<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) -> u64 {
        // Without the thread, clients are not resolved, as without the interface.
        let _ = self.start();
        while let Ok(update) = self.updates.try_recv() {
            match update {
                Update::Hop(peer, mac) if self.follows_routes => endpoint.set_next_hop(peer, mac),
                Update::Hop(..) => {}
                Update::Link(change) => self.monitor.on_link(now, change, endpoint.device().interface_rx_frames()),
                // On failure the kernel gets frames to the new address; a retry would fail too.
                Update::OwnMac(mac) => drop(endpoint.set_own_mac(mac)),
            }
        }
        if self.monitor.is_due(now, || Counts::of(endpoint.device())) {
            // A failure is detected below.
            let _ = endpoint.device_mut().restart();
        }
        let opened = endpoint.opened();
        let is_due = |(announced_at, by_then)| {
            let tick_ps = if opened == by_then { TICK_PS } else { SETTLING_PS };
            now.since(announced_at) >= tick_ps
        };
        if self.announced.is_none_or(is_due) {
            self.announced = Some((now, opened));
            endpoint.check_device();
            let _ = self.peers.as_ref().map(|channel| channel.send((self.shard, endpoint.peers().collect())));
        }
        self.resolve_clients(endpoint)
    }

    //= docs/specs/endpoint.md#END-47 to the next hop that the kernel
    fn resolve_clients<D: Device>(&mut self, endpoint: &mut Endpoint<D>) -> u64 {
        for client in endpoint.unresolved() {
            if self.clients.iter().any(|(other, _)| *other == client) {
                continue;
            }
            if self.clients.len() == RESOLVING {
                // The oldest request.
                self.clients.remove(0);
            }
            self.clients.push((client, request(&self.requests, client, CLIENT_TIMEOUT)));
        }
        self.clients.retain_mut(|(client, answer)| match answer.try_recv() {
            Ok(Ok(mac)) => {
                endpoint.set_next_hop(*client, mac);
                false
            }
            Ok(Err(_)) | Err(TryRecvError::Closed) => false,
            Err(TryRecvError::Empty) => true,
        });
        if self.clients.is_empty() { u64::MAX } else { RESOLVING_NS }
    }
}

fn request(requests: &UnboundedSender<Request>, peer: IpAddr, timeout: Duration) -> oneshot::Receiver<Answer> {
    let (reply, answer) = oneshot::channel();
    // If the thread has ended, the reply is dropped, which closes the receiver.
    let _ = requests.send(Request { peer, timeout, reply });
    answer
}

impl std::fmt::Debug for NextHops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NextHops").field("announced", &self.announced).finish_non_exhaustive()
    }
}

impl Drop for NextHops {
    fn drop(&mut self) {
        // The thread ends with the last sender, and the last shard joins it.
        self.peers = None;
    }
}

/// Resolves next hops of peers, on the thread with which a [`Host`](crate::Host) follows routes.
#[derive(Clone, Debug)]
pub struct Resolver(UnboundedSender<Request>);

impl Resolver {
    /// Returns the Ethernet address of the next hop to `peer`.
    ///
    /// # Errors
    /// There is no route, the next hop does not answer in the give-up time, or the host is gone.
    pub async fn resolve(&self, peer: IpAddr) -> Result<[u8; 6], NetError> {
        self.request(peer).await.map_err(|_| NetError::Netlink("the host has stopped".into()))?
    }

    /// Requests the next hop's Ethernet address, for a caller that polls for the answer.
    pub fn request(&self, peer: IpAddr) -> oneshot::Receiver<Result<[u8; 6], NetError>> {
        request(&self.0, peer, Duration::MAX)
    }
}
