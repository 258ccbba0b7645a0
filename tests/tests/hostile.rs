//! The cost of a hostile frame for an endpoint, and the size of its reply, by kind of sender; the
//! costs are printed: `cargo test --release -p spray-tests hostile -- --nocapture`.

use spray_wire::{
    Accept, Ack, Body, Close, CloseReason, Connect, Data, Nack, Probe, ProbeAck, Pull, PullRequest, Rekey, Reset,
    Retry, Section, parse,
};

use spray_nic::device::{Device, MemoryConfig, MemoryDevice, MemoryNetwork, Received};
use spray_nic::endpoint::{ConnectTag, PeerTags};
use spray_nic::keys::{Keys, PrivateKey, PublicKey};
use spray_nic::sys::monotonic_ns;
use spray_nic::{Endpoint, EndpointConfig, EndpointEvent, Peer, Time};
use spray_tests::forged::{CONNECT_BYTES, Forged, Forger, Proof};

/// The costs of a kind of hostile frame.
#[derive(Debug)]
struct Cost {
    name: &'static str,
    sender: Hostile,
    /// Bytes of the frame.
    bytes: usize,
    /// Time that the endpoint takes to process it.
    ns: f64,
    /// Frames that the endpoint sends for each, and bytes.
    answers: f64,
    answer_bytes: f64,
}

/// The knowledge of the sender of a hostile frame.
#[derive(Clone, Copy, Debug)]
enum Hostile {
    /// Only the address.
    OffPath,
    /// It receives packets sent to its address.
    OwnAddress,
    /// It sees the connection's frames, or guesses the connection's number.
    OnPath,
    /// It is the peer of the connection.
    Peer,
}

/// The limits of answers in `docs/security.md`, for every kind of frame.
//= docs/specs/endpoint.md#END-8 answers to unknown peers
#[test]
fn replies_to_hostile_frames_are_not_amplified() {
    for cost in hostile_costs(if cfg!(debug_assertions) { 20 } else { 1_000 }) {
        let Cost { name, sender, bytes, ns, answers, answer_bytes } = cost;
        let amplification = answer_bytes / bytes as f64;
        println!("| {name} | {sender:?} | {bytes} | {ns:.0} | {answers:.2} | {amplification:.2} |");
        let (most, frames) = match sender {
            Hostile::OffPath => (0.9, 1.0),
            Hostile::OwnAddress | Hostile::OnPath => (1.3, 1.0),
            // For a trailer, NACKs, which are shorter, and ACKs.
            Hostile::Peer => (3.0, 3.3),
        };
        assert!(amplification <= most && answers <= frames && ns > 0.0, "{cost:?}");
    }
}

/// The number of frames per batch.
const BATCH: usize = 64;
/// The maximum for frame buffers of 4,096 bytes.
const MTU: u32 = 4_082;
/// The time between batches on the endpoints' clock.
const STEP_PS: u64 = 20_000_000;
/// A key for the measurement.
const KEY: &str = "1810d6a504251c89b858dc2dc859ace9169f5b60cd9e36c9aa8b4d76cb02f243";

fn host(number: u8) -> Peer {
    Peer { address: [10, 0, 0, number].into(), mac: [2, 0, 0, 0, 0, number] }
}

/// An attacked endpoint with one honest connection, and one of the attacker unless keys are
/// required.
struct Victim {
    network: MemoryNetwork,
    endpoint: Endpoint<MemoryDevice>,
    client: Endpoint<MemoryDevice>,
    attacker: MemoryDevice,
    arrivals: Vec<Received>,
    now: Time,
    /// The number of the honest connection at the endpoint.
    honest: u32,
    /// The endpoint's Accept for the attacker's connection.
    own: Accept,
    /// The attacker's Connect.
    request: Connect,
    /// The server's tag, and the tags of a listed key, if the attacker's Connects include them.
    tag: Option<ConnectTag>,
    peers: Option<(PeerTags, PublicKey)>,
}

