//! Outgoing connections: one per peer, opened by the first message.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use bytes::Bytes;
use spray_nic::device::Device;
use spray_nic::endpoint::{SendError, Source};
use spray_nic::{ConnectionId, Endpoint, MessageId, Peer, Time};
use tokio::sync::oneshot::error::TryRecvError;

use super::buffers::Buffers;
use super::header;
use super::next_hop::{Answer, NextHops};
use crate::abi::fi_cq_tagged_entry;
use crate::direction::Direction;
use crate::error::{self, Errno};
use crate::log;

/// Maximum number of undelivered messages per peer.
pub const MAX_UNDELIVERED: usize = 1024;

#[derive(Debug)]
pub enum Message {
    Copied(Bytes),
    /// Stays in the application's memory until it is delivered.
    Borrowed(Box<Borrowed>),
}

#[derive(Debug)]
pub struct Borrowed {
    pub header: [u8; header::BYTES],
    pub buffers: Buffers,
}

impl Source for Borrowed {
    fn bytes(&self) -> u64 {
        (header::BYTES + self.buffers.bytes()) as u64
    }

    fn fill(&self, offset: u64, to: &mut [u8]) {
        let offset = offset as usize;
        let ahead = self.header.get(offset..).unwrap_or(&[]);
        let (first, rest) = to.split_at_mut(ahead.len().min(to.len()));
        first.copy_from_slice(&ahead[..first.len()]);
        self.buffers.read(offset.saturating_sub(header::BYTES), rest);
    }
}

/// The operation that a delivered message completes.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub entry: fi_cq_tagged_entry,
    pub is_reported: bool,
    /// Whether success was reported already.
    pub is_done: bool,
    /// For RMA messages, which have no completion: whether it is an answer.
    pub remote: Option<bool>,
}

impl Operation {
    pub fn remote(is_answer: bool) -> Self {
        Self { entry: fi_cq_tagged_entry::default(), is_reported: false, is_done: true, remote: Some(is_answer) }
    }

    fn fail(&self, errno: Errno, side: &Direction) {
        if self.remote.is_none() {
            side.failed(self.entry, errno);
        }
    }

    fn is_answer(&self) -> bool {
        self.remote == Some(true)
    }
}

#[derive(Debug, Default)]
pub struct Sending {
    peers: HashMap<IpAddr, Outgoing>,
    connections: HashMap<ConnectionId, IpAddr>,
    /// Number of peers in [`State::Resolving`].
    resolving: usize,
    /// Number of undelivered answers.
    answers: usize,
    /// Peers with undelivered messages, until [`take_lost`](Self::take_lost).
    lost: Vec<IpAddr>,
}

#[derive(Debug)]
struct Outgoing {
    state: State,
    waiting: VecDeque<(Message, Operation)>,
    operations: HashMap<MessageId, Operation>,
}

#[derive(Debug)]
enum State {
    Resolving(Answer),
    Connected(ConnectionId),
}

impl Sending {
    /// Returns whether no other message is in flight. Fails with [`Errno::AGAIN`] with too many.
    pub fn send<D: Device>(
        &mut self,
        endpoint: &mut Endpoint<D>,
        next_hops: &NextHops,
        to: IpAddr,
        message: Message,
        operation: Operation,
    ) -> Result<bool, Errno> {
        let answers = usize::from(operation.is_answer());
        let peer = self.peers.entry(to).or_insert_with(|| {
            self.resolving += 1;
            Outgoing {
                state: State::Resolving(next_hops.request(to)),
                waiting: VecDeque::new(),
                operations: HashMap::new(),
            }
        });
        match peer.state {
            State::Resolving(_) if peer.waiting.len() == MAX_UNDELIVERED => return Err(Errno::AGAIN),
            State::Resolving(_) => peer.waiting.push_back((message, operation)),
            State::Connected(connection) => {
                let number = submit(endpoint, connection, message)?;
                peer.operations.insert(number, operation);
            }
        }
        self.answers += answers;
        Ok(peer.operations.len() + peer.waiting.len() == 1)
    }

