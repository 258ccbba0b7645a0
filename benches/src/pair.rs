//! Whole endpoints: a pair, and many hosts on one thread.

use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use spray_wire::Kind;

use super::{End, EndCosts, KEY, Load, STEP_PS, Stopwatch, host, network};
use spray_nic::device::MemoryDevice;
use spray_nic::endpoint::{Chunk, Sink, Source};
use spray_nic::keys::Keys;
use spray_nic::sys::monotonic_ns;
use spray_nic::{ConnectionId, Endpoint, EndpointConfig, EndpointEvent, Shard, Time};

/// Queued messages per connection: one is sent, another follows it.
const QUEUED: usize = 2;

/// An endpoint that keeps messages queued on all of its connections.
#[derive(Debug)]
struct Sending {
    endpoint: Endpoint<MemoryDevice>,
    message: Bytes,
    in_place: bool,
}

/// A message that is in the frames already, except for a word per packet.
#[derive(Debug)]
struct InFrames {
    bytes: u64,
}

impl Source for InFrames {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn fill(&self, offset: u64, to: &mut [u8]) {
        if let Some(word) = to.first_chunk_mut() {
            *word = offset.to_le_bytes();
        }
    }
}

/// A sink that reads a word of each packet.
#[derive(Debug)]
struct ReadWord;

impl Sink for ReadWord {
    fn take(&mut self, piece: &Chunk<'_>) {
        black_box(piece.payload.first_chunk::<8>());
    }
}

/// Two endpoints, of which the first sends.
#[derive(Debug)]
pub struct Pair {
    sender: Sending,
    receiver: Endpoint<MemoryDevice>,
    now: Time,
    /// Whether time is real, because other threads carry some of the frames.
    is_real: bool,
}

impl Pair {
    /// Opens the connections.
    #[must_use]
    pub fn new(load: &Load) -> Self {
        let network = network();
        Self::open([host(1), host(2)].map(|host| network.attach(host.mac)), Shard::SINGLE, load, false)
    }

    /// As [`new`](Self::new), between a shard of each host, in real time.
    #[must_use]
    pub fn between(devices: [MemoryDevice; 2], shard: Shard, load: &Load) -> Self {
        Self::open(devices, shard, load, true)
    }

    fn open([from, to]: [MemoryDevice; 2], shard: Shard, load: &Load, is_real: bool) -> Self {
        let sender = Sending::new(endpoint(from, 1, shard, load), load);
        let mut pair = Self { sender, receiver: endpoint(to, 2, shard, load), now: Time::ZERO, is_real };
        let mut watch = Stopwatch::start();
        for _ in 0..load.connections {
            let connection = pair.sender.endpoint.connect(pair.now, host(2), None).expect("a free slot");
            pair.sender.fill(connection);
            let connected = |endpoint: &Endpoint<_>| endpoint.stats().received[Kind::Accept];
            let (before, open) = (connected(&pair.sender.endpoint), pair.sender.endpoint.connections());
            while connected(&pair.sender.endpoint) == before {
                assert_eq!(pair.sender.endpoint.connections(), open, "the peer did not answer in time");
                pair.step(&mut watch);
            }
        }
        pair
    }

    /// Sends at least `packets` packets; returns the cost per packet.
    pub fn run(&mut self, packets: u64) -> EndCosts {
        let first = self.packets();
        let mut watch = Stopwatch::start();
        while self.packets() - first < packets {
            self.step(&mut watch);
        }
        watch.per_packet(self.packets() - first)
    }

