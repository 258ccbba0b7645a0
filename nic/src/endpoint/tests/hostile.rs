//! Forged and unauthenticated frames change nothing.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use spray_wire::{
    Accept, Ack, Body, Close, CloseReason, Common, Data, Ecn, Envelope, EvPort, Nack, Probe, ProbeAck, Pull,
    PullRequest, Rekey, Reset, Retry, Terms, emit,
};

use super::*;
use crate::endpoint::seal::noise::Parties;
use crate::keys::{Keys, PrivateKey};

pub(super) const RAW_HOST: usize = 9;

/// A host on the network that sends arbitrary frames.
pub(super) struct RawHost {
    device: MemoryDevice,
    arrivals: Vec<Received>,
}

impl RawHost {
    pub(super) fn new(rig: &Rig) -> Self {
        Self::at(rig, RAW_HOST)
    }

    /// Uses the Ethernet address of this host.
    pub(super) fn at(rig: &Rig, host: usize) -> Self {
        Self { device: rig.network.attach(mac(host)), arrivals: Vec::with_capacity(4096) }
    }

    /// Sends a frame with the source address of host `from`.
    pub(super) fn send(&mut self, rig: &Rig, from: usize, to: usize, connection: u32, cookie: u64, body: &Body) {
        let common = Common { connection, cookie, ..Common::default() };
        self.emit(rig, [from, to], &common, body, &[7; 1024][..body.payload_bytes()]);
    }

    /// Sends host 1 a Connect with this message of the key exchange, from the address of host
    /// `from`, authenticated with `keys`, or with no listed key if that is `None`. The public key
    /// of host 1 is known.
    fn connect(&mut self, rig: &Rig, keys: Option<&Keys>, from: usize, terms: Terms, message: &[u8]) {
        let [own, to] = [from, 1].map(|host| address(host, rig.v6));
        let ends = Parties { client: own, server: to };
        let server = rig.endpoints[1].machine.config.keys.as_ref().unwrap().own.public();
        let proof = keys.and_then(|keys| PeerTags::new(keys).proof(&server, ends, &terms, message)).unwrap_or([9; 24]);
        let message = [message, &proof[..if message.is_empty() { 0 } else { proof.len() }]].concat();
        let payload = [&message[..], &rig.connect_tag().of(own, to, &terms, &message)].concat();
        let connect = Terms { exchange_bytes: payload.len() as u16, ..terms };
        self.emit(rig, [from, 1], &Common::default(), &Body::Connect(connect), &payload);
    }

    pub(super) fn emit(&mut self, rig: &Rig, [from, to]: [usize; 2], common: &Common, body: &Body, payload: &[u8]) {
        let envelope = Envelope {
            src_mac: mac(RAW_HOST),
            dst_mac: mac(to),
            src: address(from, rig.v6),
            dst: address(to, rig.v6),
            src_port: EvPort::new(50_000),
            dst_port: spray_wire::Ports::DEFAULT.first(),
            dscp: 0,
            ecn: Ecn::NotEct,
            ttl: 64,
        };
        let mut frame = [0; 2048];
        let bytes = emit(&mut frame, &envelope, common, body, payload).unwrap();
        self.send_raw(&frame[..bytes]);
    }

    pub(super) fn send_raw(&mut self, bytes: &[u8]) {
        self.device.flush().unwrap();
        let frame = self.device.allocate().unwrap();
        self.device.frame_mut(&frame)[..bytes.len()].copy_from_slice(bytes);
        self.device.transmit(frame, bytes.len() as u32).unwrap();
        self.device.flush().unwrap();
    }

    /// Returns the bodies of the frames received.
    pub(super) fn received(&mut self) -> Vec<Body> {
        self.device.receive(&mut self.arrivals, 4096).unwrap();
        let mut bodies = Vec::new();
        for arrival in self.arrivals.drain(..) {
            let frame = spray_wire::parse(self.device.frame(&arrival.frame, arrival.len), spray_wire::Ports::DEFAULT)
                .unwrap()
                .unwrap();
            bodies.push(frame.body);
            self.device.release(arrival.frame);
        }
        self.device.flush().unwrap();
        bodies
    }
}

impl Rig {
    /// Returns the tag with which host 1 admits Connects.
    fn connect_tag(&self) -> ConnectTag {
        ConnectTag::new(&self.endpoints[1].machine.config.keys.as_ref().unwrap().own.public())
    }
}

