//! What a peer can have an endpoint keep in memory: no more than twice what it has sent, whatever messages it begins, but for what
//! `docs/security.md` states. Memory is that of the process, so that this is the only test here.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use spray_nic::device::{Device, MemoryConfig, MemoryDevice, MemoryNetwork, Received};
use spray_nic::{Endpoint, EndpointConfig, Time};
use spray_wire::{Body, Common, Data, Ecn, Envelope, EvPort, Ports, Probe, Terms, emit, parse};

const US: u64 = 1_000_000;
const SECOND_PS: u64 = 1_000_000_000_000;
/// As `spray recv` has them: pieces of a file with their headers, and the window of real networks.
const MAX_MESSAGE: u64 = (1 << 20) + 16;
const WINDOW: u64 = 8192;
const CONNECTIONS: u32 = 4;
/// Beside twice what was sent: what a connection's incomplete messages share, its tables, and what waits for its user.
const CONNECTION_BYTES: u64 = (2 << 20) + (2 << 20);
/// Of the process: pages that the allocator keeps, and the pool's, which is empty here.
const PROCESS_BYTES: u64 = 4 << 20;

fn address(host: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, host).into()
}

fn mac(host: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, host]
}

/// Memory of this process.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Messages that a peer begins: their length, and the payload of the packets that it sends of each.
#[derive(Clone, Copy, Debug)]
struct Attack {
    name: &'static str,
    message_bytes: u64,
    payload: u16,
    /// Each packet ends its message; otherwise it begins it.
    last_first: bool,
    /// The user takes nothing, and each packet is a message.
    whole: bool,
}

const ATTACKS: [Attack; 8] = [
    attack("64 KiB, 1 byte of each", 65_535, 1, false, false),
    attack("64 KiB, the last byte of each", 65_535, 1, true, false),
    attack("64 KiB, 1,200 bytes of each", 65_535, 1_200, false, false),
    attack("4 KiB, 1 byte of each", 4_096, 1, false, false),
    attack("1 MiB, 1 byte of each", 1 << 20, 1, false, false),
    attack("1 MiB, the last byte of each", 1 << 20, 1, true, false),
    attack("1 byte each, not taken", 1, 1, false, true),
    attack("1,200 bytes each, not taken", 1_200, 1_200, false, true),
];

const fn attack(name: &'static str, message_bytes: u64, payload: u16, last_first: bool, whole: bool) -> Attack {
    Attack { name, message_bytes, payload, last_first, whole }
}

/// An endpoint, and a peer that sends it frames of its own.
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
        let config = EndpointConfig { seed: Some(1), ..config };
        let endpoint = Endpoint::new(network.attach(mac(1)), config).unwrap();
        let peer = network.attach(mac(2));
        Self { network, endpoint, peer, arrivals: Vec::with_capacity(256), now: Time::ZERO, sent_bytes: 0 }
    }

    /// Sends a frame, and has the endpoint handle it. Returns its answers.
    fn send(&mut self, connection: u32, cookie: u64, body: &Body, payload: &[u8]) -> Vec<Body> {
        let envelope = Envelope {
            src_mac: mac(2),
            dst_mac: mac(1),
            src: address(2),
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
        self.pass(10 * US)
    }

    /// Lets time pass. The user takes nothing. Returns what came back.
    fn pass(&mut self, by_ps: u64) -> Vec<Body> {
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

    /// Begins a connection. Returns the endpoint's number and cookie for it.
    fn connect(&mut self, number: u32) -> (u32, u64) {
        let asked = Terms {
            connection: number,
            cookie: 7,
            window_packets: WINDOW as u32,
            max_payload: 1_200,
            max_data: 1 << 20,
            ack_every: 1,
            exchange_bytes: 0,
            token: [0; 16],
        };
        let answers = self.send(0, 0, &Body::Connect(asked), &[]);
        let Some(Body::Retry(retry)) = answers.first() else { panic!("{answers:?}") };
        let answers = self.send(0, 0, &Body::Connect(Terms { token: retry.token, ..asked }), &[]);
        let Some(Body::Accept(accept)) = answers.first() else { panic!("{answers:?}") };
        let (connection, cookie) = (accept.connection, accept.cookie);
        self.send(connection, cookie, &Body::Probe(Probe { token: 1, timestamp: Time::ZERO }), &[]);
        (connection, cookie)
    }

    /// Sends the packets of an attack, a window full of them on each connection.
    fn run(&mut self, attack: &Attack, first: u32) {
        let payload = vec![1; attack.payload.into()];
        for number in first..first + CONNECTIONS {
            let (connection, cookie) = self.connect(number);
            // Numbers of packets without those before them, but for whole messages.
            let step = if attack.whole { 1 } else { 2 };
            for (message, psn) in (0..WINDOW).step_by(step).enumerate() {
                let data = Data {
                    psn,
                    message: message as u32,
                    offset: if attack.last_first { attack.message_bytes - u64::from(attack.payload) } else { 0 },
                    message_bytes: attack.message_bytes,
                    payload_bytes: attack.payload,
                    ..Data::default()
                };
                self.send(connection, cookie, &Body::Data(data), &payload);
            }
        }
    }
}

/// Has a process of its own run each attack: what an allocator keeps of one would be there for the next. Prints what it took.
fn alone(number: usize, attack: &Attack) -> bool {
    let mut rig = Rig::new();
    // What the first connection and the first messages take.
    rig.connect(u32::MAX);
    let (before, mut taken, mut sent) = (resident_bytes(), 0, 0);
    // The second time the allocator has memory that is not zero.
    for round in 0..2 {
        let sent_before = rig.sent_bytes;
        rig.run(attack, 1 + round * CONNECTIONS);
        (taken, sent) = (taken.max(resident_bytes().saturating_sub(before)), rig.sent_bytes - sent_before);
        assert!(rig.endpoint.connections() >= CONNECTIONS as usize, "attack {number}");
        // The peer falls silent, and the user takes what there is.
        for _ in 0..40 {
            rig.pass(SECOND_PS / 4);
        }
        while rig.endpoint.poll_event().is_some() {}
        assert_eq!(rig.endpoint.connections(), 0, "attack {number}");
    }
    let kept = resident_bytes().saturating_sub(before);
    println!("{}: {sent} bytes sent, {taken} taken, {kept} kept", attack.name);
    taken <= 2 * sent + u64::from(CONNECTIONS) * CONNECTION_BYTES + PROCESS_BYTES && kept <= PROCESS_BYTES
}

//= docs/specs/transport.md#TRN-67 twice what has arrived
#[test]
fn a_peer_holds_no_more_than_twice_what_it_sends() {
    if let Some(number) = std::env::var("SPRAY_ATTACK").ok().and_then(|number| number.parse::<usize>().ok()) {
        return assert!(alone(number, &ATTACKS[number]), "more than was sent, or not given back");
    }
    let mut failed = Vec::new();
    for (number, attack) in ATTACKS.iter().enumerate() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let output = child.env("SPRAY_ATTACK", number.to_string()).arg("--nocapture").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        println!("{}", text.lines().find(|line| line.contains(" taken, ")).unwrap_or(&text));
        if !output.status.success() {
            failed.push(attack.name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
