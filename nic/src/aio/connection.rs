//! Handles of a connection.

use std::{
    future::poll_fn,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::channel::{Command, Error, Message, Notice, Opened, Shared};
use crate::endpoint::{ConnectionError, ConnectionId, ConnectionStats, Peer};

/// A connection. Dropping it closes it after everything sent is delivered.
#[derive(Debug)]
pub struct Connection {
    sending: SendHalf,
    receiving: RecvHalf,
}

impl Connection {
    pub(super) fn new(Opened { shared, messages, error }: Opened) -> Self {
        let receiving = RecvHalf { shared: Arc::clone(&shared), messages, error, taken: 0 };
        Self { sending: SendHalf { shared }, receiving }
    }

    /// Sends a message; see [`SendHalf::send`].
    pub async fn send(&self, data: Bytes) -> Result<(), Error> {
        self.sending.send(data).await
    }

    /// Waits for a message; see [`RecvHalf::recv`].
    pub async fn recv(&mut self) -> Result<Option<Message>, Error> {
        self.receiving.recv().await
    }

    /// Splits the directions for separate tasks. Dropping both halves closes the connection.
    #[must_use]
    pub fn split(self) -> (SendHalf, RecvHalf) {
        (self.sending, self.receiving)
    }

    /// Closes the connection; see [`SendHalf::close`].
    pub async fn close(self) -> Result<(), Error> {
        self.sending.close().await
    }

    /// Returns the counters of this connection.
    pub async fn stats(&self) -> Result<Option<ConnectionStats>, Error> {
        self.sending.stats().await
    }

    /// Returns the peer's addresses.
    pub fn peer(&self) -> Peer {
        self.sending.peer()
    }

    /// Returns the number in the endpoint.
    pub fn id(&self) -> ConnectionId {
        self.sending.shared.id
    }
}

/// The sending half of a connection. Clones send on the same connection.
#[derive(Debug, Clone)]
pub struct SendHalf {
    shared: Arc<Shared>,
}

impl SendHalf {
    /// Sends a message. Resolves when the peer has acknowledged all of it. Several messages may be
    /// in flight. Dropping the future early does not cancel the message.
    ///
    /// # Errors
    /// The message is too long, or the connection fails or is closed first.
    pub async fn send(&self, data: Bytes) -> Result<(), Error> {
        let connection = self.shared.id;
        self.shared.handle.request(|reply| Command::Send { connection, data, reply }).await?
    }

    /// Closes both directions. Resolves after delivery and the peer's confirmation.
    ///
    /// # Errors
    /// The connection fails first.
    pub async fn close(self) -> Result<(), Error> {
        let connection = self.shared.id;
        self.shared.handle.request(|reply| Command::Close { connection, reply }).await?
    }

    /// Returns the counters of this connection.
    pub async fn stats(&self) -> Result<Option<ConnectionStats>, Error> {
        let connection = self.shared.id;
        self.shared.handle.request(|reply| Command::ConnectionStats { connection, reply }).await
    }

    /// Returns the peer's addresses.
    pub fn peer(&self) -> Peer {
        self.shared.peer
    }

    /// Queues a message without waiting, and returns its delivery. The caller bounds the number.
    pub(super) fn submit(&self, data: Bytes) -> oneshot::Receiver<Result<(), Error>> {
        let (reply, delivered) = oneshot::channel();
        self.shared.handle.notify(Notice::Send { connection: self.shared.id, data, reply });
        delivered
    }
}

/// The receiving half of a connection.
#[derive(Debug)]
pub struct RecvHalf {
    shared: Arc<Shared>,
    messages: mpsc::Receiver<Message>,
    error: Arc<OnceLock<ConnectionError>>,
    taken: u32,
}

impl RecvHalf {
    /// Waits for a message, in any order. Returns `None` when the connection is closed. Dropping
    /// the future loses no message.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn recv(&mut self) -> Result<Option<Message>, Error> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    pub(super) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Message>, Error>> {
        let Some(message) = ready!(self.messages.poll_recv(cx)) else {
            return Poll::Ready(self.error.get().map_or(Ok(None), |&error| Err(error.into())));
        };
        let (connection, bytes) = (self.shared.id, message.data.len() as u64);
        self.shared.handle.notify(Notice::Consumed { connection, bytes });
        self.taken = self.taken.wrapping_add(1);
        Poll::Ready(Ok(Some(message)))
    }

    /// Returns the number of messages received, modulo 2^32.
    pub(super) fn taken(&self) -> u32 {
        self.taken
    }

    /// Returns the peer's addresses.
    pub fn peer(&self) -> Peer {
        self.shared.peer
    }
}