/// Returns terms of a typical client.
pub(super) fn client_terms(connection: u32) -> Terms {
    Terms {
        connection,
        cookie: 5,
        window_packets: 16,
        max_payload: 1000,
        max_data: 256,
        ack_every: 1,
        ..Terms::default()
    }
}

pub(super) fn one_of_each() -> Vec<Body> {
    vec![
        Body::Data(Data { psn: 3, message: 0, message_bytes: 0, ..Data::default() }),
        Body::Ack(Ack { cumulative: 10_000, max_data: u64::MAX, bitmap: [u64::MAX; 4], ..Ack::default() }),
        Body::Nack(Nack { psn: 1, ..Nack::default() }),
        Body::Accept(Accept { cookie: 78, ..client_terms(77) }),
        Body::Retry(Retry { token: [7; 16] }),
        Body::Close(Close { cumulative: 0, reason: CloseReason::Done, acknowledgement: false }),
        Body::Close(Close { cumulative: 0, reason: CloseReason::Aborted, acknowledgement: true }),
        Body::Probe(Probe { token: u64::MAX, timestamp: Time::ZERO }),
        Body::ProbeAck(ProbeAck { token: u64::MAX, ..ProbeAck::default() }),
        Body::Pull(Pull { credit_bytes: u64::MAX }),
        Body::PullRequest(PullRequest { demand_bytes: u64::MAX, pulled_bytes: 0 }),
        Body::Rekey(Rekey { generation: 1, answer: false, ..Rekey::default() }),
        Body::Rekey(Rekey { generation: 1, answer: true, ..Rekey::default() }),
        Body::Reset(Reset { reason: 0 }),
    ]
}

//= docs/specs/endpoint.md#END-6 number, cookie and address
//= docs/specs/wire.md#WIRE-16 cookies
#[test]
fn forged_cookies_change_nothing() {
    for v6 in [false, true] {
        let run = |forge: bool| {
            let mut rig = Rig::new(2, v6, Impairments::delay(US));
            let mut raw_host = RawHost::new(&rig);
            let connection = rig.connect(0, 1);
            rig.endpoints[0].send(connection, content(1, 200_000)).unwrap();
            rig.run(US, 40 * US, |_| false);
            let theirs = rig.accepted(1)[0];
            for body in one_of_each().iter().filter(|_| forge) {
                for (from, to, id) in [(0, 1, theirs), (1, 0, connection)] {
                    for cookie in [0, 1, u64::MAX] {
                        raw_host.send(&rig, from, to, id.raw(), cookie, body);
                    }
                }
            }
            assert!(rig.run(US, 100 * MS, |rig| rig.delivered(0) == 1));
            if forge {
                let wrong: u64 = rig.endpoints.iter().map(|endpoint| endpoint.stats().wrong_cookie).sum();
                let unknown: u64 = rig.endpoints.iter().map(|endpoint| endpoint.stats().unknown_connection).sum();
                assert_eq!((wrong, unknown), (13 * 2 * 3, 2 * 3), "resets count as unknown");
            }
            (rig.events.clone(), rig.endpoints[0].connection_stats(connection).map(|stats| stats.sender))
        };
        assert_eq!(run(true), run(false));
    }
}

//= docs/specs/endpoint.md#END-6 number, cookie and address
#[test]
fn the_right_cookie_from_another_address_changes_nothing() {
    let mut rig = Rig::new(2, false, Impairments::delay(US));
    let mut raw_host = RawHost::new(&rig);
    let connection = rig.connect(0, 1);
    assert!(rig.run(US, MS, |rig| !rig.accepted(1).is_empty()));
    let cookie = rig.endpoints[0].machine.table.get(connection).unwrap().cookie;
    for body in one_of_each() {
        raw_host.send(&rig, 5, 0, connection.raw(), cookie, &body);
    }
    rig.run(US, MS, |_| false);
    assert_eq!(rig.endpoints[0].stats().wrong_cookie, 13);
    assert!(rig.failed(0).is_empty() && rig.closed(0) == 0);
    rig.audit();
}

