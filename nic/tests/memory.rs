//! Bounds the memory that a peer can make an endpoint use: at most twice the bytes that it has
//! sent, plus the constants in `docs/security.md`, regardless of which messages it starts. The
//! memory of the whole process is measured, so this must be the only test in this file.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use spray_nic::device::{Device, MemoryConfig, MemoryDevice, MemoryNetwork, Received};
use spray_nic::{Endpoint, EndpointConfig, Time};
use spray_wire::{Body, Common, Data, Ecn, Envelope, EvPort, Ports, Probe, Terms, emit, parse};

const US: u64 = 1_000_000;
const SECOND_PS: u64 = 1_000_000_000_000;
/// As in `spray recv`: pieces of a file with their headers, and the window for real networks.
const MAX_MESSAGE: u64 = (1 << 20) + 16;
const WINDOW: u64 = 8192;
/// The size of the endpoint's connection table.
const SLOTS: u32 = 12;
/// The maximum of data sent on a connection but not taken by the user: two messages.
const MAX_DATA: u64 = 2 * MAX_MESSAGE;
/// Allowed per connection beyond twice the bytes sent: the shared pages of incomplete messages,
/// tables, and events not yet taken by the user.
const CONNECTION_BYTES: u64 = (2 << 20) + (2 << 20);
/// Allowed per process: pages that the allocator keeps.
const PROCESS_BYTES: u64 = 4 << 20;
/// Allowed per endpoint: the pool of pages of messages that the user has dropped.
const POOL_BYTES: u64 = 32 << 20;
/// The number of peers of an attack, and of connections that each starts.
const PEER_SETS: [(&str, u32, u32); 3] =
    [("four connections", 1, 4), ("a peer with all slots", 1, SLOTS + 4), ("all peers", SLOTS + 4, 1)];

fn address(host: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, host).into()
}

fn mac(host: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, host]
}

/// Returns the resident memory of this process.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// An attack: the length of the messages that a peer starts, and the payload of each packet.
#[derive(Clone, Copy, Debug)]
struct Attack {
    name: &'static str,
    message_bytes: u64,
    payload: u16,
    /// Each packet is the last of its message, otherwise the first.
    last_first: bool,
    /// All packets of each message are sent, and the user takes nothing. Otherwise one packet of
    /// each is sent.
    whole: bool,
}

const ATTACKS: [Attack; 9] = [
    attack("64 KiB, 1 byte of each", 65_535, 1, false, false),
    attack("64 KiB, the last byte of each", 65_535, 1, true, false),
    attack("64 KiB, 1,200 bytes of each", 65_535, 1_200, false, false),
    attack("4 KiB, 1 byte of each", 4_096, 1, false, false),
    attack("1 MiB, 1 byte of each", 1 << 20, 1, false, false),
    attack("1 MiB, the last byte of each", 1 << 20, 1, true, false),
    attack("1 byte each, not taken", 1, 1, false, true),
    attack("1,200 bytes each, not taken", 1_200, 1_200, false, true),
    attack("96 KiB each, not taken", 98_400, 1_200, false, true),
];

const fn attack(name: &'static str, message_bytes: u64, payload: u16, last_first: bool, whole: bool) -> Attack {
    Attack { name, message_bytes, payload, last_first, whole }
}

/// An endpoint, and a peer that sends it handcrafted frames.
struct Rig {
    network: MemoryNetwork,
    endpoint: Endpoint<MemoryDevice>,
    peer: MemoryDevice,
    arrivals: Vec<Received>,
    now: Time,
    sent_bytes: u64,
}

