//! What goes to one other machine: by a connection that this side begins, and begins anew when it ends.

use std::collections::HashMap;

use bytes::Bytes;
use spray_core::summed;
use spray_nic::device::Device;
use spray_nic::net::{NetError, Resolver};
use spray_nic::{ConnectionId, Endpoint, MessageId, Peer, Time};
use tokio::sync::oneshot::{Receiver, error::TryRecvError};

use super::fair::FairQueue;
use super::lanes::Numbers;
use super::packet::Packer;
use super::remote::Remote;

/// First and longest time between two attempts to connect.
//= docs/specs/endpoint.md#END-43 after 0.1 s, doubling
const RETRY_PS: [u64; 2] = [100_000_000_000, 2_000_000_000_000];
/// How often it is looked how much a connection has room for.
const LOOK_PS: u64 = 1_000_000_000;
/// What may wait in a connection besides what is in flight: two of TCP's super-packets, so that it always has something to send.
const AHEAD_BYTES: u64 = 128 << 10;
const ROOM_BYTES: u64 = 8 << 20;
/// Messages that may wait; the connection takes 1,024.
const ROOM_MESSAGES: usize = 1000;

#[derive(Debug)]
pub struct Gateway {
    pub remote: Remote,
    state: State,
    retry_ps: u64,
    /// The last failure that the user was told.
    told: Option<String>,
    numbers: Numbers,
    /// Packets that wait for room.
    queue: FairQueue,
    packer: Packer,
    /// Bytes of each message that is not delivered, and of all.
    queued: HashMap<MessageId, u32>,
    queued_bytes: u64,
    room_bytes: u64,
    look_at: Time,
    pub counted: Counted,
}

summed! {
    /// What has passed to and from a machine.
    pub struct Counted {
        pub sent: u64,
        pub received: u64,
        /// Packets for which there was no connection or no room.
        pub dropped: u64,
        /// Messages of the peer that were none, or packets that the kernel did not take.
        pub refused: u64,
    }
}

#[derive(Debug)]
enum State {
    /// Waits for the time to connect.
    Closed {
        until: Time,
    },
    Resolving(Receiver<Result<[u8; 6], NetError>>),
    Connecting(ConnectionId),
    Open(ConnectionId),
}

impl Gateway {
    pub fn new(remote: Remote) -> Self {
        Self {
            remote,
            state: State::Closed { until: Time::ZERO },
            retry_ps: RETRY_PS[0],
            told: None,
            numbers: Numbers::new(),
            queue: FairQueue::new(),
            packer: Packer::default(),
            queued: HashMap::new(),
            queued_bytes: 0,
            room_bytes: AHEAD_BYTES,
            look_at: Time::ZERO,
            counted: Counted::default(),
        }
    }

    /// The connection, open or about to be.
    pub fn connection(&self) -> Option<ConnectionId> {
        match self.state {
            State::Connecting(connection) | State::Open(connection) => Some(connection),
            _ => None,
        }
    }

    fn open(&self) -> Option<ConnectionId> {
        if let State::Open(connection) = self.state { Some(connection) } else { None }
    }

    /// Whether packets are to wait: the connection has enough to send.
    fn is_full(&self) -> bool {
        let bytes = self.queued_bytes + self.packer.len() as u64;
        self.open().is_some() && (bytes >= self.room_bytes || self.queued.len() >= ROOM_MESSAGES)
    }

    /// Connects when it is time to; looks how much the connection has room for. Returns what the user is to be told.
    pub fn poll<D: Device>(
        &mut self,
        endpoint: &mut Endpoint<D>,
        resolver: Option<&Resolver>,
        now: Time,
    ) -> Option<String> {
        match &mut self.state {
            State::Closed { until } if now >= *until => {
                let Some(resolver) = resolver else {
                    return self.connect(endpoint, Peer::at(self.remote.address), now);
                };
                self.state = State::Resolving(resolver.ask(self.remote.address));
                None
            }
            State::Resolving(answer) => match answer.try_recv() {
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Closed) => self.fail("nobody follows routes any more", now),
                Ok(Err(error)) => self.fail(error, now),
                Ok(Ok(mac)) => self.connect(endpoint, Peer { address: self.remote.address, mac }, now),
            },
            State::Open(connection) if now >= self.look_at => {
                self.look_at = now.after(LOOK_PS);
                let window_bytes = endpoint.connection_stats(*connection).map_or(0, |stats| stats.window_bytes);
                self.room_bytes = window_bytes.saturating_add(AHEAD_BYTES).min(ROOM_BYTES);
                None
            }
            _ => None,
        }
    }

    fn connect<D: Device>(&mut self, endpoint: &mut Endpoint<D>, peer: Peer, now: Time) -> Option<String> {
        match endpoint.connect(now, peer, None) {
            Ok(connection) => {
                self.state = State::Connecting(connection);
                None
            }
            Err(error) => self.fail(error, now),
        }
    }

    /// A connection is open: everything about the one before is over.
    pub fn begin(&mut self, connection: ConnectionId) -> Option<String> {
        self.state = State::Open(connection);
        (self.retry_ps, self.told, self.look_at) = (RETRY_PS[0], None, Time::ZERO);
        self.numbers = Numbers::new();
        self.packer.clear();
        self.queued.clear();
        self.queued_bytes = 0;
        Some(format!("connected to {}", self.remote.address))
    }

    /// The connection has ended, or did not begin. Returns what the user is to be told: every failure once.
    pub fn fail(&mut self, why: impl ToString, now: Time) -> Option<String> {
        let was_open = self.open().is_some();
        self.queue.clear();
        self.state = State::Closed { until: now.after(self.retry_ps) };
        self.retry_ps = (2 * self.retry_ps).min(RETRY_PS[1]);
        let why = why.to_string();
        let is_new = was_open || self.told.as_ref() != Some(&why);
        let line = format!("{}: {why}; connecting again", self.remote.address);
        self.told = Some(why);
        is_new.then_some(line)
    }

    /// Takes the packet of so many bytes with its `virtio_net_hdr` that a buffer begins with, and leaves another buffer. [`send`](Self::send) sends it.
    pub fn take(&mut self, lane: u16, buffer: &mut Box<[u8]>, bytes: usize) {
        let dropped = self.open().is_none() || self.queue.push(lane, buffer, bytes);
        self.counted.dropped += u64::from(dropped);
    }

    /// Sends what waits, as far as the connection has room.
    pub fn send<D: Device>(&mut self, endpoint: &mut Endpoint<D>) {
        while !self.is_full()
            && let Some((lane, packet)) = self.queue.pop()
        {
            let full = if self.packer.fits(packet.len()) { None } else { self.packer.take() };
            self.packer.add(self.numbers.next(lane), packet);
            self.counted.sent += 1;
            self.submit(endpoint, full);
        }
        let rest = self.packer.take();
        self.submit(endpoint, rest);
    }

    fn submit<D: Device>(&mut self, endpoint: &mut Endpoint<D>, message: Option<Bytes>) {
        let (Some(message), Some(connection)) = (message, self.open()) else { return };
        let bytes = message.len() as u32;
        match endpoint.send(connection, message) {
            Ok(id) => {
                self.queued.insert(id, bytes);
                self.queued_bytes += u64::from(bytes);
            }
            // Numbers are missing now: the connection is of no use any more.
            Err(_) => endpoint.abort(connection),
        }
    }

    pub fn on_delivered(&mut self, message: MessageId) {
        self.queued_bytes -= self.queued.remove(&message).map_or(0, u64::from);
    }
}