//= docs/specs/endpoint.md#END-2 address validation
#[test]
fn forged_connects_do_not_delay_a_client() {
    for keys in [None, Some(Keys::new(PrivateKey::generate().unwrap(), vec![]))] {
        let rtt_ps = MS;
        let change = |_: usize, config: &mut EndpointConfig| {
            config.keys = keys.clone();
            config.handshake.retry_ps = 5 * rtt_ps;
        };
        let mut rig = Rig::with(2, false, Impairments::delay(rtt_ps / 2), change);
        let mut raw_host = RawHost::new(&rig);
        let (mut forged, mut number) = (0, 0);
        let mut flood = |rig: &mut Rig, for_ps: u64| {
            let end = rig.now.after(for_ps);
            rig.run(US, for_ps + US, |rig| {
                while number * 5 * US < rig.now.ps() {
                    number += 1;
                    // From many addresses, with different numbers, and none with a valid token.
                    let token = [number as u8; 16];
                    let connect = Terms { exchange_bytes: 0, token, ..client_terms(number as u32) };
                    raw_host.send(rig, 20 + (number % 200) as usize, 1, 0, 0, &Body::Connect(connect));
                    forged += 1;
                }
                raw_host.received();
                rig.now >= end
            })
        };
        flood(&mut rig, 20 * MS);
        let (connection, began_at) = (rig.connect(0, 1), rig.now);
        flood(&mut rig, 3 * rtt_ps);
        let connected = rig.events[0].iter().find_map(|event| match event {
            EndpointEvent::Connected { connection: id, at } if *id == connection => Some(*at),
            _ => None,
        });
        assert!(connected.is_some_and(|at| at <= began_at.after(2 * rtt_ps + 10 * US)), "{connected:?} {began_at:?}");
        assert_eq!(rig.accepted(1).len(), 1, "within three round trips");
        let stats = rig.endpoints[1].stats();
        assert!(forged > 4_000 && stats.received[Kind::Connect] > 4_000);
        assert_eq!(
            (rig.endpoints[1].connections(), stats.half_open_evicted),
            (1, 0),
            "no state for the forged Connects"
        );
        // At most one Retry for each Connect, and shorter than it; with keys, only for clients that
        // know the server's key.
        let most = if keys.is_some() { 1 } else { stats.received[Kind::Connect] };
        assert!(stats.sent[Kind::Retry] <= most, "{stats:?}");
        assert!(Kind::Retry.bytes() < Kind::Connect.bytes());
        assert_eq!(stats.sent[Kind::Accept], 1);
        rig.run(US, MS, |_| false);
        raw_host.received();
        rig.audit();
    }
}

//= docs/specs/endpoint.md#END-45 no answer to unauthenticated peers
#[test]
fn a_client_without_the_servers_key_gets_no_answer() {
    let keys = Keys::new(PrivateKey::generate().unwrap(), vec![]);
    let mut rig = Rig::with(2, false, Impairments::delay(US), |_, config| config.keys = Some(keys.clone()));
    let mut raw_host = RawHost::new(&rig);
    rig.run(US, 5 * US, |_| false);
    let own = address(RAW_HOST, false);
    for terms in [client_terms(3), with_token(&rig, client_terms(3))] {
        let others = ConnectTag::new(&PrivateKey::generate().unwrap().public());
        for message in [&[][..], &[9; 96]] {
            let tag = others.of(own, address(1, false), &terms, message);
            for payload in [message, &[message, &tag].concat(), &[message, &[0; 16]].concat()] {
                let connect = Body::Connect(Terms { exchange_bytes: payload.len() as u16, ..terms });
                raw_host.emit(&rig, [RAW_HOST, 1], &Common::default(), &connect, payload);
            }
        }
    }
    rig.run(US, 10 * US, |_| false);
    assert!(raw_host.received().is_empty());
    assert_eq!((rig.endpoints[1].stats().forged, rig.endpoints[1].stats().exchanges_limited), (12, 0));
    // A client with the server's key gets an answer that states whether its own key is listed.
    let terms = client_terms(3);
    raw_host.connect(&rig, None, RAW_HOST, terms, &[]);
    rig.run(US, 10 * US, |_| false);
    let [Body::Retry(Retry { token })] = raw_host.received()[..] else { panic!("one Retry") };
    raw_host.connect(&rig, None, RAW_HOST, Terms { token, ..terms }, &[9; 96]);
    rig.run(US, 10 * US, |_| false);
    let [Body::Close(close)] = raw_host.received()[..] else { panic!("one Close") };
    assert_eq!((close.reason, rig.endpoints[1].connections()), (CloseReason::Key, 0));
    rig.audit();
}