impl Victim {
    fn new(sealed: bool) -> Self {
        let network = MemoryNetwork::new(MemoryConfig { mtu: MTU, ..MemoryConfig::default() });
        let key: PrivateKey = KEY.parse().expect("64 digits");
        let tag = sealed.then(|| ConnectTag::new(&key.public()));
        let keys = sealed.then(|| Keys::new(key, Vec::new()));
        let endpoint = |number| {
            let host = host(number);
            let config = EndpointConfig::real(host.address, host.mac, MTU).expect("a sound MTU");
            let config = keys.clone().map_or(config.clone(), |keys| config.with_keys(keys));
            let config = EndpointConfig { seed: Some(1), ..config };
            Endpoint::new(network.attach(host.mac), config).expect("a sound configuration")
        };
        let (client, endpoint) = (endpoint(1), endpoint(2));
        let attacker = network.attach(host(3).mac);
        let (arrivals, request) = (Vec::with_capacity(4 * BATCH), connect([0; 16]));
        let (now, honest, own) = (Time::ZERO, 0, Accept::default());
        let mut victim =
            Self { network, endpoint, client, attacker, arrivals, now, honest, own, request, tag, peers: None };
        victim.client.connect(Time::ZERO, host(2), None).expect("a free slot");
        victim.honest = loop {
            victim.step();
            victim.client.poll(victim.now);
            if let Some(EndpointEvent::Accepted { connection, .. }) = victim.endpoint.poll_event() {
                break connection.raw();
            }
        };
        victim.request_token();
        if !sealed {
            victim.open();
        }
        victim
    }

    /// Delivers the frames that were sent.
    fn step(&mut self) {
        self.attacker.flush().expect("memory");
        self.now = self.now.after(STEP_PS);
        self.network.advance(self.now);
        self.endpoint.poll(self.now);
    }

    /// Completes pending key exchanges of clients.
    fn settle(&mut self) {
        const EXCHANGE_PS: u64 = 1_000_000_000;
        for _ in 0..16 {
            self.now = self.now.after(EXCHANGE_PS);
            self.step();
            self.answers();
        }
    }

    /// Requests a token, as any host can that receives packets at its address.
    fn request_token(&mut self) {
        self.send(&Forged::Connect(self.request, 0));
        self.step();
        let Some(Body::Retry(Retry { token })) = self.answers().2 else { panic!("no Retry") };
        self.request = connect(token);
    }

    /// Opens the attacker's connection to an endpoint without keys.
    fn open(&mut self) {
        self.send(&Forged::Connect(self.request, 0));
        self.step();
        let Some(Body::Accept(accept)) = self.answers().2 else { panic!("no Accept") };
        self.own = accept;
        let proof = Body::Probe(Probe { token: 1, timestamp: Time::ZERO });
        self.send(&Forged::Plain(self.own.connection, self.own.cookie, proof));
        self.step();
        self.answers();
    }

    /// Sends a frame. Returns its length.
    fn send(&mut self, sent: &Forged) -> usize {
        self.attacker.flush().expect("memory");
        let frame = self.attacker.allocate().expect("a free frame");
        let space = self.attacker.frame_mut(&frame);
        let proof = match (&self.peers, &self.tag) {
            (Some((peers, victim)), _) => Proof::Key(peers, victim),
            (None, Some(tag)) => Proof::Tag(tag),
            (None, None) => Proof::Nothing,
        };
        let bytes = Forger { from: host(3), honest: host(1).address, to: host(2), proof }.write(space, sent);
        assert!(self.attacker.transmit(frame, bytes as u32).is_ok(), "the ring has room");
        bytes
    }

