//! Endpoints for async code: a driver thread polls the device, and handles talk to it over channels.
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
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
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

/// Most commands that wait for the driver thread. Callers wait when there are more.
const COMMANDS: usize = 1024;
/// Most accepted connections that wait for [`Endpoint::accept`]. Others are closed.
const BACKLOG: usize = 128;

/// Whom to connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// A host, to which frames go as the kernel's routes say. For an endpoint on a real interface.
    Address(IpAddr),
    /// A host with the Ethernet address to which frames for it go.
    Peer(Peer),
}

impl From<IpAddr> for Destination {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

impl From<Ipv4Addr> for Destination {
    fn from(address: Ipv4Addr) -> Self {
        Self::Address(address.into())
    }
}

impl From<Ipv6Addr> for Destination {
    fn from(address: Ipv6Addr) -> Self {
        Self::Address(address.into())
    }
}

impl From<Peer> for Destination {
    fn from(peer: Peer) -> Self {
        Self::Peer(peer)
    }
}

/// A host on threads of its own: a [`Host`] on one, or one for each of its shards. The threads live until this handle and all its connections
/// are dropped, and up to two seconds longer, until all that was sent is delivered.
#[derive(Debug)]
pub struct Endpoint {
    shards: Box<[Handle]>,
    /// Connections that were begun: shards take turns.
    begun: AtomicUsize,
    accepted: Mutex<mpsc::Receiver<Opened>>,
    /// Each is closed once its shard's thread has ended.
    ended: Vec<oneshot::Receiver<()>>,
    local: Peer,
    /// The device finds peers by their addresses.
    finds_ways: bool,
    #[cfg(feature = "xdp")]
    resolver: Option<crate::net::Resolver>,
}

impl Endpoint {
    /// Takes an interface of this thread's network namespace over by [`Host::open_shards`], and starts a thread for each of its queues, but
    /// no more than there are CPUs; they sleep when idle. Connections are dealt out to them in turn.
    ///
    /// # Errors
    /// Says what stands in the way, and what to do about it.
    #[cfg(feature = "xdp")]
    pub fn open(interface: &str) -> Result<Self, Error> {
        let shards = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let config = HostConfig { shards, ..HostConfig::of(interface).map_err(TakeOverError::from)? };
        Self::start_all(Host::open_shards(config, |device| device)?, DriverOptions::real())
    }

    /// Opens UDP sockets of an address of this machine by [`Host::open_udp`], as any user, and starts the host on a thread that sleeps when
    /// idle.
    ///
    /// # Errors
    /// Says what stands in the way, and what to do about it.
    #[cfg(feature = "udp")]
    pub fn open_udp(address: impl Into<IpAddr>) -> Result<Self, Error> {
        Self::start(Host::open_udp(address.into())?, DriverOptions::real())
    }

    /// Starts a host on a device of one's own in real time, on a SCHED_IDLE thread that sleeps when idle. It follows no routes:
    /// [`connect`](Self::connect) takes a [`Peer`].
    ///
    /// # Errors
    /// When the configuration is out of range, or the thread cannot be started.
    pub fn spawn<D: Device + Send + 'static>(device: D, config: EndpointConfig) -> Result<Self, Error> {
        Self::start(Host::new(device, config)?, DriverOptions::default())
    }

    /// Starts a host on a thread that runs as `options` say.
    ///
    /// # Errors
    /// When the thread cannot be started as they say.
    pub fn start<D: Device + Send + 'static>(host: Host<D>, options: DriverOptions) -> Result<Self, Error> {
        Self::start_all(vec![host], options)
    }

    /// Starts all shards of a host, each on a thread that runs as `options` say: on the CPU that they name, if they do, the next one on the
    /// next CPU.
    ///
    /// # Errors
    /// When a thread cannot be started as they say.
    ///
    /// # Panics
    /// Without any shard.
    pub fn start_all<D: Device + Send + 'static>(
        mut shards: Vec<Host<D>>,
        options: DriverOptions,
    ) -> Result<Self, Error> {
        let first = shards.first_mut().expect("a host has a shard at least");
        first.start().map_err(Error::Thread)?;
        let EndpointConfig { address, mac, .. } = *first.endpoint.config();
        let finds_ways = first.endpoint.device().info().resolves_next_hop;
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
            begun: AtomicUsize::new(0),
            accepted: Mutex::new(accepted_in),
            ended,
            local: Peer { address, mac },
            finds_ways,
            #[cfg(feature = "xdp")]
            resolver,
        })
    }

    /// Connects to a host: an IP address where the endpoint follows the kernel's routes or is on UDP sockets, a [`Peer`] anywhere.
    ///
    /// # Errors
    /// When the next hop is not known, the table is full, or the peer refuses or does not answer.
    pub async fn connect(&self, to: impl Into<Destination>) -> Result<Connection, Error> {
        let peer = match to.into() {
            Destination::Peer(peer) => peer,
            Destination::Address(address) => Peer { address, mac: self.resolve(address).await? },
        };
        let turn = self.begun.fetch_add(1, Ordering::Relaxed);
        let shard = &self.shards[turn % self.shards.len()];
        shard.ask(|reply| Command::Connect { peer, reply }).await?.map(Connection::new)
    }

    async fn resolve(&self, address: IpAddr) -> Result<[u8; 6], Error> {
        if self.finds_ways {
            return Ok([0; 6]);
        }
        #[cfg(feature = "xdp")]
        if let Some(resolver) = &self.resolver {
            return resolver.resolve(address).await.map_err(Error::NextHop);
        }
        Err(Error::NoRoutes(address))
    }

    /// The endpoint's own addresses: what a host on the same link connects to.
    #[must_use]
    pub fn local(&self) -> Peer {
        self.local
    }

    /// Waits for a peer to connect.
    ///
    /// # Errors
    /// When the driver thread has ended.
    pub async fn accept(&self) -> Result<Connection, Error> {
        self.accepted.lock().await.recv().await.map(Connection::new).ok_or(Error::Stopped)
    }

    /// The endpoint's counters, those of all shards together.
    ///
    /// # Errors
    /// When a driver thread has ended.
    pub async fn stats(&self) -> Result<EndpointStats, Error> {
        let mut all = Vec::with_capacity(self.shards.len());
        for shard in &self.shards {
            all.push(shard.ask(|reply| Command::Stats { reply }).await?);
        }
        Ok(all.into_iter().sum())
    }

    /// Ends the endpoint and closes all its connections, those included whose handles are in use: what was sent is delivered, for which they have
    /// two seconds, and then their handles return [`Error::Closed`] or [`Error::Stopped`], or no further message. Resolves once all have ended
    /// and the interface is given back.
    pub async fn close(self) {
        let Self { shards, accepted, ended, .. } = self;
        drop(accepted);
        for Handle { commands, notices, waker } in shards {
            // A thread that has ended needs no notice.
            let _ = notices.send(Notice::End);
            drop(commands);
            waker.wake();
        }
        for thread in ended {
            // Nothing is ever sent.
            let _ = thread.await;
        }
    }
}