    pub fn answers(&self) -> usize {
        self.answers
    }

    /// Returns a peer that lost messages since the previous calls.
    pub fn take_lost(&mut self) -> Option<IpAddr> {
        self.lost.pop()
    }

    pub fn connect<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time, side: &Direction) {
        if self.resolving == 0 {
            return;
        }
        let mut failed = Vec::new();
        for (&address, peer) in &mut self.peers {
            let State::Resolving(answer) = &mut peer.state else { continue };
            let mac = match answer.try_recv() {
                Err(TryRecvError::Empty) => continue,
                Ok(Ok(mac)) => mac,
                _ => {
                    failed.push((address, Errno(libc::EHOSTUNREACH)));
                    continue;
                }
            };
            match endpoint.connect(now, Peer { address, mac }, None) {
                Ok(connection) => {
                    self.resolving -= 1;
                    self.connections.insert(connection, address);
                    self.answers -= peer.begin(endpoint, connection, side);
                }
                Err(_) => failed.push((address, Errno(libc::ENOBUFS))),
            }
        }
        failed.into_iter().for_each(|(address, errno)| self.end(address, errno, side));
    }

    pub fn on_delivered(&mut self, connection: ConnectionId, message: MessageId, side: &Direction) {
        let peer = self.connections.get(&connection).and_then(|address| self.peers.get_mut(address));
        let Some(operation) = peer.and_then(|peer| peer.operations.remove(&message)) else { return };
        self.answers -= usize::from(operation.is_answer());
        if !operation.is_done {
            side.done(operation.entry, operation.is_reported);
        }
    }

    /// Handles the end of a connection. Returns whether it was outgoing.
    pub fn on_end(&mut self, connection: ConnectionId, errno: Errno, side: &Direction) -> bool {
        let address = self.connections.remove(&connection);
        address.inspect(|&address| self.end(address, errno, side)).is_some()
    }

    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.connections.keys().copied()
    }

    pub fn is_resolving(&self) -> bool {
        self.resolving > 0
    }

    /// Fails undelivered messages. The next message opens a new connection.
    fn end(&mut self, address: IpAddr, errno: Errno, side: &Direction) {
        let Some(peer) = self.peers.remove(&address) else { return };
        if let State::Resolving(_) = peer.state {
            self.resolving -= 1;
        }
        let undelivered = peer.waiting.len() + peer.operations.len();
        if undelivered > 0 {
            let why = error::text(errno.0).to_string_lossy();
            log::warn(format!("{address}: {why}; {undelivered} messages are not delivered"));
        }
        let waiting = peer.waiting.into_iter().map(|(_, operation)| operation);
        self.lost.push(address);
        for operation in waiting.chain(peer.operations.into_values()) {
            self.answers -= usize::from(operation.is_answer());
            operation.fail(errno, side);
        }
    }
}

impl Outgoing {
    /// Returns the number of answers that were refused.
    fn begin<D: Device>(&mut self, endpoint: &mut Endpoint<D>, connection: ConnectionId, side: &Direction) -> usize {
        self.state = State::Connected(connection);
        let mut refused = 0;
        for (message, operation) in std::mem::take(&mut self.waiting) {
            match submit(endpoint, connection, message) {
                Ok(number) => drop(self.operations.insert(number, operation)),
                Err(error) => {
                    refused += usize::from(operation.is_answer());
                    operation.fail(error.into(), side);
                }
            }
        }
        refused
    }
}

fn submit<D: Device>(
    endpoint: &mut Endpoint<D>,
    connection: ConnectionId,
    message: Message,
) -> Result<MessageId, SendError> {
    match message {
        Message::Copied(bytes) => endpoint.send(connection, bytes),
        Message::Borrowed(source) => endpoint.send_from(connection, source),
    }
}
