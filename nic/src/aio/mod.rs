//! Endpoints for async code: a driver thread polls the device, and handles talk to it over channels.
//!
//! ```
//! # use spray_nic::{aio, device::{Device, MemoryConfig, MemoryNetwork}, EndpointConfig, Mode, Peer};
//! # use spray_core::{cc::CcConfig, flow::FlowConfig, path::{BalancerKind, PathConfig}};
//! # use spray_wire::{Kind, header_bytes};
//! # use std::net::IpAddr;
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! // 100 Gb/s, 100 us round trip, 3,000 bytes of payload a packet, paths chosen by REPS.
//! let header = header_bytes(false, Kind::Data) as u32;
//! let rtt_ps = 100_000_000;
//! let path = PathConfig::new(BalancerKind::Reps, rtt_ps, 400);
//! let flow = FlowConfig::for_path(3000, header, path, CcConfig::for_path(rtt_ps, 100_000_000_000, 3000 + header));
//!
//! // A network in memory; `XskDevice::open` gives a device on a real interface.
//! let network = MemoryNetwork::new(MemoryConfig::default());
//! let host = |number: u8| (IpAddr::from([10, 0, 0, number]), [2, 0, 0, 0, 0, number]);
//! let spawn = |number| {
//!     let (address, mac) = host(number);
//!     aio::Endpoint::spawn(network.attach(mac), EndpointConfig::new(address, mac, Mode::Real, flow))
//! };
//! let (client, server) = (spawn(1)?, spawn(2)?);
//!
//! let (address, mac) = host(2);
//! let mut ours = client.connect(Peer { address, mac }).await?;
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

mod thread;

#[cfg(test)]
mod tests;

use std::{
    io,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use thiserror::Error;
use tokio::sync::{Mutex, mpsc, oneshot};

use self::thread::{Command, Notice, Waker};
use crate::{
    device::Device,
    driver::DriverOptions,
    endpoint::{
        ConfigError, ConnectError, ConnectionError, ConnectionId, ConnectionStats, EndpointConfig, EndpointStats, Peer,
        SendError,
    },
};

/// Most commands that wait for the driver thread. Callers wait when there are more.
const COMMANDS: usize = 1024;
/// Most accepted connections that wait for [`Endpoint::accept`]. Others are closed.
const BACKLOG: usize = 128;

/// What can go wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The connection could not be begun.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The message was not taken.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The driver thread could not be started.
    #[error("the driver thread cannot start: {0}")]
    Thread(String),
    /// The connection was closed before the message was delivered.
    #[error("the connection is closed")]
    Closed,
    /// The driver thread has ended: the device's interface was removed.
    #[error("the endpoint has stopped")]
    Stopped,
}

/// A whole message that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its number among the peer's messages.
    pub number: u32,
    /// Its bytes.
    pub data: Bytes,
}

/// An endpoint on a thread of its own. The thread lives until this handle and all its connections are dropped.
#[derive(Debug)]
pub struct Endpoint {
    shared: Handle,
    accepted: Mutex<mpsc::Receiver<Connection>>,
}

impl Endpoint {
    /// Starts an endpoint in real time, on a SCHED_IDLE thread that sleeps when idle.
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
        let endpoint = crate::Endpoint::new(device, config)?;
        let failed = |error: io::Error| Error::Thread(error.to_string());
        let waker = Arc::new(Waker::new().map_err(failed)?);
        let (commands, commands_in) = mpsc::channel(COMMANDS);
        let (notices, notices_in) = mpsc::unbounded_channel();
        let (accepted, accepted_in) = mpsc::channel(BACKLOG);
        let shared = Handle { commands, notices, waker };
        let inputs = thread::Inputs { commands: commands_in, notices: notices_in, accepted };
        thread::start(endpoint, inputs, &shared, options).map_err(failed)?;
        Ok(Self { shared, accepted: Mutex::new(accepted_in) })
    }

    /// Connects to a peer.
    ///
    /// # Errors
    /// When the table is full, or the peer refuses or does not answer.
    pub async fn connect(&self, peer: Peer) -> Result<Connection, Error> {
        self.shared.ask(|reply| Command::Connect { peer, reply }).await?
    }

    /// Waits for a peer to connect.
    ///
    /// # Errors
    /// When the driver thread has ended.
    pub async fn accept(&self) -> Result<Connection, Error> {
        self.accepted.lock().await.recv().await.ok_or(Error::Stopped)
    }

    /// The endpoint's counters.
    ///
    /// # Errors
    /// When the driver thread has ended.
    pub async fn stats(&self) -> Result<EndpointStats, Error> {
        self.shared.ask(|reply| Command::Stats { reply }).await
    }
}

/// One connection. Dropping it closes it once everything sent is delivered.
#[derive(Debug)]
pub struct Connection {
    id: ConnectionId,
    peer: Peer,
    shared: Handle,
    messages: mpsc::Receiver<Message>,
    error: Arc<OnceLock<ConnectionError>>,
}

impl Connection {
    /// Sends a message. Resolves when the peer has acknowledged all of it. Several messages may be under way at a
    /// time.
    ///
    /// Dropping the future early does not take the message back.
    ///
    /// # Errors
    /// When the message is too long, or the connection fails or is closed first.
    pub async fn send(&self, data: Bytes) -> Result<(), Error> {
        self.shared.ask(|reply| Command::Send { connection: self.id, data, reply }).await?
    }

    /// Waits for a message. Messages may come in another order than they were sent in. `None` once the connection is
    /// closed.
    ///
    /// Dropping the future loses no message.
    ///
    /// # Errors
    /// When the connection failed.
    pub async fn recv(&mut self) -> Result<Option<Message>, Error> {
        let Some(message) = self.messages.recv().await else {
            return self.error.get().map_or(Ok(None), |&error| Err(error.into()));
        };
        self.shared.notify(Notice::Consumed { connection: self.id, bytes: message.data.len() as u64 });
        Ok(Some(message))
    }

    /// Closes the connection. Resolves when everything sent is delivered and the peer knows.
    ///
    /// # Errors
    /// When the connection fails first.
    pub async fn close(self) -> Result<(), Error> {
        self.shared.ask(|reply| Command::Close { connection: self.id, reply }).await?
    }

    /// Counters of this connection.
    ///
    /// # Errors
    /// When the driver thread has ended.
    pub async fn stats(&self) -> Result<Option<ConnectionStats>, Error> {
        self.shared.ask(|reply| Command::ConnectionStats { connection: self.id, reply }).await
    }

    /// The peer's addresses.
    #[must_use]
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Its number in the endpoint.
    #[must_use]
    pub fn id(&self) -> ConnectionId {
        self.id
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.notify(Notice::Dropped { connection: self.id });
    }
}

/// Sends commands to the driver thread.
#[derive(Debug, Clone)]
struct Handle {
    commands: mpsc::Sender<Command>,
    notices: mpsc::UnboundedSender<Notice>,
    waker: Arc<Waker>,
}

impl Handle {
    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| Error::Stopped)?;
        self.waker.wake();
        answer.await.map_err(|_| Error::Stopped)
    }

    /// Sends a command that must not wait: taking a message, or dropping a handle. At most one for each message is
    /// queued.
    fn notify(&self, notice: Notice) {
        if self.notices.send(notice).is_ok() {
            self.waker.wake();
        }
    }
}
