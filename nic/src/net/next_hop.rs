//! Where frames to a peer go: the next router, or the peer itself. The kernel's routes and neighbours tell (netlink), at the start and
//! whenever they change.

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

use super::link::{self, LinkStatus, Mtu, Told};
use super::neighbours::PermanentNeighbours;
use super::prod::Prod;
use super::revival::{Counts, Revival};
use super::{Interface, NetError, ask};
use crate::device::Device;
use crate::endpoint::Endpoint;
use crate::real::ps;

/// From where an endpoint sends.
#[derive(Clone, Debug)]
pub struct Source {
    /// The interface by whose routes frames go.
    pub interface: Interface,
    /// The number of that by which they leave: the same, or a member of the bridge that it is.
    pub device: u32,
    /// The MTU of that.
    pub mtu: u32,
    /// The endpoint's IP address.
    pub address: IpAddr,
    /// How long to wait for the link, and for the next hop's answer.
    pub patience: Duration,
    /// The permanent entries among those that were looked up.
    pub permanent: PermanentNeighbours,
}

/// How often links and neighbours are looked at while one is waited for: the first time soon, since most answer at once.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LOOK: Duration = Duration::from_millis(100);
/// How often the kernel is made to ask meanwhile.
const ASK: Duration = Duration::from_millis(500);

impl Source {
    /// From where an endpoint of this address sends that has taken this interface over.
    pub fn of(interface: &Interface, address: IpAddr, patience: Duration) -> Self {
        let (device, mtu) = (interface.index, interface.mtu);
        let permanent = PermanentNeighbours::default();
        Self { interface: interface.station().clone(), device, mtu, address, patience, permanent }
    }

    /// The Ethernet address to which frames to `peer` go. Where the kernel does not know it, the kernel is made to ask, as soon as there is a
    /// link: attaching a program resets that of some NICs.
    ///
    /// # Errors
    /// When there is no route, or until the end of the source's patience no link, or no answer of the next hop.
    pub fn resolve(&self, peer: IpAddr) -> Result<[u8; 6], NetError> {
        ask(async |handle| self.resolve_by(&handle, &self.prod(), peer).await)
    }

    fn prod(&self) -> Prod {
        Prod::open(&self.interface.name, self.address)
    }

    async fn resolve_by(&self, handle: &Handle, prod: &Prod, peer: IpAddr) -> Result<[u8; 6], NetError> {
        let hop = self.next_hop(handle, peer).await?;
        self.interface.forget_stale(handle, hop).await?;
        let (mut waited, mut pause, mut asks_at) = (Duration::ZERO, FIRST_LOOK, Duration::ZERO);
        let mut has_link = true;
        while waited <= self.patience {
            has_link = self.has_link(handle).await?;
            // What is known from before the link went says nothing of it now.
            if has_link && let Some(mac) = self.neighbour(handle, hop).await? {
                return Ok(mac);
            }
            if waited >= asks_at {
                prod.provoke(peer);
                asks_at = waited + ASK;
            }
            tokio::time::sleep(pause).await;
            (waited, pause) = (waited + pause, (pause * 2).min(LOOK));
        }
        let interface = self.interface.name.clone();
        if !has_link {
            return Err(NetError::NoLink(interface));
        }
        let what = if hop == peer { "the peer itself".into() } else { format!("the router on the way to {peer}") };
        Err(NetError::Silent { hop, what, interface })
    }

    /// Whether the interface's cable is in and its link has come up.
    async fn has_link(&self, handle: &Handle) -> Result<bool, NetError> {
        let mut links = handle.link().get().match_index(self.interface.index).execute();
        let link = links.try_next().await.map_err(NetError::netlink)?;
        Ok(link.is_some_and(|link| link.header.flags.contains(LinkFlags::LowerUp)))
    }

    /// Where the kernel's routes send packets to `peer` over the interface: a router, or the peer itself.
    async fn next_hop(&self, handle: &Handle, peer: IpAddr) -> Result<IpAddr, NetError> {
        let no_route = |why: &str| NetError::NoRoute {
            interface: self.interface.name.clone(),
            from: self.address,
            to: peer,
            why: why.into(),
        };
        let question = self.interface.question(peer, Some(self.address));
        let question = question.ok_or_else(|| no_route("they are not of the same IP version"))?;
        let found = handle.route().get(question).execute().try_next().await;
        let route = found.map_err(|error| no_route(&error.to_string()))?.ok_or_else(|| no_route("there is none"))?;
        Ok(gateway(&route).unwrap_or(peer))
    }