/// The addresses of one network request 20,000 key exchanges per second. They hold a listed key,
/// and receive what the server sends.
//= docs/specs/endpoint.md#END-34 rate limit of key exchanges
#[test]
fn a_network_with_a_key_does_not_delay_other_networks() {
    let keys = Keys::new(PrivateKey::generate().unwrap(), vec![]);
    let change = |_: usize, config: &mut EndpointConfig| {
        config.keys = Some(keys.clone());
        config.handshake = HandshakeConfig { retry_ps: 26 * MS, attempts: 24 };
    };
    let mut rig = Rig::with(10, false, Impairments::delay(50 * US), change);
    let mut raw_host = RawHost::new(&rig);
    let mut number = 0;
    let mut flood = |rig: &mut Rig, for_ps: u64, done: &dyn Fn(&Rig) -> bool| {
        rig.run(50 * US, for_ps, |rig| {
            let machine = &rig.endpoints[1].machine;
            let from = 0x900 + number as usize % 250;
            let terms = Terms { cookie: number, ..client_terms(number as u32) };
            let client = Peer { address: address(from, false), mac: mac(RAW_HOST) };
            let token = machine.tokens.make(machine.clock, client, terms.connection, terms.cookie);
            raw_host.connect(rig, Some(&keys), from, Terms { token, ..terms }, &[9; 96]);
            raw_host.received();
            number += 1;
            done(rig)
        })
    };
    flood(&mut rig, 50 * MS, &|_| false);
    for host in (0..10).filter(|&host| host != 1) {
        rig.connect(host, 1);
    }
    assert!(flood(&mut rig, 400 * MS, &|rig| rig.accepted(1).len() == 9), "{} of 9", rig.accepted(1).len());
    let stats = rig.endpoints[1].stats();
    assert!(stats.exchanges_limited > 500 && stats.forged > 50, "{stats:?}");
    rig.audit();
}

/// Attackers in the network of ten clients know the server's key but hold no listed one, and
/// receive what is sent to all addresses of that network. They request 30,000 exchanges per second.
//= docs/specs/endpoint.md#END-48 a client proves which listed key it holds
#[test]
fn clients_without_a_key_do_not_delay_those_with_one() {
    let keys = Keys::new(PrivateKey::generate().unwrap(), vec![]);
    let change = |_: usize, config: &mut EndpointConfig| {
        config.keys = Some(keys.clone());
        config.handshake = HandshakeConfig { retry_ps: 5 * MS, attempts: 6 };
    };
    let mut rig = Rig::with(11, false, Impairments::delay(50 * US), change);
    let mut raw_host = RawHost::at(&rig, 99);
    let mut number = 0;
    let mut flood = |rig: &mut Rig, for_ps: u64| {
        let end = rig.now.after(for_ps);
        rig.run(10 * US, for_ps + MS, |rig| {
            while number * 33 * US < rig.now.ps() {
                number += 1;
                let from = 20 + number as usize % 200;
                let machine = &rig.endpoints[1].machine;
                let (terms, client) = (Terms { cookie: number, ..client_terms(number as u32) }, peer(from, false));
                let token = machine.tokens.make(machine.clock, client, terms.connection, terms.cookie);
                raw_host.connect(rig, None, from, Terms { token, ..terms }, &[9; 96]);
            }
            raw_host.received();
            rig.now >= end
        })
    };
    flood(&mut rig, 50 * MS);
    for host in (0..11).filter(|&host| host != 1) {
        rig.connect(host, 1);
    }
    flood(&mut rig, 200 * MS);
    let stats = rig.endpoints[1].stats();
    assert_eq!((rig.accepted(1).len(), stats.exchanges_limited), (10, 0), "{stats:?}");
    assert!(stats.forged > 7_000 && stats.sent[Kind::Close] < 400, "{stats:?}");
    rig.run(US, MS, |_| false);
    raw_host.received();
    rig.audit();
}

