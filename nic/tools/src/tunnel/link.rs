//! Sends packets to one other machine, reconnecting as necessary.

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

/// First and longest delay between attempts to connect.
//= docs/specs/endpoint.md#END-43 after 0.1 s, doubling
const RETRY_PS: [u64; 2] = [100_000_000_000, 2_000_000_000_000];
/// In picoseconds.
const LOOK_PS: u64 = 1_000_000_000;
/// Queued besides what is in flight: two TCP super-packets.
const AHEAD_BYTES: u64 = 128 << 10;
const ROOM_BYTES: u64 = 8 << 20;
/// A connection takes 1,024.
const ROOM_MESSAGES: usize = 1000;

#[derive(Debug)]
pub struct Gateway {
    pub remote: Remote,
    state: State,
    retry_ps: u64,
    reported: Option<String>,
    numbers: Numbers,
    queue: FairQueue,
    packer: Packer,
    /// Lengths of messages that are not delivered, and their sum.
    queued: HashMap<MessageId, u32>,
    queued_bytes: u64,
    room_bytes: u64,
    look_at: Time,
    pub counted: Counted,
}

summed! {
    pub struct Counted {
        pub sent: u64,
        pub received: u64,
        /// For lack of a connection or of room.
        pub dropped: u64,
        /// Malformed messages, and packets that the kernel refused.
        pub refused: u64,
    }
}

#[derive(Debug)]
enum State {
    Closed { until: Time },
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
            reported: None,
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

    pub fn connection(&self) -> Option<ConnectionId> {
        match self.state {
            State::Connecting(connection) | State::Open(connection) => Some(connection),
            _ => None,
        }
    }

    fn open(&self) -> Option<ConnectionId> {
        if let State::Open(connection) = self.state { Some(connection) } else { None }
    }

    fn is_full(&self) -> bool {
        let bytes = self.queued_bytes + self.packer.len() as u64;
        self.open().is_some() && (bytes >= self.room_bytes || self.queued.len() >= ROOM_MESSAGES)
    }

    /// Returns a message for the user.
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
                self.state = State::Resolving(resolver.request(self.remote.address));
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

    pub fn begin(&mut self, connection: ConnectionId) -> Option<String> {
        self.state = State::Open(connection);
        (self.retry_ps, self.reported, self.look_at) = (RETRY_PS[0], None, Time::ZERO);
        self.numbers = Numbers::new();
        self.packer = Packer::default();
        self.queued.clear();
        self.queued_bytes = 0;
        Some(format!("connected to {}", self.remote.address))
    }

    /// Returns a message for the user, unless the failure is the same again.
    pub fn fail(&mut self, why: impl ToString, now: Time) -> Option<String> {
        let was_open = self.open().is_some();
        while self.queue.pop().is_some() {}
        self.state = State::Closed { until: now.after(self.retry_ps) };
        self.retry_ps = (2 * self.retry_ps).min(RETRY_PS[1]);
        let why = why.to_string();
        let is_new = was_open || self.reported.as_ref() != Some(&why);
        let line = format!("{}: {why}; connecting again", self.remote.address);
        self.reported = Some(why);
        is_new.then_some(line)
    }

    /// Leaves another buffer.
    pub fn take(&mut self, lane: u16, buffer: &mut Box<[u8]>, bytes: usize) {
        let dropped = self.open().is_none() || self.queue.push(lane, buffer, bytes);
        self.counted.dropped += u64::from(dropped);
    }

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
            // The lane has a gap now.
            Err(_) => endpoint.abort(connection),
        }
    }

    pub fn on_delivered(&mut self, message: MessageId) {
        self.queued_bytes -= self.queued.remove(&message).map_or(0, u64::from);
    }
}