    /// The Ethernet address of a neighbour, if the kernel knows it.
    async fn neighbour(&self, handle: &Handle, hop: IpAddr) -> Result<Option<[u8; 6]>, NetError> {
        let entry = self.interface.ask_neighbour(handle, hop).await?;
        self.permanent.set(hop, entry.filter(|(_, is_permanent)| *is_permanent).map(|(mac, _)| mac));
        Ok(entry.map(|(mac, _)| mac))
    }

    /// Answers each question by a task, which ends with the wait for its answer.
    async fn answer(self, handle: Handle, prod: Arc<Prod>, mut questions: UnboundedReceiver<Question>) {
        while let Some(Question { peer, patience, mut reply }) = questions.recv().await {
            let source = Self { patience: patience.min(self.patience), ..self.clone() };
            let (handle, prod) = (handle.clone(), Arc::clone(&prod));
            tokio::spawn(async move {
                let answer = tokio::select! {
                    answer = source.resolve_by(&handle, &prod, peer) => answer,
                    () = reply.closed() => return,
                };
                drop(reply.send(answer));
            });
        }
    }

    /// Looks the next hop of every peer up when asked to, and when there is news of routes or neighbours.
    async fn watch(
        self,
        handle: Handle,
        mut news: impl Stream<Item = (Told, impl Sized)> + Unpin,
        mut asked: Asked,
        found: Vec<mpsc::Sender<Found>>,
    ) {
        let mut link = LinkStatus::new(self.device, asked.mtu, self.interface.index, self.interface.mac);
        let prod = Arc::new(asked.prod);
        // Changes settle and are looked at meanwhile, and many of them come where neighbours are looked for.
        tokio::spawn(self.clone().answer(handle.clone(), Arc::clone(&prod), asked.questions));
        let mut watched = vec![Vec::new(); found.len()];
        loop {
            tokio::select! {
                told = asked.peers.recv() => match told {
                    Some((shard, peers)) => {
                        peers.iter().for_each(|&peer| prod.provoke(peer));
                        watched[shard] = peers;
                    }
                    None => return,
                },
                Some((told, _)) = news.next() => {
                    let mac = link.mac;
                    let mut change = link.hear(&told);
                    // Changes come in groups, and a lookup answers for all of them.
                    tokio::time::sleep(SETTLING).await;
                    while let Some(Some((told, _))) = news.next().now_or_never() {
                        change = link.hear(&told).or(change);
                    }
                    if let Some(change) = change {
                        found.iter().for_each(|shard| drop(shard.send(Found::Link(change))));
                    }
                    if link.mac != mac {
                        found.iter().for_each(|shard| drop(shard.send(Found::OwnMac(link.mac))));
                    }
                }
            }
            let peers: BTreeSet<IpAddr> = watched.iter().flatten().copied().collect();
            for peer in peers {
                // Without a route or an answer, the old next hop may still be right.
                let Ok(hop) = self.next_hop(&handle, peer).await else { continue };
                match self.neighbour(&handle, hop).await {
                    Ok(Some(mac)) => found.iter().for_each(|shard| drop(shard.send(Found::Hop(peer, mac)))),
                    _ => prod.provoke(peer),
                }
            }
        }
    }
}

impl PermanentNeighbours {
    /// The permanent entry by which the kernel sends packets from `own` to `peer`, if there is one, and the interface that it is of.
    ///
    /// # Errors
    /// When there is no route.
    pub fn towards(peer: IpAddr, own: IpAddr) -> Result<(Self, String), NetError> {
        ask(async |handle| {
            let no_route =
                || NetError::NoRoute { interface: "any".into(), from: own, to: peer, why: "there is none".into() };
            let question = Interface::default().question(peer, Some(own)).ok_or_else(no_route)?;
            let route = handle.route().get(question).execute().try_next().await.ok().flatten().ok_or_else(no_route)?;
            let index = route.attributes.iter().find_map(|attribute| match attribute {
                RouteAttribute::Oif(index) => Some(*index),
                _ => None,
            });
            let index = index.ok_or_else(no_route)?;
            let link = handle.link().get().match_index(index).execute().try_next().await.map_err(NetError::netlink)?;
            let interface = link.as_ref().map(Interface::from).ok_or_else(no_route)?;
            let (all, hop) = (Self::default(), gateway(&route).unwrap_or(peer));
            if let Some((mac, true)) = interface.ask_neighbour(&handle, hop).await? {
                all.set(hop, Some(mac));
            }
            Ok((all, interface.name))
        })
    }
}

/// The router that a route leads to, if it is one over a router.
fn gateway(route: &RouteMessage) -> Option<IpAddr> {
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(RouteAddress::Inet(gateway)) => Some(IpAddr::V4(*gateway)),
        RouteAttribute::Gateway(RouteAddress::Inet6(gateway)) => Some(IpAddr::V6(*gateway)),
        RouteAttribute::Via(RouteVia::Inet6(gateway)) => Some(IpAddr::V6(*gateway)),
        _ => None,
    })
}