/// A client that receives at its address gets at most a slot that can be evicted.
//= docs/specs/endpoint.md#END-3 half-open connections
//= docs/specs/endpoint.md#END-5 a full table
#[test]
fn half_open_connections_are_bounded_and_evicted() {
    let mut rig = Rig::new(2, false, Impairments::delay(US));
    let mut raw_host = RawHost::new(&rig);
    let open = rig.connect(0, 1);
    assert!(rig.run(US, MS, |rig| rig.accepted(1).len() == 1));
    for wave in 0..50u32 {
        for number in 0..20 {
            let connect = with_token(&rig, client_terms(wave * 20 + number));
            raw_host.send(&rig, RAW_HOST, 1, 0, 0, &Body::Connect(connect));
        }
        rig.run(US, 3 * US, |_| false);
        assert!(rig.endpoints[1].connections() <= 16);
        raw_host.received();
        if wave == 25 {
            rig.connect(0, 1);
        }
    }
    assert!(rig.endpoints[1].stats().half_open_evicted >= 900);
    assert!(rig.run(US, 2 * MS, |rig| rig.accepted(1).len() == 2), "the other connection was opened");
    rig.endpoints[0].send(open, content(1, 100_000)).unwrap();
    assert!(rig.run(US, 10 * MS, |rig| rig.received(1).len() == 1), "the open connection still works");
    // Half-open connections expire silently.
    let accepts = rig.endpoints[1].stats().sent[Kind::Accept];
    assert!(rig.run(100 * US, 20 * MS, |rig| rig.endpoints[1].connections() == 2));
    let stats = rig.endpoints[1].stats();
    assert_eq!(stats.sent[Kind::Accept], accepts, "one Accept per Connect");
    assert!(stats.half_open_expired > 0);
    rig.audit();
}

/// Returns the Connect with the token that host 1 sends in its Retry.
pub(super) fn with_token(rig: &Rig, connect: Terms) -> Terms {
    let now = rig.endpoints[1].machine.clock;
    let token = rig.endpoints[1].machine.tokens.make(now, peer(RAW_HOST, rig.v6), connect.connection, connect.cookie);
    Terms { token, ..connect }
}

//= docs/specs/endpoint.md#END-4a invalid limits
//= docs/specs/wire.md#WIRE-8b minimum limits
//= docs/specs/endpoint.md#END-4 payload of both sides
#[test]
fn invalid_limits_open_no_connection() {
    let mut rig = Rig::new(2, false, Impairments::delay(US));
    let mut raw_host = RawHost::new(&rig);
    let fine = Terms { max_payload: 256, ..client_terms(4) };
    let bad = [
        Terms { max_payload: 1, ..fine },
        Terms { max_data: 1, ..fine },
        Terms { window_packets: u32::MAX, ..fine },
        Terms { ack_every: 0, ..fine },
    ];
    for connect in bad {
        raw_host.send(&rig, RAW_HOST, 1, 0, 0, &Body::Connect(connect));
    }
    rig.run(US, 10 * US, |_| false);
    assert_eq!((rig.endpoints[1].connections(), rig.endpoints[1].stats().malformed), (0, 4));
    assert!(raw_host.received().is_empty());
    // An Accept with the client's cookie, from a peer that wants one byte per packet.
    let connection =
        rig.endpoints[0].connect(rig.now, Peer { mac: mac(RAW_HOST), ..peer(RAW_HOST, false) }, None).unwrap();
    rig.run(US, 10 * US, |_| false);
    let Body::Connect(ours) = raw_host.received()[0] else { panic!() };
    let accept = |max_payload| Body::Accept(Accept { max_payload, connection: 9, cookie: 8, ..fine });
    raw_host.send(&rig, RAW_HOST, 0, ours.connection, ours.cookie, &accept(1));
    rig.run(US, 10 * US, |_| false);
    assert!(rig.endpoints[0].machine.table.get(connection).unwrap().flow.is_none());
    assert_eq!(rig.endpoints[0].stats().malformed, 1);
    raw_host.send(&rig, RAW_HOST, 0, ours.connection, ours.cookie, &accept(256));
    rig.run(US, 10 * US, |_| false);
    assert_eq!(rig.endpoints[0].connection_stats(connection).unwrap().payload_bytes, 256);
    rig.audit();
}

