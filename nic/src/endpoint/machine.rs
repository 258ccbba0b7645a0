//! The endpoint without its device: connections, timers and frames to send. Every call gets the time.
//!
//! Packet path: T2 of `docs/architecture.md`, between the event loop and the turns.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use rand_core::{RngCore, SeedableRng};
use spray_core::Time;
use spray_core::flow::{HashKey, Transmit};
use spray_core::host::{EventLog, Scheduler};
use spray_core::rng::Rng;
use spray_wire::{Body, Data, EvPort};

use super::{
    ConnectionId, EndpointConfig, EndpointStats, MessageId, SendError,
    admission::client_next_hops::ClientNextHops,
    admission::connect_tag::ConnectTag,
    admission::exchange_queue::ExchangeQueue,
    admission::limit::Answers,
    admission::peer_tags::PeerTags,
    admission::token::Tokens,
    connection::Connection,
    connection::Stage,
    connection::deadlines::Deadlines,
    connection::table::Table,
    payload::buffers::{Content, Outgoing},
    payload::pages::Pool,
    seal::generations::Rekeys,
    shared::Shared,
    transmit::control_queue::{ControlQueue, Headers},
};

/// The part of a frame that follows its headers.
#[derive(Clone, Copy)]
pub(crate) enum Payload<'a> {
    None,
    /// A piece of the user's message.
    Piece {
        content: &'a Content,
        offset: u64,
        bytes: usize,
    },
    /// A message of the key exchange.
    Exchange(&'a [u8]),
}

impl Payload<'_> {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Piece { bytes, .. } => *bytes,
            Self::Exchange(message) => message.len(),
        }
    }

    /// Writes it to `to`, which is as long.
    #[inline]
    pub(crate) fn fill(&self, to: &mut [u8]) {
        match self {
            Self::None => {}
            Self::Piece { content, offset, .. } => content.fill(*offset, to),
            Self::Exchange(message) => to.copy_from_slice(message),
        }
    }
}

/// A data packet to send.
#[derive(Debug)]
pub(crate) struct Packet<'a> {
    control_queue: &'a ControlQueue,
    connection: &'a mut Connection,
    port: EvPort,
    data: Data,
}

impl Packet<'_> {
    /// Returns its headers; with keys, under the next number.
    #[inline]
    pub(crate) fn headers(&mut self) -> Headers {
        self.control_queue.data_headers(self.connection, self.port, self.data)
    }

    #[inline]
    pub(crate) fn payload(&self) -> Payload<'_> {
        let Data { message, offset, payload_bytes, .. } = self.data;
        match self.connection.send_buffers.get(message) {
            Some(Outgoing { content, .. }) if payload_bytes > 0 => {
                Payload::Piece { content, offset, bytes: payload_bytes.into() }
            }
            _ => Payload::None,
        }
    }
}

/// A message that starts at a time: (time, order of calls, connection, message).
type Scheduled = Reverse<(Time, u64, ConnectionId, u32)>;

/// Admission of unauthenticated peers to an endpoint with keys.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) tag: ConnectTag,
    pub(crate) peers: PeerTags,
    pub(crate) waiting: ExchangeQueue,
}

/// An endpoint without its device.
///
/// Its methods by file: here, those of the user and of the event loop; `input` (arriving frames),
/// `service` (deadlines, end), `admission/handshake` (opening and closing), `seal/rekey` (fresh
/// keys), `transmit/prefetch` (cache).
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) config: EndpointConfig,
    pub(crate) table: Table,
    pub(crate) shared: Shared,
    /// Half-open connections, oldest first. Some have opened or ended since.
    pub(crate) half_open: VecDeque<ConnectionId>,
    pub(crate) limit: Answers,
    /// `Some` with keys.
    pub(crate) admission: Option<Admission>,
    pub(crate) tokens: Tokens,
    /// `Some` if the user resolves the next hops of clients.
    pub(crate) next_hops: Option<ClientNextHops>,
    pub(crate) rekeys: Rekeys,
    /// A connection with much memory has ended.
    pub(crate) trims_heap: bool,
    pub(crate) opened: u64,
    /// Configurations of expected connections, by the peer's address and number.
    #[cfg(any(test, feature = "lab"))]
    pub(crate) expected: std::collections::HashMap<(std::net::IpAddr, u32), spray_core::flow::FlowConfig>,
    pub(crate) clock: Time,
    /// The key of the receivers' hash tables.
    pub(crate) hash_key: HashKey,
    scheduled: BinaryHeap<Scheduled>,
    /// The length at which messages of ended connections are removed.
    scheduled_most: usize,
    schedules: u64,
    /// Connections opened from here.
    begun: u64,
}