/// What the thread that follows routes is asked by.
struct Asked {
    /// By the number of the shard that has them.
    peers: UnboundedReceiver<(usize, Vec<IpAddr>)>,
    questions: UnboundedReceiver<Question>,
    prod: Prod,
    mtu: Mtu,
}

/// A peer to find the next hop of.
struct Question {
    peer: IpAddr,
    /// How long to look for it, at most.
    patience: Duration,
    reply: oneshot::Sender<Answer>,
}

/// The Ethernet address to which frames to a peer go.
type Answer = Result<[u8; 6], NetError>;

impl Interface {
    /// The Ethernet address to which frames to `peer` go, from the address that [`own_address`](Self::own_address) tells.
    ///
    /// # Errors
    /// When there is no such address or no route, or the next hop does not answer within two seconds.
    pub fn next_hop(&self, peer: IpAddr) -> Result<[u8; 6], NetError> {
        Source::of(self, self.own_address(Some(peer))?, Duration::from_secs(2)).resolve(peer)
    }
}

/// What the thread has learned.
enum Found {
    /// A peer, and where frames to it go.
    Hop(IpAddr, [u8; 6]),
    /// The interface's link has changed.
    Link(link::Change),
    /// The interface has this Ethernet address now.
    OwnMac([u8; 6]),
}

/// How long changes of routes or peers settle before they are looked at.
const SETTLING: Duration = Duration::from_millis(10);
const SETTLING_PS: u64 = ps(SETTLING);
/// How often the kernel is asked without having told a change, and made to check that the next hop is still there: frames over AF_XDP
/// do not make it.
const TICK_PS: u64 = 2_000_000_000_000;
/// How long a client's next hop may take to answer. The client repeats its Connect.
const CLIENT_PATIENCE: Duration = Duration::from_millis(100);
/// Clients of an endpoint that wait until their next hops are resolved.
const RESOLVING: usize = 64;
/// How often answers are looked for meanwhile, in nanoseconds.
const RESOLVING_NS: u64 = 200_000;

/// Keeps the next hops of an endpoint's connections up to date, by a thread that follows the kernel's routes and neighbours for all endpoints
/// of a host.
pub struct NextHops {
    /// What the thread is to do, until it is started.
    work: Option<(Runtime, Work)>,
    shard: usize,
    follows_routes: bool,
    peers: Option<UnboundedSender<(usize, Vec<IpAddr>)>>,
    questions: UnboundedSender<Question>,
    found: mpsc::Receiver<Found>,
    /// The addresses of clients that wait until their next hops are resolved.
    clients: Vec<(IpAddr, oneshot::Receiver<Answer>)>,
    thread: Arc<OnceLock<Ended>>,
    /// When the peers were told last, and how many connections had opened by then.
    told: Option<(Time, u64)>,
    revival: Revival,
    mtu: Mtu,
    permanent: PermanentNeighbours,
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A thread that has ended once this is dropped.
struct Ended(Option<JoinHandle<()>>);

impl Drop for Ended {
    fn drop(&mut self) {
        // A panic has already been reported.
        let _ = self.0.take().map(JoinHandle::join);
    }
}

impl NextHops {
    /// Opens all that it takes to follow routes and neighbours of the calling thread's network namespace, for a host of this number of shards. Without
    /// `follows_routes` frames go on to the next hops that peers have.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn open(source: Source, shards: usize, follows_routes: bool) -> Result<Vec<Self>, NetError> {
        const GROUPS: [MulticastGroup; 4] =
            [MulticastGroup::Link, MulticastGroup::Neigh, MulticastGroup::Ipv4Route, MulticastGroup::Ipv6Route];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let (connection, handle, news) = new_multicast_connection(&GROUPS)?;
        runtime.spawn(connection);
        let ((peers, told), (questions, asked)) = (unbounded_channel(), unbounded_channel());
        let (finds, founds): (Vec<_>, Vec<_>) = (0..shards).map(|_| mpsc::channel()).unzip();
        let (mtu, permanent) = (Mtu::new(source.mtu), source.permanent.clone());
        let asked = Asked { peers: told, questions: asked, prod: source.prod(), mtu: mtu.clone() };
        let work: Work = Box::pin(source.watch(handle, news, asked, finds));
        drop(entered);
        let (mut work, thread) = (Some((runtime, work)), Arc::default());
        let of = |(shard, found)| Self {
            work: work.take(),
            shard,
            follows_routes,
            peers: Some(peers.clone()),
            questions: questions.clone(),
            found,
            clients: Vec::with_capacity(RESOLVING),
            thread: Arc::clone(&thread),
            told: None,
            revival: Revival::new(shard),
            mtu: mtu.clone(),
            permanent: permanent.clone(),
        };
        Ok(founds.into_iter().enumerate().map(of).collect())
    }