impl Rig {
    fn new() -> Self {
        let network = MemoryNetwork::new(MemoryConfig { frame_size: 2048, ..MemoryConfig::default() });
        let config = EndpointConfig::real(address(1), mac(1), 1500).unwrap();
        let config = config.with_give_up(Duration::from_secs(5)).with_max_message(MAX_MESSAGE);
        let config = EndpointConfig { seed: Some(1), max_connections: SLOTS, ..config };
        assert_eq!((config.flow.max_data_bytes, config.flow.max_message_bytes), (MAX_DATA, MAX_MESSAGE));
        let endpoint = Endpoint::new(network.attach(mac(1)), config).unwrap();
        let peer = network.attach(mac(2));
        Self { network, endpoint, peer, arrivals: Vec::with_capacity(256), now: Time::ZERO, sent_bytes: 0 }
    }

    /// Sends a frame from a host's address and has the endpoint process it. Returns its answers.
    fn send(&mut self, host: u8, connection: u32, cookie: u64, body: &Body, payload: &[u8]) -> Vec<Body> {
        let envelope = Envelope {
            src_mac: mac(2),
            dst_mac: mac(1),
            src: address(host),
            dst: address(1),
            src_port: EvPort::new(50_000),
            dst_port: Ports::DEFAULT.first(),
            dscp: 0,
            ecn: Ecn::NotEct,
            ttl: 64,
        };
        let frame = self.peer.allocate().unwrap();
        let common = Common { connection, cookie, ..Common::default() };
        let bytes = emit(self.peer.frame_mut(&frame), &envelope, &common, body, payload).unwrap();
        self.sent_bytes += bytes as u64;
        self.peer.transmit(frame, bytes as u32).unwrap();
        self.peer.flush().unwrap();
        self.advance(10 * US)
    }

    /// Advances the time, while the user takes nothing. Returns the bodies of the answers.
    fn advance(&mut self, by_ps: u64) -> Vec<Body> {
        self.now = self.now.after(by_ps);
        self.network.advance(self.now);
        self.endpoint.poll(self.now);
        self.network.advance(self.now);
        self.peer.receive(&mut self.arrivals, 256).unwrap();
        let mut bodies = Vec::new();
        for arrival in self.arrivals.drain(..) {
            bodies.push(parse(self.peer.frame(&arrival.frame, arrival.len), Ports::DEFAULT).unwrap().unwrap().body);
            self.peer.release(arrival.frame);
        }
        self.peer.flush().unwrap();
        bodies
    }

    /// Advances beyond the idle timeout while the peers send nothing; the user takes all events.
    fn expire_all(&mut self) {
        for _ in 0..40 {
            self.advance(SECOND_PS / 4);
        }
        while self.endpoint.poll_event().is_some() {}
        assert_eq!(self.endpoint.connections(), 0);
    }

    /// Opens a connection from a host. Returns the endpoint's number and cookie for it, unless no
    /// slot is free.
    fn connect(&mut self, host: u8, number: u32) -> Option<(u32, u64)> {
        let terms = Terms {
            connection: number,
            cookie: 7,
            window_packets: WINDOW as u32,
            max_payload: 1_200,
            max_data: 1 << 20,
            ack_every: 1,
            exchange_bytes: 0,
            token: [0; 16],
        };
        let answers = self.send(host, 0, 0, &Body::Connect(terms), &[]);
        let Some(Body::Retry(retry)) = answers.first() else { panic!("{answers:?}") };
        let answers = self.send(host, 0, 0, &Body::Connect(Terms { token: retry.token, ..terms }), &[]);
        let Some(Body::Accept(accept)) = answers.first() else {
            assert!(matches!(answers[..], [Body::Close(_)]) && self.endpoint.connections() == SLOTS as usize);
            return None;
        };
        let (connection, cookie) = (accept.connection, accept.cookie);
        self.send(host, connection, cookie, &Body::Probe(Probe { token: 1, timestamp: Time::ZERO }), &[]);
        Some((connection, cookie))
    }

