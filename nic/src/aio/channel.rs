//! What handles and the driver thread say to each other.

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

/// What can go wrong.
#[derive(Debug, Error)]
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
    Thread(#[source] io::Error),
    /// The interface could not be taken over.
    #[cfg(feature = "xdp")]
    #[error(transparent)]
    Interface(#[from] crate::device::TakeOverError),
    /// The UDP sockets could not be opened.
    #[cfg(feature = "udp")]
    #[error(transparent)]
    Udp(#[from] crate::device::UdpError),
    /// The kernel does not tell where frames to the peer go.
    #[cfg(feature = "xdp")]
    #[error(transparent)]
    NextHop(crate::net::NetError),
    /// Nobody tells where frames to the peer go.
    #[error(
        "where frames to {0} go is not known: an endpoint on a device of its own follows no routes; connect to a Peer, with the Ethernet \
         address of the next hop"
    )]
    NoRoutes(IpAddr),
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

/// Where an answer goes.
pub(super) type Reply<T> = oneshot::Sender<T>;

/// A command of a handle to the thread.
#[derive(Debug)]
pub(super) enum Command {
    Connect { peer: Peer, reply: Reply<Result<Opened, Error>> },
    Send { connection: ConnectionId, data: Bytes, reply: Reply<Result<(), Error>> },
    Close { connection: ConnectionId, reply: Reply<Result<(), Error>> },
    Stats { reply: Reply<EndpointStats> },
    ConnectionStats { connection: ConnectionId, reply: Reply<Option<ConnectionStats>> },
}

/// News of a handle for the thread, which needs no answer.
#[derive(Debug)]
pub(super) enum Notice {
    Send {
        connection: ConnectionId,
        data: Bytes,
        reply: Reply<Result<(), Error>>,
    },
    Consumed {
        connection: ConnectionId,
        bytes: u64,
    },
    Dropped {
        connection: ConnectionId,
    },
    /// The endpoint is closed, with all its connections.
    End,
}

/// A connection that is open: what its handle is made of.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) shared: Arc<Shared>,
    pub(super) messages: mpsc::Receiver<Message>,
    pub(super) error: Arc<OnceLock<ConnectionError>>,
}

/// What both halves of a handle hold. The last one to go closes the connection.
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

/// Sends commands to the driver thread.
#[derive(Debug, Clone)]
pub(super) struct Handle {
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) notices: mpsc::UnboundedSender<Notice>,
    pub(super) waker: Arc<Waker>,
}

impl Handle {
    pub(super) async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| Error::Stopped)?;
        self.waker.wake();
        answer.await.map_err(|_| Error::Stopped)
    }

    /// Sends a command that must not wait: taking a message, or dropping a handle. At most one for each message is
    /// queued.
    pub(super) fn notify(&self, notice: Notice) {
        if self.notices.send(notice).is_ok() {
            self.waker.wake();
        }
    }
}