    /// Begins to follow them, by a thread that opens nothing more: that of the first shard.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(&mut self) -> io::Result<()> {
        let Some((runtime, work)) = self.work.take() else { return Ok(()) };
        let thread = std::thread::Builder::new().name("spray-routes".into()).spawn(move || runtime.block_on(work))?;
        let _ = self.thread.set(Ended(Some(thread)));
        Ok(())
    }

    /// The interface's MTU, as it will be.
    pub fn mtu(&self) -> Mtu {
        self.mtu.clone()
    }

    /// The permanent entries by which frames go.
    pub fn permanent(&self) -> PermanentNeighbours {
        self.permanent.clone()
    }

    /// Asks for next hops, from any thread; `None` where they are not followed.
    #[must_use]
    pub fn resolver(&self) -> Option<Resolver> {
        self.follows_routes.then(|| Resolver(self.questions.clone()))
    }

    /// Gives the endpoint what was found since the last call, and says which peers it has: now and then, and soon after one has come.
    /// `now` is the time of its poll. Returns how long until the next call at the latest, in nanoseconds.
    pub fn update<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) -> u64 {
        // Without the thread, clients are not answered, as without the interface.
        let _ = self.start();
        while let Ok(found) = self.found.try_recv() {
            match found {
                Found::Hop(peer, mac) if self.follows_routes => endpoint.set_next_hop(peer, mac),
                Found::Hop(..) => {}
                Found::Link(change) => self.revival.on_link(now, change, endpoint.device().interface_rx_frames()),
                // Without the program's map frames to the new address go to the kernel, which a retry would not change.
                Found::OwnMac(mac) => drop(endpoint.set_own_mac(mac)),
            }
        }
        if self.revival.is_due(now, || Counts::of(endpoint.device())) {
            // What could not be attached is noticed below.
            let _ = endpoint.device_mut().restart();
        }
        let opened = endpoint.opened();
        let is_due = |(told_at, by_then)| {
            let tick_ps = if opened == by_then { TICK_PS } else { SETTLING_PS };
            now.since(told_at) >= tick_ps
        };
        if self.told.is_none_or(is_due) {
            self.told = Some((now, opened));
            endpoint.check_device();
            let _ = self.peers.as_ref().map(|channel| channel.send((self.shard, endpoint.peers().collect())));
        }
        self.resolve_clients(endpoint)
    }

    /// Resolves the next hops of an endpoint's clients.
    //= docs/specs/endpoint.md#END-47 to the next hop that the kernel
    fn resolve_clients<D: Device>(&mut self, endpoint: &mut Endpoint<D>) -> u64 {
        for client in endpoint.unresolved() {
            if self.clients.iter().any(|(other, _)| *other == client) {
                continue;
            }
            if self.clients.len() == RESOLVING {
                // The one that has taken longest.
                self.clients.remove(0);
            }
            self.clients.push((client, ask_for(&self.questions, client, CLIENT_PATIENCE)));
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

/// Asks the thread that follows routes.
fn ask_for(questions: &UnboundedSender<Question>, peer: IpAddr, patience: Duration) -> oneshot::Receiver<Answer> {
    let (reply, answer) = oneshot::channel();
    // If the thread has ended, the reply is dropped, which the receiver notices.
    let _ = questions.send(Question { peer, patience, reply });
    answer
}

impl std::fmt::Debug for NextHops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NextHops").field("told", &self.told).finish_non_exhaustive()
    }
}

impl Drop for NextHops {
    fn drop(&mut self) {
        // The thread ends when nobody can ask any more, and the last shard waits for that.
        self.peers = None;
    }
}

/// Tells the next hops of peers, by the thread with which a [`Host`](crate::Host) follows routes.
#[derive(Clone, Debug)]
pub struct Resolver(UnboundedSender<Question>);

impl Resolver {
    /// The Ethernet address to which frames to `peer` go.
    ///
    /// # Errors
    /// When there is no route, the next hop does not answer for as long as a connection waits for its peer, or the host is gone.
    pub async fn resolve(&self, peer: IpAddr) -> Result<[u8; 6], NetError> {
        self.ask(peer).await.map_err(|_| NetError::Netlink("nobody follows routes any more".into()))?
    }

    /// Asks for the Ethernet address to which frames to `peer` go, for a caller that looks later whether there is an answer.
    #[must_use]
    pub fn ask(&self, peer: IpAddr) -> oneshot::Receiver<Result<[u8; 6], NetError>> {
        ask_for(&self.0, peer, Duration::MAX)
    }
}
