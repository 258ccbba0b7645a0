//! The memory of `spray recv` under peers that make it hold as much as the protocol permits. The
//! figures in `docs/security.md`, Memory, are printed with `--nocapture`.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use spray_benches::net::Pair;
use spray_test_support::Folder;
use spray_tests::running::{Running, inbox, payload, wait_until};
use spray_tests::{spray, turn};
use spray_wire::frame::envelop;
use spray_wire::offsets::udp_payload_offset;
use spray_wire::{
    Accept, Body, Common, Connect, DSCP_CONTROL, Data, Ecn, Envelope, EvPort, INITIAL_TTL, Ports, Probe, Retry, Time,
    emit, parse,
};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PORT: u16 = 50_000;
/// Of side 0, beside its own.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 10);
const ADDRESSES: u32 = 40;
const KIB_PER_MIB: u64 = 1 << 10;
/// Bounds of `docs/security.md` beyond twice the data sent and not consumed: per connection, and
/// for pages of dropped messages.
const CONNECTION_MIB: u64 = 5;
const PAGES_MIB: u64 = 32;
/// The places of END-27: active transfers; finished ones of an address, without a stored entry, and
/// others.
const ACTIVE: u32 = 16;
const ENDED_OF_ADDRESS: u32 = 3;
const REFUSED: u32 = 8;
const ENDED: u32 = 16;
/// Files of a transfer without a verdict (END-21), and the memory of each one's thread: its stack,
/// and pages of its allocator.
const FILES: u32 = 16;
const THREAD_KIB: u64 = 256;
const THREADS_MIB: u64 = ACTIVE as u64 * FILES as u64 * THREAD_KIB / KIB_PER_MIB;
/// Packet numbers of an attack, within the window of 8,192. Every other one is not sent.
const NUMBERS: u64 = 8_000;
/// A message length that the allocator rounds up by a quarter, and the number of such messages that
/// the limit of 2 MiB permits. Further ones have two bytes: they take records only.
const MESSAGE_BYTES: u64 = 2_052;
const LONG: u64 = (2 << 20) / MESSAGE_BYTES;

/// A connection of a malicious sender.
struct Attacker {
    /// Sends from the port of an entropy value.
    sending: UdpSocket,
    /// Of all connections of its address.
    receiving: Rc<UdpSocket>,
    address: Ipv4Addr,
    common: Common,
    psn: u64,
    message: u32,
    payload_bytes: u64,
}

impl Attacker {
    /// Connects from an address of side 0. Connections of an address have different ports.
    fn connect(pair: &Pair, receiving: &Rc<UdpSocket>, number: u32) -> Self {
        let SocketAddr::V4(own) = receiving.local_addr().unwrap() else { panic!("IPv4") };
        let address = *own.ip();
        let sending = pair.run_in(0, || UdpSocket::bind((address, PORT + number as u16))).unwrap().unwrap();
        sending.connect((SERVER, Ports::DEFAULT.first())).unwrap();
        let (receiving, common) = (Rc::clone(receiving), Common::default());
        let mut attacker = Self { sending, receiving, address, common, psn: 0, message: 0, payload_bytes: 0 };
        let mut connect = Connect {
            connection: number,
            cookie: 1,
            window_packets: 8_192,
            max_payload: 1_024,
            max_data: 1 << 20,
            ack_every: 1,
            exchange_bytes: 0,
            token: [0; 16],
        };
        for _ in 0..1_000 {
            attacker.send(&Body::Connect(connect), &[]);
            match attacker.answer(number) {
                Some(Body::Retry(Retry { token })) => connect.token = token,
                Some(Body::Accept(Accept { connection, cookie, .. })) => {
                    attacker.common = Common { connection, cookie, ..Common::default() };
                    attacker.send(&Body::Probe(Probe { token: 1, timestamp: Time::ZERO }), &[]);
                    return attacker;
                }
                _ => {}
            }
        }
        panic!("no connection for {address}");
    }

    /// The headers of a frame, which sockets do not show.
    fn envelope([src, dst]: [Ipv4Addr; 2], port: u16) -> Envelope {
        Envelope {
            src_mac: [0; 6],
            dst_mac: [0; 6],
            src: src.into(),
            dst: dst.into(),
            src_port: EvPort::new(port),
            dst_port: Ports::DEFAULT.first(),
            dscp: DSCP_CONTROL,
            ecn: Ecn::NotEct,
            ttl: INITIAL_TTL,
        }
    }