    /// Returns the numbers of received frames and bytes, and the last frame.
    fn answers(&mut self) -> (u64, u64, Option<Body>) {
        let (mut frames, mut bytes, mut last) = (0, 0, None);
        self.attacker.flush().expect("memory");
        self.network.advance(self.now);
        while self.attacker.receive(&mut self.arrivals, BATCH).expect("memory") > 0 {
            for arrival in self.arrivals.drain(..) {
                frames += 1;
                bytes += u64::from(arrival.len);
                let seen = parse(self.attacker.frame(&arrival.frame, arrival.len), spray_wire::Ports::DEFAULT);
                last = seen.ok().flatten().map(|frame| frame.body);
                self.attacker.release(arrival.frame);
            }
            self.attacker.flush().expect("memory");
        }
        (frames, bytes, last)
    }

    /// Sends batches of frames, each created from its number, and measures the endpoint's reaction.
    fn measure(&mut self, name: &'static str, sender: Hostile, batches: u64, make: impl Fn(u64) -> Forged) -> Cost {
        let (mut spent_ns, mut bytes, mut answers, mut answer_bytes) = (0, 0, 0, 0);
        for batch in 0..batches {
            for at in 0..BATCH as u64 {
                bytes = self.send(&make(batch * BATCH as u64 + at));
            }
            self.attacker.flush().expect("memory");
            self.now = self.now.after(STEP_PS);
            self.network.advance(self.now);
            let begun_ns = monotonic_ns();
            self.endpoint.poll(self.now);
            spent_ns += monotonic_ns() - begun_ns;
            while self.endpoint.poll_event().is_some() {}
            let (more, more_bytes, _) = self.answers();
            answers += more;
            answer_bytes += more_bytes;
        }
        let frames = batches * BATCH as u64;
        let each = |count: u64| count as f64 / frames as f64;
        let ns = each(spent_ns);
        Cost { name, sender, bytes, ns, answers: each(answers), answer_bytes: each(answer_bytes) }
    }
}

fn connect(token: [u8; 16]) -> Connect {
    Connect {
        connection: 5,
        cookie: 6,
        window_packets: 256,
        max_payload: 3_400,
        max_data: 1 << 20,
        ack_every: 1,
        exchange_bytes: 0,
        token,
    }
}

