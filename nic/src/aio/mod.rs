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
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use tokio::sync::{Mutex, mpsc};

use self::channel::{Command, Handle, Opened, Waker};
pub use self::channel::{Error, Message};
pub use self::connection::{Connection, RecvHalf, SendHalf};
pub use self::stream::Stream;
use crate::{
    device::Device,
    driver::DriverOptions,
    endpoint::{EndpointConfig, EndpointStats, Peer},
};
#[cfg(feature = "xdp")]
use crate::{
    device::{XskConfig, XskInterface},
    net::{Interface, NextHops, Resolver, Source},
};

/// Most commands that wait for the driver thread. Callers wait when there are more.
const COMMANDS: usize = 1024;
/// Most accepted connections that wait for [`Endpoint::accept`]. Others are closed.
const BACKLOG: usize = 128;

/// Whom to connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// A host, to which frames go as the kernel's routes say. For an endpoint of [`Endpoint::open`].
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

/// An endpoint on a thread of its own. The thread lives until this handle and all its connections are dropped.
#[derive(Debug)]
pub struct Endpoint {
    shared: Handle,
    accepted: Mutex<mpsc::Receiver<Opened>>,
    local: Peer,
    #[cfg(feature = "xdp")]
    resolver: Option<Resolver>,
}

impl Endpoint {
    /// Takes an interface of this thread's network namespace over and starts an endpoint on its first address, with the settings of
    /// [`EndpointConfig::for_interface`], on a thread that sleeps when idle. Needs root, or the rights that errors name.
    ///
    /// # Errors
    /// Says what stands in the way, and what to do about it.
    #[cfg(feature = "xdp")]
    pub fn open(interface: &str) -> Result<Self, Error> {
        let failed = |error: crate::net::NetError| Error::Interface(error.to_string());
        let found = Interface::find(interface).map_err(failed)?;
        let config = found.own_address(None).and_then(|address| EndpointConfig::on(&found, address)).map_err(failed)?;
        Self::open_with(&found, config, &XskConfig::new(interface, 0), DriverOptions::real())
    }

    /// As [`open`](Self::open), with settings of one's choice.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[cfg(feature = "xdp")]
    pub fn open_with(
        interface: &Interface,
        config: EndpointConfig,
        sockets: &XskConfig,
        options: DriverOptions,
    ) -> Result<Self, Error> {
        let device = XskInterface::open_with(interface, (config.address, config.ports), sockets, None);
        let device = device.map_err(|error| Error::Interface(error.to_string()))?;
        let failed = |error: crate::net::NetError| Error::Interface(error.to_string());
        let source = Source { interface: interface.name.clone(), index: interface.index, address: config.address };
        let mut next_hops = NextHops::open(source).map_err(failed)?;
        next_hops.start().map_err(failed)?;
        let resolver = next_hops.resolver();
        let mut endpoint =
            Self::start(device, config, options, move |endpoint, now_ps| next_hops.update(endpoint, now_ps))?;
        endpoint.resolver = Some(resolver);
        Ok(endpoint)
    }

    /// Starts an endpoint in real time on a device, on a SCHED_IDLE thread that sleeps when idle. It follows no routes:
    /// [`connect`](Self::connect) takes a [`Peer`].
    ///
    /// # Errors
    /// When the configuration is out of range, or the thread cannot be started.
    pub fn spawn<D: Device + Send + 'static>(device: D, config: EndpointConfig) -> Result<Self, Error> {
        Self::spawn_with(device, config, DriverOptions::default())
    }

    /// As [`spawn`](Self::spawn), on a thread that runs as `options` say.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn).
    pub fn spawn_with<D: Device + Send + 'static>(
        device: D,
        config: EndpointConfig,
        options: DriverOptions,
    ) -> Result<Self, Error> {
        Self::start(device, config, options, |_, _| {})
    }

    /// Starts the thread, which calls `each` after every round with the endpoint and the time.
    fn start<D: Device + Send + 'static>(
        device: D,
        config: EndpointConfig,
        options: DriverOptions,
        each: impl FnMut(&mut crate::Endpoint<D>, u64) + Send + 'static,
    ) -> Result<Self, Error> {
        let local = Peer { address: config.address, mac: config.mac };
        let endpoint = crate::Endpoint::new(device, config)?;
        let failed = |error: io::Error| Error::Thread(error.to_string());
        let waker = Arc::new(Waker::new().map_err(failed)?);
        let (commands, commands_in) = mpsc::channel(COMMANDS);
        let (notices, notices_in) = mpsc::unbounded_channel();
        let (accepted, accepted_in) = mpsc::channel(BACKLOG);
        let shared = Handle { commands, notices, waker };
        let inputs = thread::Inputs { commands: commands_in, notices: notices_in, accepted };
        thread::start(endpoint, inputs, &shared, options, each).map_err(failed)?;
        Ok(Self {
            shared,
            accepted: Mutex::new(accepted_in),
            local,
            #[cfg(feature = "xdp")]
            resolver: None,
        })
    }

    /// Connects to a host: an IP address where the endpoint was made by [`open`](Self::open), a [`Peer`] anywhere.
    ///
    /// # Errors
    /// When the next hop is not known, the table is full, or the peer refuses or does not answer.
    pub async fn connect(&self, to: impl Into<Destination>) -> Result<Connection, Error> {
        let peer = match to.into() {
            Destination::Peer(peer) => peer,
            Destination::Address(address) => Peer { address, mac: self.resolve(address).await? },
        };
        self.shared.ask(|reply| Command::Connect { peer, reply }).await?.map(Connection::new)
    }

    async fn resolve(&self, address: IpAddr) -> Result<[u8; 6], Error> {
        #[cfg(feature = "xdp")]
        if let Some(resolver) = &self.resolver {
            return resolver.resolve(address).await.map_err(|error| Error::NextHop(error.to_string()));
        }
        Err(Error::NextHop(format!(
            "where frames to {address} go is not known: an endpoint on a device of its own follows no routes; connect to a Peer, with the \
             Ethernet address of the next hop"
        )))
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

    /// The endpoint's counters.
    ///
    /// # Errors
    /// When the driver thread has ended.
    pub async fn stats(&self) -> Result<EndpointStats, Error> {
        self.shared.ask(|reply| Command::Stats { reply }).await
    }
}