impl Machine {
    /// # Errors
    /// When the operating system returns no random numbers.
    pub(crate) fn new(config: EndpointConfig) -> Result<Self, getrandom::Error> {
        let capacity = config.max_connections as usize;
        let seed = config.seed.map_or_else(getrandom::u64, Ok)?;
        Ok(Self {
            hash_key: HashKey(secret(&config, HASH_STREAM)?),
            table: Table::new(config.max_connections),
            shared: Shared {
                host: Scheduler::new(config.link_bps, capacity, Rng::seed_from_u64(seed)),
                control_queue: ControlQueue::new(&config),
                events: VecDeque::with_capacity(2 * capacity),
                deadlines: Deadlines::new(capacity),
                log: EventLog::bounded(config.event_log),
                pool: Pool::default(),
                sink: None,
                stats: EndpointStats::default(),
            },
            half_open: VecDeque::with_capacity(2 * capacity + 1),
            limit: Answers::default(),
            admission: match &config.keys {
                Some(keys) => Some(Admission {
                    tag: ConnectTag::new(&keys.own.public()),
                    peers: PeerTags::new(keys),
                    waiting: ExchangeQueue::new(secret::<1>(&config, WAITING_STREAM)?[0]),
                }),
                None => None,
            },
            tokens: Tokens::new(&secret(&config, TOKEN_STREAM)?),
            next_hops: None,
            rekeys: Rekeys::default(),
            trims_heap: false,
            opened: 0,
            #[cfg(any(test, feature = "lab"))]
            expected: std::collections::HashMap::new(),
            clock: Time::ZERO,
            scheduled: BinaryHeap::new(),
            scheduled_most: FEW_SCHEDULED,
            schedules: 0,
            begun: 0,
            config,
        })
    }

    /// Returns an unpredictable cookie, or with a seed, a repeatable one.
    pub(crate) fn cookie(&mut self) -> Option<u64> {
        match self.config.seed {
            None => getrandom::u64().ok(),
            Some(_) => Some(self.shared.host.rng.next_u64()),
        }
    }

    /// Returns the number of the peer's port for the next Connect. With a seed it does not depend
    /// on our address.
    pub(crate) fn next_connect_port(&mut self) -> u8 {
        let EndpointConfig { shard, address, seed, .. } = self.config;
        self.begun += 1;
        if seed.is_some() { shard.number() } else { shard.next_connect_port(address, self.begun - 1) }
    }

    /// Returns a random port for a frame without a chosen path, so that a retransmission uses
    /// another path.
    pub(crate) fn any_port(&mut self) -> EvPort {
        let evs = self.config.flow.path.evs;
        spray_core::path::draw(evs, &mut self.shared.host.rng).port(evs.into())
    }

    /// Schedules a message for `at`, or for the time of the last event if that is later.
    pub(crate) fn schedule(&mut self, id: ConnectionId, content: Content, at: Time) -> Result<MessageId, SendError> {
        let limit = self.config.max_queued_messages;
        let index = self.table.find(id).ok_or(SendError::Unknown)?;
        let connection = self.table.slot(index).ok_or(SendError::Unknown)?;
        let (bytes, max) = (content.bytes(), connection.config.max_message_bytes);
        if connection.close_wanted || connection.stage == Stage::Closing {
            return Err(SendError::Closing);
        }
        if bytes > max {
            return Err(SendError::Size { bytes, max });
        }
        if connection.send_buffers.len() >= limit {
            return Err(SendError::Full);
        }
        let message = connection.send_buffers.push(content, at);
        self.forget_scheduled();
        self.scheduled.push(Reverse((at, self.schedules, id, message)));
        self.schedules += 1;
        Ok(MessageId(message))
    }

    /// Returns when the next timer or scheduled message is due.
    pub(crate) fn next_timer(&self) -> Time {
        self.shared.deadlines.next_at().min(self.next_scheduled()).min(self.next_grant()).min(self.next_exchange())
    }

    /// Handles one timer that is due.
    pub(crate) fn on_timer(&mut self, now: Time) {
        if self.shared.deadlines.next_at() <= now {
            if let Some(index) = self.shared.deadlines.first() {
                self.on_deadline(now, index);
            }
        } else if self.next_scheduled() <= now
            && let Some(Reverse((at, _, id, message))) = self.scheduled.pop()
        {
            self.start_message(now, at, id, message);
        } else if self.next_exchange() <= now {
            self.exchange_next(now);
        } else {
            self.grant(now);
        }
    }