    /// Returns the number of data packets sent so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.sender.endpoint.stats().sent[Kind::Data]
    }

    /// Checks that nothing was lost, duplicated or refused; otherwise returns the counters.
    pub fn audit(&self) -> Result<(), String> {
        let (sent, received) = (self.sender.endpoint.stats(), self.receiver.stats());
        let is_sound = sent.sent[Kind::Data] == received.received[Kind::Data] && received.duplicates == 0;
        if is_sound { Ok(()) } else { Err(format!("sender {sent:?}, receiver {received:?}")) }
    }

    /// Polls both ends once.
    pub fn turn(&mut self) {
        self.step(&mut Stopwatch::start());
    }

    fn step(&mut self, watch: &mut Stopwatch) {
        self.now = if self.is_real { Time::from_ns(monotonic_ns()) } else { self.now.after(STEP_PS) };
        self.sender.poll(self.now);
        watch.lap(End::Sender);
        self.receiver.poll(self.now);
        while self.receiver.poll_event().is_some() {}
        watch.lap(End::Receiver);
    }
}

/// Hosts in a ring, each sending to the next, polled in turn by one thread.
#[derive(Debug)]
pub struct Hosts {
    hosts: Vec<Sending>,
    now: Time,
}

impl Hosts {
    /// Opens a connection from each host to the next.
    #[must_use]
    pub fn new(load: &Load, hosts: u16) -> Self {
        let network = network();
        let mut hosts: Vec<Sending> = (0..hosts)
            .map(|number| Sending::new(endpoint(network.attach(host(number).mac), number, Shard::SINGLE, load), load))
            .collect();
        let count = hosts.len() as u16;
        for (number, sending) in (1..).zip(&mut hosts) {
            let connection = sending.endpoint.connect(Time::ZERO, host(number % count), None).expect("a free slot");
            sending.fill(connection);
        }
        Self { hosts, now: Time::ZERO }
    }

    /// Sends at least `packets` packets; returns nanoseconds per packet for both ends together.
    pub fn run(&mut self, packets: u64) -> f64 {
        let first = self.packets();
        let mut watch = Stopwatch::start();
        while self.packets() - first < packets {
            self.now = self.now.after(STEP_PS);
            for sending in &mut self.hosts {
                sending.poll(self.now);
            }
        }
        watch.lap(End::Sender);
        watch.per_packet(self.packets() - first).sender_ns
    }

    fn packets(&self) -> u64 {
        self.hosts.iter().map(|sending| sending.endpoint.stats().sent[Kind::Data]).sum()
    }
}

impl Sending {
    fn new(endpoint: Endpoint<MemoryDevice>, load: &Load) -> Self {
        let message = Bytes::from(vec![7; load.message_bytes()]);
        Self { endpoint, message, in_place: load.in_place }
    }

    fn poll(&mut self, now: Time) {
        self.endpoint.poll(now);
        while let Some(event) = self.endpoint.poll_event() {
            if let EndpointEvent::Delivered { connection, .. } = event {
                self.send(connection);
            }
        }
    }

    fn fill(&mut self, connection: ConnectionId) {
        (0..QUEUED).for_each(|_| self.send(connection));
    }

    fn send(&mut self, connection: ConnectionId) {
        let bytes = self.message.len() as u64;
        let sent = match self.in_place {
            true => self.endpoint.send_from(connection, Box::new(InFrames { bytes })),
            false => self.endpoint.send(connection, self.message.clone()),
        };
        sent.expect("a queue that is not full");
    }
}

fn endpoint(device: MemoryDevice, number: u16, shard: Shard, load: &Load) -> Endpoint<MemoryDevice> {
    let host = host(number);
    let config = EndpointConfig::new(host.address, host.mac, load.flow());
    let keys = load.sealed.then(|| Keys::new(KEY.parse().expect("64 digits"), Vec::new()));
    let config = EndpointConfig { max_connections: load.connections.max(2), keys, shard, seed: Some(1), ..config };
    // A thread that relays frames may wait for its CPU for longer than a path's timeouts.
    let config = config.with_give_up(Duration::from_secs(60));
    let endpoint = Endpoint::new(device, config).expect("a valid configuration");
    if load.in_place { endpoint.with_sink(Box::new(ReadWord)) } else { endpoint }
}