/// Measures every kind of hostile frame, `batches` of 64 each, with an endpoint with keys and one
/// without.
fn hostile_costs(batches: u64) -> Vec<Cost> {
    let mut costs = Vec::new();
    let mut victim = Victim::new(false);
    let (honest, own, request) = (victim.honest, victim.own, victim.request);
    let mut measure =
        |name, sender, make: &dyn Fn(u64) -> Forged| costs.push(victim.measure(name, sender, batches, make));
    let probe = Body::Probe(Probe { token: 1, timestamp: Time::from_ns(2) });
    measure("of another protocol", Hostile::OffPath, &|_| Forged::Foreign);
    measure("corrupt", Hostile::OffPath, &|_| Forged::Corrupt);
    measure("of an unknown connection", Hostile::OffPath, &|_| Forged::Plain(0xffff, 5, probe));
    measure("with another cookie", Hostile::OffPath, &|_| Forged::Plain(honest, 5, probe));
    let fresh = |at| Connect { cookie: at, ..connect([0; 16]) };
    measure("Connect", Hostile::OffPath, &|at| Forged::Connect(fresh(at), 0));
    measure("Connect again, with the token", Hostile::OwnAddress, &|_| Forged::Connect(request, 0));
    let of_peer = |body| Forged::Plain(own.connection, own.cookie, body);
    let data = Data { message_bytes: 3_400, payload_bytes: 3_400, ..Data::default() };
    measure("Data, repeated", Hostile::Peer, &|_| of_peer(Body::Data(data)));
    measure("Data beyond the window", Hostile::Peer, &|at| of_peer(Body::Data(Data { psn: 1 << 40 | at, ..data })));
    measure("trailer that reports many missing packets", Hostile::Peer, &|at| {
        let section = Section::new(0, Section::MAX_BEHIND);
        of_peer(Body::Data(Data { psn: 100 + at % 100, trailer: true, section, ..Data::default() }))
    });
    measure("Ack of an unsent packet", Hostile::Peer, &|at| {
        of_peer(Body::Ack(Ack { cumulative: at, bitmap: [u64::MAX; 4], ..Ack::default() }))
    });
    measure("Nack of an unsent packet", Hostile::Peer, &|psn| of_peer(Body::Nack(Nack { psn, ..Nack::default() })));
    measure("Probe", Hostile::Peer, &|_| of_peer(probe));
    measure("ProbeAck without a Probe", Hostile::Peer, &|token| {
        of_peer(Body::ProbeAck(ProbeAck { token, ..ProbeAck::default() }))
    });
    measure("PullRequest for the maximum", Hostile::Peer, &|_| {
        of_peer(Body::PullRequest(PullRequest { demand_bytes: u64::MAX, pulled_bytes: 0 }))
    });
    measure("Pull of the maximum", Hostile::Peer, &|_| of_peer(Body::Pull(Pull { credit_bytes: u64::MAX })));
    measure("Accept of an open connection", Hostile::Peer, &|_| of_peer(Body::Accept(request)));
    measure("Retry of an open connection", Hostile::Peer, &|at| of_peer(Body::Retry(Retry { token: [at as u8; 16] })));
    let rekey = Rekey { generation: 1, ..Rekey::default() };
    measure("Rekey without keys", Hostile::Peer, &|_| of_peer(Body::Rekey(rekey)));
    measure("Reset under another cookie", Hostile::OffPath, &|_| {
        Forged::Plain(honest, 5, Body::Reset(Reset { reason: 0 }))
    });
    measure("Close of an unknown connection", Hostile::OffPath, &|_| {
        Forged::Plain(
            0xffff,
            5,
            Body::Close(Close { cumulative: 0, reason: CloseReason::Done, acknowledgement: false }),
        )
    });
    let mut victim = Victim::new(true);
    let (honest, request) = (victim.honest, victim.request);
    // Sent first, while the rate limit is not exceeded. The token is valid for this connection and
    // all of its terms except `max_data`.
    let exchange = |at| Forged::Connect(Connect { max_data: request.max_data + at, ..request }, CONNECT_BYTES);
    let key: PrivateKey = KEY.parse().expect("64 digits");
    let victims = key.public();
    victim.peers = Some((PeerTags::new(&Keys::new(key, Vec::new())), victims));
    costs.push(victim.measure("Connect with the token, and a key exchange", Hostile::Peer, 1, exchange));
    costs.push(victim.measure("the same, above the limit", Hostile::Peer, batches, exchange));
    victim.peers = None;
    costs.push(victim.measure("the same, without a listed key", Hostile::OwnAddress, batches, exchange));
    victim.settle();
    costs.push(
        victim.measure("Connect under the server's key", Hostile::OffPath, batches, |at| Forged::Connect(fresh(at), 0)),
    );
    victim.tag = None;
    let mut measure =
        |name, sender, make: &dyn Fn(u64) -> Forged| costs.push(victim.measure(name, sender, batches, make));
    measure("Connect to a server with keys", Hostile::OffPath, &|at| Forged::Connect(fresh(at), CONNECT_BYTES));
    measure("plain, to a server with keys", Hostile::OffPath, &|_| Forged::Plain(0xffff, 5, probe));
    measure("sealed, of an unknown connection", Hostile::OffPath, &|at| Forged::Sealed(0xffff, at, 64));
    measure("sealed, forged, 64 bytes", Hostile::OnPath, &|at| Forged::Sealed(honest, 100 + at, 64));
    measure("sealed, forged, 3,400 bytes", Hostile::OnPath, &|at| Forged::Sealed(honest, 100 + at, 3_400));
    measure("sealed, replayed", Hostile::OnPath, &|_| Forged::Sealed(honest, 0, 3_400));
    costs
}
