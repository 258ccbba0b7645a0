//! Endpoints for async code: a driver thread polls the device, and handles reach it over channels.
//!
//! ```
//! # use spray_nic::{aio, device::MemoryNetwork, EndpointConfig};
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! // Two hosts on a network in memory; `aio::Endpoint::open("eth0")` is one on a real interface.
//! let network = MemoryNetwork::default();
//! let host = |number| {
//!     let mac = [2, 0, 0, 0, 0, number];
//!     aio::Endpoint::spawn(network.attach(mac), EndpointConfig::real([10, 0, 0, number].into(), mac, 3498)?)
//! };
//! let (client, server) = (host(1)?, host(2)?);
//!
//! let mut ours = client.connect(server.local()).await?; // on a real interface the peer's IP address is enough
//! let mut theirs = server.accept().await?;
//!
//! let (sent, received) = tokio::join!(ours.send("hello".into()), theirs.recv());
//! sent?; // delivered
//! assert_eq!(received?.unwrap().data, "hello");
//!
//! theirs.send("good-bye".into()).await?;
//! assert_eq!(ours.recv().await?.unwrap().data, "good-bye");
//! ours.close().await?;
//! assert!(theirs.recv().await?.is_none());
//! # Ok::<(), aio::Error>(())
//! # }).unwrap();
//! ```

mod channel;
mod connection;
mod stream;
mod thread;

#[cfg(test)]
mod tests;

use std::{
    net::IpAddr,
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering},
};

use tokio::sync::{Mutex, mpsc, oneshot};

use self::channel::{Command, Handle, Notice, Opened};
pub use self::channel::{Error, Message};
pub use self::connection::{Connection, RecvHalf, SendHalf};
pub use self::stream::Stream;
use crate::{
    device::Device,
    driver::DriverOptions,
    endpoint::{EndpointConfig, EndpointStats, Peer},
    host::Host,
    waker::Waker,
};
#[cfg(feature = "xdp")]
use crate::{device::TakeOverError, host::HostConfig};

/// Capacity of the queue of commands for the driver thread; callers wait for room.
const COMMANDS: usize = 1024;
/// Accepted connections that wait for [`Endpoint::accept`]; more are closed.
const BACKLOG: usize = 128;

/// A host to connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// A host reached by the kernel's routes. For an endpoint on a real interface.
    Address(IpAddr),
    /// A host with the Ethernet address of its next hop.
    Peer(Peer),
}

impl<A: Into<IpAddr>> From<A> for Destination {
    fn from(address: A) -> Self {
        Self::Address(address.into())
    }
}

impl From<Peer> for Destination {
    fn from(peer: Peer) -> Self {
        Self::Peer(peer)
    }
}

/// A [`Host`] with one thread per shard. The threads run until this handle and all its connections
/// are dropped, and up to two seconds longer, until everything sent is delivered. Methods fail with
/// [`Error::Stopped`] after a thread has ended.
#[derive(Debug)]
pub struct Endpoint {
    shards: Box<[Handle]>,
    /// Number of connections begun; shards take turns.
    connects: AtomicUsize,
    accepted: Mutex<mpsc::Receiver<Opened>>,
    /// Each is closed when its shard's thread has ended.
    ended: Vec<oneshot::Receiver<()>>,
    local: Peer,
    resolves_next_hops: bool,
    #[cfg(feature = "xdp")]
    resolver: Option<crate::net::Resolver>,
}

impl Endpoint {
    /// Takes over an interface of this thread's network namespace with [`Host::open_shards`], and
    /// starts one thread per queue, at most one per CPU; they sleep when idle. Connections are
    /// distributed in turn.
    ///
    /// # Errors
    /// The cause, and how to resolve it.
    #[cfg(feature = "xdp")]
    pub fn open(interface: &str) -> Result<Self, Error> {
        let shards = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let config = HostConfig { shards, ..HostConfig::new(interface).map_err(TakeOverError::from)? };
        Self::start_all(Host::open_shards(config, |device| device)?, DriverOptions::real())
    }

    /// Opens UDP sockets of a local address with [`Host::open_udp`], as any user, and starts the
    /// host on a thread that sleeps when idle.
    ///
    /// # Errors
    /// The cause, and how to resolve it.
    #[cfg(feature = "udp")]
    pub fn open_udp(address: impl Into<IpAddr>) -> Result<Self, Error> {
        Self::start(Host::open_udp(address.into())?, DriverOptions::real())
    }

