//! What this side sends: a connection to each peer, begun by the first message.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use bytes::Bytes;
use spray_nic::device::Device;
use spray_nic::endpoint::{SendError, Source};
use spray_nic::{ConnectionId, Endpoint, MessageId, Peer, Time};
use tokio::sync::oneshot::error::TryRecvError;

use super::buffers::Buffers;
use super::header;
use super::ways::{Answer, Ways};
use crate::abi::fi_cq_tagged_entry;
use crate::error::{self, Errno};
use crate::say;
use crate::side::Side;

/// Most messages to one peer that are not delivered.
pub const MOST: usize = 1024;

/// A message with its header.
#[derive(Debug)]
pub enum Message {
    /// The application has its memory back.
    Copied(Bytes),
    /// It stays in the application's memory until it is delivered.
    Borrowed(Box<Borrowed>),
}

/// A header, and memory of the application's.
#[derive(Debug)]
pub struct Borrowed {
    /// The header's bytes.
    pub header: [u8; header::BYTES],
    /// What follows.
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

/// What is told once a message is delivered.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The completion.
    pub entry: fi_cq_tagged_entry,
    /// Whether it is told if all goes well.
    pub is_told: bool,
    /// Whether it was told already: only a failure is news.
    pub is_done: bool,
    /// Of which nothing is told, since it is about memory: whether it is an answer.
    pub remote: Option<bool>,
}

impl Operation {
    /// A request about memory, or the answer to one.
    pub fn remote(is_answer: bool) -> Self {
        Self { entry: fi_cq_tagged_entry::default(), is_told: false, is_done: true, remote: Some(is_answer) }
    }

    fn fail(&self, errno: Errno, side: &Side) {
        if self.remote.is_none() {
            side.failed(self.entry, errno);
        }
    }

    fn is_answer(&self) -> bool {
        self.remote == Some(true)
    }
}

/// All peers that something was sent to.
#[derive(Debug, Default)]
pub struct Sending {
    peers: HashMap<IpAddr, Outgoing>,
    connections: HashMap<ConnectionId, IpAddr>,
    /// Peers whose next hop is not known yet.
    asking: usize,
    /// Answers that are not delivered.
    answers: usize,
    /// Peers to which something was not delivered, until somebody asks for them.
    lost: Vec<IpAddr>,
}

#[derive(Debug)]
struct Outgoing {
    state: State,
    /// What waits for the next hop.
    waiting: VecDeque<(Message, Operation)>,
    operations: HashMap<MessageId, Operation>,
}

#[derive(Debug)]
enum State {
    Asking(Answer),
    Connected(ConnectionId),
}

impl Sending {
    /// Sends a message. Returns whether nothing else was on its way there.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] when too many are.
    pub fn send<D: Device>(
        &mut self,
        endpoint: &mut Endpoint<D>,
        ways: &Ways,
        to: IpAddr,
        message: Message,
        operation: Operation,
    ) -> Result<bool, Errno> {
        let answers = usize::from(operation.is_answer());
        let peer = self.peers.entry(to).or_insert_with(|| {
            self.asking += 1;
            Outgoing { state: State::Asking(ways.ask(to)), waiting: VecDeque::new(), operations: HashMap::new() }
        });
        match peer.state {
            State::Asking(_) if peer.waiting.len() == MOST => return Err(Errno::AGAIN),
            State::Asking(_) => peer.waiting.push_back((message, operation)),
            State::Connected(connection) => {
                let number = hand(endpoint, connection, message)?;
                peer.operations.insert(number, operation);
            }
        }
        self.answers += answers;
        Ok(peer.operations.len() + peer.waiting.len() == 1)
    }

    /// Answers that are not delivered.
    #[must_use]
    pub fn answers(&self) -> usize {
        self.answers
    }

    /// A peer to which something was not delivered since this was asked.
    pub fn take_lost(&mut self) -> Option<IpAddr> {
        self.lost.pop()
    }

    /// Connects where the next hop has become known.
    pub fn connect<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time, side: &Side) {
        if self.asking == 0 {
            return;
        }
        let mut failed = Vec::new();
        for (&address, peer) in &mut self.peers {
            let State::Asking(answer) = &mut peer.state else { continue };
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
                    self.asking -= 1;
                    self.connections.insert(connection, address);
                    self.answers -= peer.begin(endpoint, connection, side);
                }
                Err(_) => failed.push((address, Errno(libc::ENOBUFS))),
            }
        }
        failed.into_iter().for_each(|(address, errno)| self.end(address, errno, side));
    }

    /// A message is delivered.
    pub fn on_delivered(&mut self, connection: ConnectionId, message: MessageId, side: &Side) {
        let peer = self.connections.get(&connection).and_then(|address| self.peers.get_mut(address));
        let Some(operation) = peer.and_then(|peer| peer.operations.remove(&message)) else { return };
        self.answers -= usize::from(operation.is_answer());
        if !operation.is_done {
            side.done(operation.entry, operation.is_told);
        }
    }

    /// A connection has ended. Returns whether it was one of these.
    pub fn on_end(&mut self, connection: ConnectionId, errno: Errno, side: &Side) -> bool {
        let address = self.connections.remove(&connection);
        address.inspect(|&address| self.end(address, errno, side)).is_some()
    }

    /// The connections.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.connections.keys().copied()
    }

    /// Whether messages wait for a next hop.
    #[must_use]
    pub fn is_asking(&self) -> bool {
        self.asking > 0
    }

    /// Fails what is not delivered. The next message begins a connection anew.
    fn end(&mut self, address: IpAddr, errno: Errno, side: &Side) {
        let Some(peer) = self.peers.remove(&address) else { return };
        if let State::Asking(_) = peer.state {
            self.asking -= 1;
        }
        let undelivered = peer.waiting.len() + peer.operations.len();
        if undelivered > 0 {
            let why = error::text(errno.0).to_string_lossy();
            say::warn(format!("{address}: {why}; {undelivered} messages are not delivered"));
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
    /// Hands over what has waited; returns how many answers were refused.
    fn begin<D: Device>(&mut self, endpoint: &mut Endpoint<D>, connection: ConnectionId, side: &Side) -> usize {
        self.state = State::Connected(connection);
        let mut refused = 0;
        for (message, operation) in std::mem::take(&mut self.waiting) {
            match hand(endpoint, connection, message) {
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

fn hand<D: Device>(
    endpoint: &mut Endpoint<D>,
    connection: ConnectionId,
    message: Message,
) -> Result<MessageId, SendError> {
    match message {
        Message::Copied(bytes) => endpoint.send(connection, bytes),
        Message::Borrowed(source) => endpoint.send_from(connection, source),
    }
}