    /// Sends the packets of an attack, a full window on each connection. Returns the number of
    /// connections.
    fn run(&mut self, attack: &Attack, (peers, each): (u32, u32), first: u32) -> u64 {
        let payload = vec![1; attack.payload.into()];
        let mut opened = 0;
        for number in 0..peers * each {
            let host = 2 + (number % peers) as u8;
            let Some((connection, cookie)) = self.connect(host, first + number) else { continue };
            opened += 1;
            let packets = if attack.whole { attack.message_bytes / u64::from(attack.payload) } else { 1 };
            // Every second packet number, so that each is out of order, unless messages are sent
            // whole.
            let step = if attack.whole { 1 } else { 2 };
            for (index, psn) in (0..WINDOW).step_by(step).enumerate() {
                let (message, packet) = (index as u64 / packets, index as u64 % packets);
                let last = attack.message_bytes - u64::from(attack.payload);
                let data = Data {
                    psn,
                    message: message as u32,
                    offset: if attack.last_first { last } else { packet * u64::from(attack.payload) },
                    message_bytes: attack.message_bytes,
                    payload_bytes: attack.payload,
                    ..Data::default()
                };
                self.send(host, connection, cookie, &Body::Data(data), &payload);
            }
        }
        opened
    }
}

/// Runs one attack by one set of peers, in a process of its own: memory that the allocator keeps
/// would hide that of the next attack. Prints the memory used.
fn run_attack(peer_set: usize, number: usize) {
    let ((who, peers, each), attack) = (PEER_SETS[peer_set], &ATTACKS[number]);
    let mut rig = Rig::new();
    // Opens a connection first, so that one-time allocations are not measured.
    rig.connect(2, u32::MAX);
    rig.expire_all();
    let (before, mut taken, mut sent, mut opened) = (resident_bytes(), 0, 0, 0);
    // In the second round the allocator returns memory that is not zeroed.
    for round in 0..2 {
        let sent_before = rig.sent_bytes;
        opened = rig.run(attack, (peers, each), 1 + round * peers * each);
        (taken, sent) = (taken.max(resident_bytes().saturating_sub(before)), rig.sent_bytes - sent_before);
        assert_eq!(opened, u64::from(SLOTS.min(peers * each)), "{who}, {}", attack.name);
        rig.expire_all();
    }
    let kept = resident_bytes().saturating_sub(before);
    println!("{who}, {}: {opened} connections, {sent} bytes sent, {taken} taken, {kept} kept", attack.name);
    let most = 2 * sent.min(opened * MAX_DATA) + opened * CONNECTION_BYTES + POOL_BYTES + PROCESS_BYTES;
    assert!(taken <= most, "{taken} of {most}");
    // Only messages of 64 KiB and more leave pages in the pool.
    let pages = if attack.whole && attack.message_bytes >= 64 << 10 { 16 * attack.message_bytes } else { 0 };
    assert!(kept <= pages + PROCESS_BYTES && pages <= POOL_BYTES, "{kept} kept");
    if !attack.whole || attack.message_bytes < 64 << 10 {
        assert!(taken <= most - POOL_BYTES, "{taken} of {most} without pages");
    }
}

//= docs/specs/transport.md#TRN-67 twice what has arrived
#[test]
fn peers_use_at_most_twice_the_memory_they_send() {
    const ATTACK: &str = "SPRAY_ATTACK";
    if let Some((peer_set, number)) = std::env::var(ATTACK).ok().as_deref().and_then(|text| text.split_once(' ')) {
        return run_attack(peer_set.parse().unwrap(), number.parse().unwrap());
    }
    let mut failed = Vec::new();
    for (peer_set, number) in
        (0..PEER_SETS.len()).flat_map(|peer_set| (0..ATTACKS.len()).map(move |number| (peer_set, number)))
    {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let output = child.env(ATTACK, format!("{peer_set} {number}")).arg("--nocapture").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        println!("{}", text.lines().find(|line| line.contains(" taken, ")).unwrap_or(&text));
        if !output.status.success() {
            failed.push((
                PEER_SETS[peer_set].0,
                ATTACKS[number].name,
                String::from_utf8_lossy(&output.stderr).into_owned(),
            ));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