    fn send(&self, body: &Body, payload: &[u8]) {
        let mut frame = [0; 4_096];
        let envelope = Self::envelope([self.address, SERVER], self.sending.local_addr().unwrap().port());
        let bytes = emit(&mut frame, &envelope, &self.common, body, payload).unwrap();
        self.sending.send(&frame[udp_payload_offset(false)..bytes]).unwrap();
    }

    fn answer(&self, number: u32) -> Option<Body> {
        let mut frame = [0; 4_096];
        let (bytes, from) = self.receiving.recv_from(&mut frame[udp_payload_offset(false)..]).ok()?;
        let bytes = envelop(&mut frame, &Self::envelope([SERVER, self.address], from.port()), bytes).unwrap();
        let frame = parse(&frame[..bytes], Ports::DEFAULT).ok()??;
        // The number that its Connect states.
        (frame.common.connection == number).then_some(frame.body)
    }

    /// Sends a message in one packet.
    fn say(&mut self, message: &[u8]) {
        let bytes = message.len() as u16;
        self.data(Data { message_bytes: bytes.into(), payload_bytes: bytes, ..Data::default() }, message);
        self.psn += 1;
    }

    /// Twice, since a ring may be full.
    fn data(&mut self, data: Data, payload: &[u8]) {
        let data = Body::Data(Data { psn: self.psn, message: self.message, ..data });
        (0..2).for_each(|_| self.send(&data, payload));
        self.message += 1;
        self.payload_bytes += payload.len() as u64;
        if self.message.is_multiple_of(32) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends a byte each of as many messages as the receiver has records for, with every other
    /// packet number.
    fn hold(&mut self) {
        for index in 0..NUMBERS / 2 {
            let message_bytes = if index < LONG { MESSAGE_BYTES } else { 2 };
            self.psn += 1;
            self.data(Data { message_bytes, payload_bytes: 1, ..Data::default() }, &[1]);
            self.psn += 1;
        }
    }

    /// Describes entries of this kind, by number and path.
    fn describe(&mut self, kind: u8, entries: impl IntoIterator<Item = (u32, String)>) {
        for (number, path) in entries {
            let header = [&b"SF8"[..], &[kind], &number.to_be_bytes(), &(1_u64 << 20).to_be_bytes(), &[1, 0xff]];
            self.say(&[&header.concat(), path.as_bytes()].concat());
        }
    }

    /// States that the transfer has this number of entries.
    fn finish(&mut self, entries: u32) {
        self.say(&[&b"SF8."[..], &entries.to_be_bytes(), &[0; 8]].concat());
    }
}

/// A `spray recv --keep` on side 1, after an honest transfer of a file, whose pages it keeps.
struct Victim {
    pair: Pair,
    folder: Folder,
    receiving: Running,
    /// At each of the addresses that attack.
    sockets: Vec<Rc<UdpSocket>>,
    before_kib: u64,
}

impl Victim {
    fn new(file_bytes: usize) -> Self {
        let (pair, folder) = (Pair::new().unwrap(), Folder::new());
        let out = inbox(&folder);
        let mut command = spray();
        command.args(["recv", "--keep", "--insecure", "--interface", Pair::INTERFACE, "--timeout", "300"]);
        command.args(["--from", &SERVER.to_string(), "--out"]).arg(&out);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let receiving = Running(pair.run_in(1, || command.spawn()).unwrap().unwrap()).listening();
        let before_kib = receiving.kib("VmRSS:");
        let file = payload(&folder, file_bytes);
        let mut command = spray();
        command.arg("send").arg(&file).args([
            "--insecure",
            "--interface",
            Pair::INTERFACE,
            "--to",
            &SERVER.to_string(),
        ]);
        let sent = pair.run_in(0, || command.output()).unwrap().unwrap();
        assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
        let socket = |index: u32| {
            let address = Ipv4Addr::from(u32::from(FIRST) + index);
            let mut command = Command::new("ip");
            command.args(["address", "add", &format!("{address}/24"), "dev", Pair::INTERFACE]);
            assert!(pair.run_in(0, || command.status()).unwrap().unwrap().success(), "{address}");
            let socket = pair.run_in(0, || UdpSocket::bind((address, Ports::DEFAULT.first()))).unwrap().unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            Rc::new(socket)
        };
        let sockets = (0..ADDRESSES).map(socket).collect();
        Self { pair, folder, receiving, sockets, before_kib }
    }