//= docs/specs/endpoint.md#END-2 address validation
//= docs/specs/endpoint.md#END-3 half-open connections
#[test]
fn a_repeated_connect_is_one_connection() {
    let mut rig = Rig::new(2, false, Impairments::delay(US));
    let mut raw_host = RawHost::new(&rig);
    raw_host.send(&rig, RAW_HOST, 1, 0, 0, &Body::Connect(client_terms(4)));
    rig.run(US, 10 * US, |_| false);
    let [Body::Retry(Retry { token })] = raw_host.received()[..] else { panic!("one Retry") };
    let connect = Terms { token, ..client_terms(4) };
    assert_eq!((connect, rig.endpoints[1].connections()), (with_token(&rig, client_terms(4)), 0));
    for _ in 0..10 {
        raw_host.send(&rig, RAW_HOST, 1, 0, 0, &Body::Connect(connect));
    }
    rig.run(US, 10 * US, |_| false);
    let answers = raw_host.received();
    let Body::Accept(accept) = answers[0] else { panic!("{answers:?}") };
    assert!(answers.len() == 10 && answers.iter().all(|&answer| answer == Body::Accept(accept)));
    assert_eq!((rig.endpoints[1].connections(), rig.accepted(1).len()), (1, 0));
    let probe = Body::Probe(Probe { token: 1, timestamp: Time::from_ns(2) });
    raw_host.send(&rig, RAW_HOST, 1, accept.connection, accept.cookie, &probe);
    rig.run(US, 10 * US, |_| false);
    assert_eq!(rig.accepted(1).len(), 1);
    raw_host.send(&rig, RAW_HOST, 1, 0, 0, &Body::Connect(connect));
    // The token is not valid for another address.
    raw_host.send(&rig, 5, 1, 0, 0, &Body::Connect(connect));
    rig.run(US, 10 * US, |_| false);
    assert_eq!((rig.endpoints[1].connections(), rig.accepted(1).len()), (1, 1));
    rig.audit();
}

//= docs/specs/endpoint.md#END-8 answers to unknown peers
//= docs/specs/wire.md#WIRE-17 resets
#[test]
fn resets_are_limited_and_echo_the_cookie() {
    let mut rig = Rig::new(2, false, Impairments::delay(US));
    let mut raw_host = RawHost::new(&rig);
    for number in 0..300 {
        raw_host.send(
            &rig,
            RAW_HOST,
            1,
            1000 + number,
            5,
            &Body::Probe(Probe { token: 1, timestamp: Time::from_ns(2) }),
        );
    }
    rig.run(US, 10 * US, |_| false);
    let resets = raw_host.received().len();
    assert_eq!((resets, rig.endpoints[1].stats().reset_limited), (64, 236));
    for _ in 0..100 {
        raw_host.send(&rig, RAW_HOST, 1, 1, 5, &Body::Reset(Reset { reason: 0 }));
    }
    rig.run(10 * US, 100 * MS, |_| false);
    assert!(raw_host.received().is_empty(), "a reset is never answered");
    rig.audit();
}

#[test]
fn malformed_and_truncated_frames_are_counted_and_dropped() {
    let mut rig = Rig::new(2, false, Impairments::delay(US));
    let mut raw_host = RawHost::new(&rig);
    let connection = rig.connect(0, 1);
    rig.endpoints[0].send(connection, content(1, 50_000)).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut whole = [0; 2048];
    let envelope = Envelope {
        src_mac: mac(RAW_HOST),
        dst_mac: mac(1),
        src: address(0, false),
        dst: address(1, false),
        src_port: EvPort::new(50_000),
        dst_port: spray_wire::Ports::DEFAULT.first(),
        dscp: 0,
        ecn: Ecn::NotEct,
        ttl: 64,
    };
    let bodies = one_of_each();
    for round in 0..400 {
        let body = bodies[round % bodies.len()];
        let bytes = emit(&mut whole, &envelope, &Common::default(), &body, &[]).unwrap();
        match round % 4 {
            0 => rng.fill_bytes(&mut whole[12..bytes]),
            1 => rng.fill_bytes(&mut whole[42..bytes]),
            2 => whole[rng.next_u32() as usize % bytes] ^= 1 << (rng.next_u32() % 8),
            _ => {}
        }
        whole[..6].copy_from_slice(&mac(1));
        let cut = if round % 4 == 3 { 14 + rng.next_u32() as usize % (bytes - 14) } else { bytes };
        raw_host.send_raw(&whole[..cut]);
        if round % 10 == 0 {
            rig.run(US, 2 * US, |_| false);
            raw_host.received();
        }
    }
    assert!(rig.run(10 * US, 300 * MS, |rig| rig.delivered(0) == 1));
    assert!(rig.received(1).len() == 1 && rig.received(1)[0].2 == content(1, 50_000));
    let stats = rig.endpoints[1].stats();
    assert!(stats.malformed > 20 && stats.checksum > 20 && stats.not_ours > 20, "{stats:?}");
    rig.audit();
}