    /// Serves the connection with the next turn. Returns its data packet; a control frame goes to the
    /// control queue.
    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<Packet<'_>> {
        let Self { table, shared, .. } = self;
        let number = shared.host.next_turn()?;
        let connection = table.get_mut(ConnectionId(number))?;
        let sending = &mut connection.flow.as_deref_mut()?.sending;
        let frame = shared.host.transmit(now, number, sending, &mut shared.log.of(number));
        let deadline = sending.deadline_after_turn(now, frame.is_some());
        shared.advance(connection.slot, deadline);
        let (body, ev) = match frame? {
            Transmit::Data { data, ev } => {
                let port = sending.port(ev);
                return Some(Packet { control_queue: &shared.control_queue, connection, port, data });
            }
            Transmit::Probe { probe, ev } => (Body::Probe(probe), ev),
            Transmit::PullRequest { request, ev } => (Body::PullRequest(request), ev),
        };
        let port = sending.port(ev);
        shared.control_queue.push_to(connection, port, body);
        None
    }

    /// Sends a pull.
    fn grant(&mut self, now: Time) {
        let Self { table, shared, .. } = self;
        let Some((number, pull)) = shared.host.grant(now) else { return };
        let Some(connection) = table.get_mut(ConnectionId(number)) else { return };
        let Some(flow) = connection.flow.as_deref_mut() else { return };
        let port = shared.host.pull_port(&mut flow.receiving);
        shared.control_queue.push_to(connection, port, Body::Pull(pull));
    }

    /// The user has taken `bytes` of a connection's messages.
    pub(crate) fn on_consumed(&mut self, id: ConnectionId, bytes: u64) {
        let Some(index) = self.table.find(id) else { return };
        let Some(connection) = self.table.slot(index) else { return };
        connection.unread = connection.unread.saturating_sub(1);
        if let Some(flow) = connection.flow.as_mut() {
            flow.receiving.receiver.consumed(bytes);
            self.nudge(index);
        }
    }

    /// Updates a connection's deadline.
    pub(crate) fn reschedule(&mut self, now: Time, index: u32) {
        if let Some(connection) = self.table.slot(index) {
            self.shared.reschedule(now, connection);
        }
    }

    /// Makes a connection due now, after a call of the user.
    pub(crate) fn nudge(&mut self, index: u32) {
        self.shared.deadlines.set(index, self.clock);
    }

    #[cfg(test)]
    pub(crate) fn scheduled_capacity(&self) -> usize {
        self.scheduled.capacity()
    }

    fn next_grant(&self) -> Time {
        self.shared.host.grant_at().unwrap_or(Time::NEVER)
    }

    fn next_exchange(&self) -> Time {
        self.admission.as_ref().map_or(Time::NEVER, |admission| admission.waiting.next_at())
    }

    fn next_scheduled(&self) -> Time {
        self.scheduled.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at)
    }

    /// Removes the scheduled messages of ended connections, at most once per doubling of the heap.
    fn forget_scheduled(&mut self) {
        if self.scheduled.len() >= self.scheduled_most {
            let table = &self.table;
            self.scheduled.retain(|Reverse((.., id, _))| table.find(*id).is_some());
            self.scheduled_most = (2 * self.scheduled.len()).max(FEW_SCHEDULED);
        }
    }

    fn start_message(&mut self, now: Time, at: Time, id: ConnectionId, message: u32) {
        let Some(index) = self.table.find(id) else { return };
        let Some(connection) = self.table.slot(index) else { return };
        let Some(outgoing) = connection.send_buffers.get_mut(message) else { return };
        outgoing.started_at = at.min(now);
        connection.backlog.push_back(message);
        self.service(now, index);
    }
}

/// Returns random numbers of the operating system, or with a seed, of a separate stream of it.
fn secret<const WORDS: usize>(config: &EndpointConfig, stream: u64) -> Result<[u64; WORDS], getrandom::Error> {
    let mut words = [0; WORDS];
    let mut seeded = config.seed.map(|seed| spray_core::rng::stream(seed, stream));
    for word in &mut words {
        *word = match &mut seeded {
            None => getrandom::u64()?,
            Some(seeded) => seeded.next_u64(),
        };
    }
    Ok(words)
}

/// Most scheduled messages of connections that have ended, before they are looked through.
const FEW_SCHEDULED: usize = 1024;

/// Streams of the endpoint's seed.
//= docs/specs/transport.md#TRN-62 numbers that collide
const HASH_STREAM: u64 = u64::MAX;
const TOKEN_STREAM: u64 = u64::MAX - 1;
const WAITING_STREAM: u64 = u64::MAX - 2;
