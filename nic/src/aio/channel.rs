//! Commands, notices and replies between handles and the driver thread.

use std::{
    io,
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use crate::endpoint::{
    ConfigError, ConnectError, ConnectionError, ConnectionId, ConnectionStats, EndpointStats, Peer, SendError,
};
use crate::waker::Waker;

/// Errors of async endpoints.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The connection could not be established.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The message was not accepted.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The driver thread could not be started.
    #[error("the driver thread cannot start: {0}")]
    Thread(#[source] io::Error),
    /// The interface could not be taken over.
    #[cfg(feature = "xdp")]
    #[error(transparent)]
    Interface(#[from] crate::device::TakeOverError),
    /// The UDP sockets could not be opened.
    #[cfg(feature = "udp")]
    #[error(transparent)]
    Udp(#[from] crate::device::UdpError),
    /// The next hop could not be resolved.
    #[cfg(feature = "xdp")]
    #[error(transparent)]
    NextHop(crate::net::NetError),
    /// The endpoint follows no routes.
    #[error(
        "no route to {0}: an endpoint on a custom device does not follow routes; connect to a Peer, with the next hop's Ethernet \
         address"
    )]
    NoRoutes(IpAddr),
    /// The connection was closed before the message was delivered.
    #[error("the connection is closed")]
    Closed,
    /// The driver thread has ended: the device's interface was removed.
    #[error("the endpoint has stopped")]
    Stopped,
}

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Number among the peer's messages.
    pub number: u32,
    /// Content.
    pub data: Bytes,
}

pub(super) type Reply<T> = oneshot::Sender<T>;
pub(super) type Done = Reply<Result<(), Error>>;

#[derive(Debug)]
pub(super) enum Command {
    Connect { peer: Peer, reply: Reply<Result<Opened, Error>> },
    Send { connection: ConnectionId, data: Bytes, reply: Done },
    Close { connection: ConnectionId, reply: Done },
    Stats { reply: Reply<EndpointStats> },
    ConnectionStats { connection: ConnectionId, reply: Reply<Option<ConnectionStats>> },
}

/// A notice to the driver thread, without a bound on their number.
#[derive(Debug)]
pub(super) enum Notice {
    Send { connection: ConnectionId, data: Bytes, reply: Done },
    Consumed { connection: ConnectionId, bytes: u64 },
    Dropped { connection: ConnectionId },
    CloseEndpoint,
}

/// The thread's side of a new connection, from which its handle is made.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) shared: Arc<Shared>,
    pub(super) messages: mpsc::Receiver<Message>,
    pub(super) error: Arc<OnceLock<ConnectionError>>,
}

/// State of both halves of a handle. Dropping the last one closes the connection.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) id: ConnectionId,
    pub(super) peer: Peer,
    pub(super) handle: Handle,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.handle.notify(Notice::Dropped { connection: self.id });
    }
}

#[derive(Debug, Clone)]
pub(super) struct Handle {
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) notices: mpsc::UnboundedSender<Notice>,
    pub(super) waker: Arc<Waker>,
}

impl Handle {
    pub(super) async fn request<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| Error::Stopped)?;
        self.waker.wake();
        answer.await.map_err(|_| Error::Stopped)
    }

    /// Sends a notice without waiting. At most one per message is queued.
    pub(super) fn notify(&self, notice: Notice) {
        if self.notices.send(notice).is_ok() {
            self.waker.wake();
        }
    }
}