    /// Starts a host on a custom device in real time, on a SCHED_IDLE thread that sleeps when idle.
    /// It follows no routes: [`connect`](Self::connect) needs a [`Peer`].
    ///
    /// # Errors
    /// The configuration is out of range, or the thread cannot be started.
    pub fn spawn<D: Device + Send + 'static>(device: D, config: EndpointConfig) -> Result<Self, Error> {
        Self::start(Host::new(device, config)?, DriverOptions::default())
    }

    /// Starts a host on a thread with these options.
    ///
    /// # Errors
    /// The thread cannot be started with them.
    pub fn start<D: Device + Send + 'static>(host: Host<D>, options: DriverOptions) -> Result<Self, Error> {
        Self::start_all(vec![host], options)
    }

    /// Starts all shards of a host, each on a thread with these options; with a CPU, on successive
    /// CPUs.
    ///
    /// # Errors
    /// A thread cannot be started with them.
    ///
    /// # Panics
    /// If `shards` is empty.
    pub fn start_all<D: Device + Send + 'static>(
        mut shards: Vec<Host<D>>,
        options: DriverOptions,
    ) -> Result<Self, Error> {
        let first = shards.first_mut().expect("a host has a shard at least");
        first.start().map_err(Error::Thread)?;
        let EndpointConfig { address, mac, .. } = *first.endpoint.config();
        let resolves_next_hops = first.endpoint.device().info().resolves_next_hop;
        #[cfg(feature = "xdp")]
        let resolver = first.resolver();
        let (accepted, accepted_in) = mpsc::channel(BACKLOG);
        let (mut handles, mut ended) = (Vec::with_capacity(shards.len()), Vec::with_capacity(shards.len()));
        for (number, host) in shards.into_iter().enumerate() {
            let waker = Arc::new(Waker::new().map_err(Error::Thread)?);
            let (commands, commands_in) = mpsc::channel(COMMANDS);
            let (notices, notices_in) = mpsc::unbounded_channel();
            let handle = Handle { commands, notices, waker };
            let inputs = thread::Inputs { commands: commands_in, notices: notices_in, accepted: accepted.clone() };
            let options = DriverOptions { cpu: options.cpu.map(|cpu| cpu + number), ..options };
            ended.push(thread::start(host, inputs, &handle, options).map_err(Error::Thread)?);
            handles.push(handle);
        }
        Ok(Self {
            shards: handles.into(),
            connects: AtomicUsize::new(0),
            accepted: Mutex::new(accepted_in),
            ended,
            local: Peer { address, mac },
            resolves_next_hops,
            #[cfg(feature = "xdp")]
            resolver,
        })
    }

    /// Connects to a host: an IP address with kernel routes or on UDP sockets, a [`Peer`] anywhere.
    ///
    /// # Errors
    /// The next hop is unknown, the table is full, or the peer refuses or does not answer.
    pub async fn connect(&self, to: impl Into<Destination>) -> Result<Connection, Error> {
        let peer = match to.into() {
            Destination::Peer(peer) => peer,
            Destination::Address(address) => Peer { address, mac: self.resolve(address).await? },
        };
        let turn = self.connects.fetch_add(1, Ordering::Relaxed);
        let shard = &self.shards[turn % self.shards.len()];
        shard.request(|reply| Command::Connect { peer, reply }).await?.map(Connection::new)
    }

    async fn resolve(&self, address: IpAddr) -> Result<[u8; 6], Error> {
        if self.resolves_next_hops {
            return Ok([0; 6]);
        }
        #[cfg(feature = "xdp")]
        if let Some(resolver) = &self.resolver {
            return resolver.resolve(address).await.map_err(Error::NextHop);
        }
        Err(Error::NoRoutes(address))
    }

    /// Returns the endpoint's addresses, to which a host on the same link connects.
    pub fn local(&self) -> Peer {
        self.local
    }

    /// Waits for a peer to connect.
    pub async fn accept(&self) -> Result<Connection, Error> {
        self.accepted.lock().await.recv().await.map(Connection::new).ok_or(Error::Stopped)
    }

    /// Returns the endpoint's counters, summed over all shards.
    pub async fn stats(&self) -> Result<EndpointStats, Error> {
        let mut all = Vec::with_capacity(self.shards.len());
        for shard in &self.shards {
            all.push(shard.request(|reply| Command::Stats { reply }).await?);
        }
        Ok(all.into_iter().sum())
    }

    /// Closes the endpoint and all its connections, including those with handles in use. Everything
    /// sent is delivered, within two seconds; then handles return [`Error::Closed`],
    /// [`Error::Stopped`] or no further message. Resolves when all threads have ended and the
    /// interface is released.
    pub async fn close(self) {
        let Self { shards, accepted, ended, .. } = self;
        drop(accepted);
        for Handle { commands, notices, waker } in shards {
            // A thread that has ended needs no notice.
            let _ = notices.send(Notice::CloseEndpoint);
            drop(commands);
            waker.wake();
        }
        for thread in ended {
            // Nothing is ever sent.
            let _ = thread.await;
        }
    }
}