    /// Returns its most memory so far, less what it had when it listened, and twice the payload that
    /// these peers have sent.
    fn taken_mib(&self, attackers: &[Attacker]) -> u64 {
        std::thread::sleep(Duration::from_millis(500));
        let twice_kib: u64 = attackers.iter().map(|attacker| 2 * attacker.payload_bytes).sum::<u64>() / 1024;
        (self.receiving.kib("VmHWM:") - self.before_kib).saturating_sub(twice_kib) / KIB_PER_MIB
    }

    /// Opens a connection, fills its memory, and ends its transfer, or leaves it open.
    fn attack(&self, address: u32, number: u32, end: End) -> Attacker {
        let mut attacker = Attacker::connect(&self.pair, &self.sockets[address as usize], number);
        let kind = if end == End::Complete { b'd' } else { b'f' };
        attacker.describe(kind, [(0, format!("{number}-0"))]);
        attacker.hold();
        match end {
            End::Refused => attacker.say(b"no message"),
            End::Complete => attacker.finish(1),
            End::Open => {}
        }
        attacker
    }

    fn end(mut self) {
        assert!(self.receiving.is_running());
        self.receiving.kill();
        drop((self.pair, self.folder));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Refused,
    Complete,
    Open,
}

/// Describes further files in the active transfers, each of which starts a thread. Returns the
/// growth of the receiver's memory.
fn taken_with_files_mib(victim: &Victim, attackers: &mut [Attacker]) -> u64 {
    let active = attackers.len() - ACTIVE as usize;
    for (at, attacker) in attackers.iter_mut().enumerate().skip(active) {
        attacker.describe(b'f', (1..FILES).map(|number| (number, format!("{at}-more-{number}"))));
    }
    let threads = || fs::read_dir(format!("/proc/{}/task", victim.receiving.0.id())).unwrap().count();
    wait_until("a thread for each file", || threads() > (ACTIVE * FILES) as usize);
    victim.taken_mib(attackers)
}

//= docs/specs/endpoint.md#END-27 16 transfers at once
//= docs/specs/endpoint.md#END-27 3 of an address
#[test]
fn a_peer_with_all_its_transfers_takes_no_more_memory_than_stated() {
    let Some(_turn) = turn() else { return };
    let victim = Victim::new(1 << 10);
    let refused = (0..ENDED_OF_ADDRESS).map(|_| End::Refused);
    let ends = refused.chain((0..ACTIVE).map(|_| End::Open)).zip(0..);
    let mut attackers: Vec<_> = ends.map(|(end, number)| victim.attack(0, number, end)).collect();
    let (connections, taken_mib) = (attackers.len() as u64, victim.taken_mib(&attackers));
    let most_mib = connections * CONNECTION_MIB;
    let with_files_mib = taken_with_files_mib(&victim, &mut attackers);
    println!("a peer: {taken_mib} of {most_mib} MiB, {with_files_mib} of {} with files", most_mib + THREADS_MIB);
    assert!((2 * connections..=most_mib).contains(&taken_mib), "{taken_mib} MiB");
    assert!(with_files_mib <= most_mib + THREADS_MIB, "{with_files_mib} MiB");
    victim.end();
}

//= docs/specs/endpoint.md#END-27 the oldest is evicted
#[test]
fn all_peers_that_have_places_take_no_more_memory_than_stated() {
    let Some(_turn) = turn() else { return };
    let victim = Victim::new(64 << 20);
    let ends = [(REFUSED, End::Refused), (ENDED, End::Complete), (ACTIVE, End::Open)];
    let ends = ends.into_iter().flat_map(|(count, end)| (0..count).map(move |_| end));
    // The first are evicted.
    let crowd = [End::Refused; 4].into_iter().chain(ends).zip(0..);
    let mut attackers: Vec<_> = crowd.map(|(end, number)| victim.attack(number % ADDRESSES, number, end)).collect();
    let (connections, taken_mib) = (u64::from(REFUSED + ENDED + ACTIVE), victim.taken_mib(&attackers));
    let most_mib = connections * CONNECTION_MIB + PAGES_MIB;
    let with_files_mib = taken_with_files_mib(&victim, &mut attackers);
    println!("all peers: {taken_mib} of {most_mib} MiB, {with_files_mib} of {} with files", most_mib + THREADS_MIB);
    assert!((2 * connections..=most_mib).contains(&taken_mib), "{taken_mib} MiB");
    assert!(with_files_mib <= most_mib + THREADS_MIB, "{with_files_mib} MiB");
    victim.end();
}
