#![expect(unsafe_code, reason = "tests stand for the application, which hands over memory")]

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use spray_nic::device::{Impairments, MemoryDevice, MemoryNetwork};
use spray_nic::{EndpointConfig, Peer, Time};

use super::rma::{Kind, Region};
use super::*;
use crate::abi::{FI_ADDR_NOTAVAIL, FI_COMPLETION};
use crate::direction::Direction;
use crate::peers::Peers;
use crate::queue::{Count, Queue};

const MAX_MESSAGE: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(60);

/// An endpoint on an in-memory network.
struct Host {
    engine: Engine<MemoryDevice>,
    sent: Arc<Queue>,
    received: Arc<Queue>,
    counts: [Arc<Count>; 3],
    /// The other hosts, as this one numbers them.
    peers: Arc<Peers>,
}

fn config(number: u8) -> EndpointConfig {
    let config = EndpointConfig::real([10, 0, 0, number].into(), mac(number), 3498).unwrap();
    config.with_max_message((MAX_MESSAGE + header::BYTES + rma::BYTES) as u64).with_give_up(Duration::from_secs(1))
}

fn mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, number]
}

impl Host {
    fn new(network: &MemoryNetwork, number: u8) -> Self {
        let (sent, received) = (Arc::new(Queue::new(4096)), Arc::new(Queue::new(4096)));
        let counts = [Arc::<Count>::default(), Arc::default(), Arc::default()];
        let peers = Arc::<Peers>::default();
        for number in 0..4 {
            peers.insert(([10, 0, 0, number], 61440).into());
        }
        let side = |queue: &Arc<Queue>, count: &Arc<Count>| Direction {
            queue: Some(Arc::clone(queue)),
            count: Some(Arc::clone(count)),
            ..Direction::default()
        };
        let bindings = Bindings {
            peers: Arc::clone(&peers),
            sends: side(&sent, &counts[0]),
            receives: side(&received, &counts[1]),
            remotes: side(&sent, &counts[2]),
            regions: Arc::default(),
            reports_source: true,
            is_directed: true,
            context: 77,
        };
        let host = spray_nic::Host::new(network.attach(mac(number)), config(number)).unwrap();
        Self { engine: Engine::new(host, NextHops::ByNumber, bindings, MAX_MESSAGE), sent, received, counts, peers }
    }

    fn send(&mut self, to: u8, tag: Option<u64>, bytes: &[u8], context: usize) -> Result<(), Errno> {
        let flags = FI_COMPLETION;
        let send = Send {
            to: to.into(),
            buffers: buffers(bytes),
            header: Header { tag, ..Header::default() },
            flags,
            context: Some(context),
        };
        self.engine.send(&send)
    }

    fn receive(&mut self, from: Option<u8>, tag: Option<(u64, u64)>, to: &mut [u8], context: usize) {
        let from = source(self.engine.bindings(), from.map_or(FI_ADDR_NOTAVAIL, u64::from));
        self.engine
            .receive(Receive {
                buffers: buffers(to),
                from,
                tag,
                context,
                is_reported: true,
                least: None,
                is_last: false,
            })
            .unwrap();
    }
}

/// Returns buffers for `bytes`, which a test keeps alive until completion and does not access
/// before.
fn buffers(bytes: &[u8]) -> Buffers {
    let piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: see above; memory to receive into comes from a `&mut`.
    unsafe { Buffers::new(&[piece]) }.unwrap()
}

#[test]
fn a_message_to_itself_does_not_use_the_network() {
    let network = MemoryNetwork::default();
    let mut host = Host::new(&network, 1);
    let (mut to, mut second) = ([0; 8], [0; 8]);
    host.receive(Some(1), Some((5, 0)), &mut to, 1);
    host.send(1, Some(5), b"itself", 2).unwrap();
    // Unexpected messages, up to the limit.
    (0..sending::MAX_UNDELIVERED).for_each(|_| host.send(1, None, b"kept", 3).unwrap());
    assert_eq!(host.send(1, None, b"more", 4), Err(Errno::AGAIN));
    host.receive(None, None, &mut second, 5);
    host.send(1, None, b"more", 4).unwrap();
    let mut completions = Vec::new();
    let _ = host.received.read(9, |_, done| completions.push((done.entry.op_context, done.entry.len, done.source)));
    assert_eq!(completions, [(1, 6, 1), (5, 4, 1)]);
    assert_eq!((&to, &second), (b"itself\0\0", b"kept\0\0\0\0"));
    assert_eq!(host.counts[0].done.load(Relaxed), sending::MAX_UNDELIVERED as u64 + 2);
}

/// A network that loses, duplicates, corrupts and reorders frames.
fn impaired() -> Impairments {
    Impairments {
        delay_ps: 20_000_000,
        jitter_ps: 200_000_000,
        loss_ppm: 20_000,
        duplicate_ppm: 20_000,
        corrupt_ppm: 5_000,
        ..Impairments::default()
    }
}

/// Polls until `is_so` returns true.
fn until(network: &MemoryNetwork, hosts: &mut [&mut Host], mut is_so: impl FnMut(&mut [&mut Host]) -> bool) {
    let begun_ns = monotonic_ns();
    while !is_so(hosts) {
        assert!(monotonic_ns() - begun_ns < TIMEOUT.as_nanos() as u64, "timed out");
        network.advance(Time::from_ns(monotonic_ns()));
        for host in hosts.iter_mut() {
            host.engine.progress(true);
        }
    }
}

fn read(queue: &Queue) -> Vec<Completion> {
    let mut all = Vec::new();
    loop {
        match queue.read(64, |_, completion| all.push(*completion)) {
            Ok(0) => return all,
            Ok(_) => {}
            Err(_) => all.extend(queue.read_failed()),
        }
    }
}

fn pattern(number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + number * 7) as u8).collect()
}

#[test]
fn messages_arrive_whole_and_in_order_over_a_lossy_network() {
    let network = MemoryNetwork::default();
    network.set_impairments(impaired());
    let (mut a, mut b) = (Host::new(&network, 1), Host::new(&network, 2));
    let sizes: Vec<usize> = (0..120).map(|number| [0, 1, 24, 4000, 70_000, 9][number % 6] + number).collect();
    let messages: Vec<Vec<u8>> = sizes.iter().enumerate().map(|(number, &bytes)| pattern(number, bytes)).collect();
    // Half of the receives are posted before their messages arrive, the other half afterwards. Only
    // tags distinguish both kinds.
    let mut places: Vec<Vec<u8>> = sizes.iter().map(|&bytes| vec![0; bytes + 1]).collect();
    let tag = |number: usize| number.is_multiple_of(2).then_some((5, 0));
    for (number, place) in places.iter_mut().enumerate().take(60) {
        b.receive(None, tag(number), place, number);
    }
    for (number, message) in messages.iter().enumerate() {
        a.send(2, tag(number).map(|_| 5), message, number).unwrap();
    }
    until(&network, &mut [&mut a, &mut b], |hosts| hosts[1].counts[1].done.load(Relaxed) == 60);
    for (number, place) in places.iter_mut().enumerate().skip(60) {
        b.receive(None, tag(number), place, number);
    }
    until(&network, &mut [&mut a, &mut b], |hosts| {
        hosts[0].counts[0].done.load(Relaxed) == 120 && hosts[1].counts[1].done.load(Relaxed) == 120
    });
    for completion in read(&b.received) {
        let number = completion.entry.op_context;
        assert_eq!((completion.entry.len, completion.source), (sizes[number], 1), "{number}");
        assert!(places[number][..sizes[number]] == messages[number], "{number}");
    }
    let mut sent: Vec<usize> = read(&a.sent).iter().map(|completion| completion.entry.op_context).collect();
    sent.sort_unstable();
    assert_eq!(sent, (0..120).collect::<Vec<_>>());
}

#[test]
fn truncated_and_cancelled_receives_are_reported() {
    let network = MemoryNetwork::default();
    let (mut a, mut b) = (Host::new(&network, 1), Host::new(&network, 2));
    let long = pattern(1, 5000);
    let mut place = vec![0; 1000];
    b.receive(Some(3), Some((7, 0)), &mut [], 1);
    b.receive(Some(1), Some((4, 3)), &mut place, 2);
    b.receive(None, None, &mut [], 3);
    a.send(2, Some(7), &long, 10).unwrap();
    until(&network, &mut [&mut a, &mut b], |hosts| hosts[1].counts[1].failed.load(Relaxed) == 1);
    let [cut] = read(&b.received)[..] else { panic!("one failed") };
    assert_eq!((cut.entry.op_context, cut.entry.len, cut.lost, cut.errno), (2, 1000, 4000, FI_ETRUNC));
    assert!(place == long[..1000]);
    assert!(b.engine.cancel(3) && !b.engine.cancel(3));
    let [cancelled] = read(&b.received)[..] else { panic!("one cancelled") };
    assert_eq!((cancelled.entry.op_context, cancelled.errno), (3, libc::ECANCELED));
    for (to, bytes, errno) in [(9, 1, libc::EINVAL), (2, MAX_MESSAGE + 1, libc::EMSGSIZE)] {
        assert_eq!(a.send(to, None, &vec![0; bytes], 0), Err(Errno(errno)));
    }
    let peers = Arc::clone(&a.peers);
    let v6 = peers.insert("[fd00::1]:1".parse().unwrap());
    assert_eq!(a.send(v6 as u8, None, &[], 0), Err(Errno(libc::EADDRNOTAVAIL)));
}

#[test]
fn a_message_can_be_peeked_at_before_it_is_received() {
    let network = MemoryNetwork::default();
    let (mut a, mut b) = (Host::new(&network, 1), Host::new(&network, 2));
    let peek = Receive {
        buffers: buffers(&[]),
        from: None,
        tag: Some((7, 0)),
        context: 5,
        is_reported: true,
        least: None,
        is_last: false,
    };
    b.engine.peek(&peek, AfterPeek::Keep);
    assert_eq!(read(&b.received)[0].errno, libc::ENOMSG);
    let message = pattern(3, 300);
    a.send(2, Some(7), &message, 0).unwrap();
    until(&network, &mut [&mut a, &mut b], |hosts| hosts[0].counts[0].done.load(Relaxed) == 1);
    b.engine.peek(&peek, AfterPeek::Keep);
    let [seen] = read(&b.received)[..] else { panic!("one seen") };
    assert_eq!((seen.entry.len, seen.entry.tag, seen.source, seen.errno), (300, 7, 1, 0));
    let mut place = vec![0; 300];
    b.receive(None, Some((7, 0)), &mut place, 6);
    assert!(read(&b.received)[0].errno == 0 && place == message);
}

/// Registers 1,000 bytes of a host's memory for peers, with key 3, at address 0.
fn register(host: &Host, memory: &mut [u8], access: [bool; 2]) {
    assert!(host.engine.bindings().regions.insert(3, Region { buffers: buffers(memory), base: 0, access }));
}

fn remote(to: u8, kind: Kind, offset: u64, bytes: &[u8], context: usize) -> RmaOperation {
    let (buffers, context) = (buffers(bytes), Some(context));
    RmaOperation { to: to.into(), buffers, kind, key: 3, offset, data: None, flags: FI_COMPLETION, context }
}

#[test]
fn peers_read_and_write_registered_memory() {
    let network = MemoryNetwork::default();
    network.set_impairments(impaired());
    let (mut a, mut b) = (Host::new(&network, 1), Host::new(&network, 2));
    let mut memory = pattern(1, 1_000);
    register(&b, &mut memory, [true; 2]);
    register(&a, &mut memory, [true; 2]);
    let (sent, got, own) = (pattern(2, 300), vec![0; 500], vec![0; 10]);
    a.engine.begin_remote(&RmaOperation { data: Some(9), ..remote(2, Kind::Write, 600, &sent, 1) }).unwrap();
    a.engine.begin_remote(&remote(2, Kind::Read, 500, &got, 2)).unwrap();
    a.engine.begin_remote(&remote(1, Kind::Read, 990, &own, 3)).unwrap();
    until(&network, &mut [&mut a, &mut b], |hosts| hosts[0].counts[2].done.load(Relaxed) == 3);
    let expected = [&pattern(1, 1_000)[..600], &sent, &pattern(1, 1_000)[900..]].concat();
    assert!(memory == expected && got == expected[500..] && own == pattern(1, 1_000)[990..]);
    let mut completions: Vec<_> = read(&a.sent).iter().map(|done| (done.entry.op_context, done.errno)).collect();
    completions.sort_unstable();
    assert_eq!(completions, [(1, 0), (2, 0), (3, 0)]);
    let [completion] = read(&b.received)[..] else { panic!("one remote write with data") };
    assert_eq!((completion.entry.data, completion.entry.len), (9, 300));
}

#[test]
fn peers_cannot_access_other_memory() {
    let network = MemoryNetwork::default();
    let (mut a, mut b) = (Host::new(&network, 1), Host::new(&network, 2));
    let mut memory = pattern(1, 1_000);
    register(&b, &mut memory, [true, false]);
    let place = vec![7; 10];
    let invalid = [
        remote(2, Kind::Write, 0, &place, 1),
        remote(2, Kind::Read, 991, &place, 2),
        remote(2, Kind::Read, u64::MAX, &place, 3),
        RmaOperation { key: 4, ..remote(2, Kind::Read, 0, &place, 4) },
    ];
    invalid.iter().for_each(|remote| a.engine.begin_remote(remote).unwrap());
    until(&network, &mut [&mut a, &mut b], |hosts| hosts[0].counts[2].failed.load(Relaxed) == 4);
    assert!(read(&a.sent).iter().all(|done| done.errno == libc::EACCES));
    assert!(memory == pattern(1, 1_000) && place == [7; 10]);
    // A removed region is treated like one that was never registered.
    b.engine.bindings().regions.remove(3);
    a.engine.begin_remote(&remote(2, Kind::Read, 0, &place, 5)).unwrap();
    until(&network, &mut [&mut a, &mut b], |hosts| hosts[0].counts[2].failed.load(Relaxed) == 5);
    // The peer stopped answering: pending operations fail.
    b.engine.close();
    a.engine.begin_remote(&remote(2, Kind::Read, 0, &place, 6)).unwrap();
    until(&network, &mut [&mut a], |hosts| hosts[0].counts[2].failed.load(Relaxed) == 6);
}

#[test]
fn a_claimed_message_is_received_by_its_context_only() {
    let network = MemoryNetwork::default();
    let mut host = Host::new(&network, 1);
    let place = [0; 2];
    let buffers = buffers(&place);
    let probe = |context| Receive {
        buffers,
        from: None,
        tag: Some((7, 0)),
        context,
        is_reported: true,
        least: None,
        is_last: false,
    };
    [b"ab", b"cd", b"ef", b"gh"].into_iter().for_each(|bytes| host.send(1, Some(7), bytes, 0).unwrap());
    host.engine.peek(&probe(1), AfterPeek::Claim);
    host.engine.peek(&probe(2), AfterPeek::Claim);
    host.engine.peek(&probe(3), AfterPeek::Discard);
    host.engine.receive(probe(4)).unwrap();
    host.engine.discard_claimed(&probe(2)).unwrap();
    host.engine.receive_claimed(&probe(1)).unwrap();
    assert_eq!(host.engine.receive_claimed(&probe(1)), Err(Errno(libc::ENOMSG)));
    let completions: Vec<_> = read(&host.received).iter().map(|done| (done.entry.op_context, done.errno)).collect();
    assert_eq!(completions, [(1, 0), (2, 0), (3, 0), (4, 0), (2, 0), (1, 0)]);
    assert_eq!(&place, b"ab", "the last that was received");
}

#[test]
fn injected_memory_is_reusable_at_once() {
    let network = MemoryNetwork::default();
    let (mut a, mut b) = (Host::new(&network, 1), Host::new(&network, 2));
    let message = pattern(2, 3000);
    let mut reused = message.clone();
    let send = |context, flags| Send { to: 2, buffers: buffers(&reused), header: Header::default(), flags, context };
    for send in [send(Some(1), FI_INJECT_COMPLETE), send(Some(2), FI_INJECT), send(None, 0)] {
        a.engine.send(&send).unwrap();
    }
    reused.fill(0);
    assert_eq!(read(&a.sent).iter().map(|completion| completion.entry.op_context).collect::<Vec<_>>(), [1]);
    let mut places = vec![vec![0; 3000]; 3];
    places.iter_mut().for_each(|place| b.receive(None, None, place, 0));
    until(&network, &mut [&mut a, &mut b], |hosts| {
        hosts[1].counts[1].done.load(Relaxed) == 3 && hosts[0].counts[0].done.load(Relaxed) == 3
    });
    assert_eq!(read(&a.sent).iter().map(|completion| completion.entry.op_context).collect::<Vec<_>>(), [2]);
    assert!(places.iter().all(|place| *place == message));
}

#[test]
fn sends_to_an_unreachable_peer_fail() {
    let network = MemoryNetwork::default();
    let mut a = Host::new(&network, 1);
    a.send(2, None, b"nobody", 1).unwrap();
    until(&network, &mut [&mut a], |hosts| hosts[0].counts[0].failed.load(Relaxed) == 1);
    assert_eq!(read(&a.sent)[0].errno, libc::EHOSTUNREACH);
    let mut b = Host::new(&network, 2);
    a.send(2, None, b"somebody", 2).unwrap();
    until(&network, &mut [&mut a, &mut b], |hosts| hosts[0].counts[0].done.load(Relaxed) == 1);
    // A closing peer notifies the other side; messages that it sent before still match receives.
    b.send(1, None, b"last words", 3).unwrap();
    until(&network, &mut [&mut a, &mut b], |hosts| hosts[1].counts[0].done.load(Relaxed) == 1);
    let closing = std::thread::spawn(move || b.engine.close());
    until(&network, &mut [&mut a], |_| closing.is_finished());
    until(&network, &mut [&mut a], |hosts| hosts[0].engine.receiving.is_empty());
    let mut place = [0; 10];
    a.receive(None, None, &mut place, 4);
    assert_eq!((&place, read(&a.received)[0].errno), (b"last words", 0));
    a.send(2, None, b"nobody", 5).unwrap();
    until(&network, &mut [&mut a], |hosts| hosts[0].counts[0].failed.load(Relaxed) == 2);
}

/// Opens a plain host, which can send messages without a valid header.
fn plain_host(network: &MemoryNetwork, number: u8) -> (spray_nic::Host<MemoryDevice>, ConnectionId) {
    let mut host = spray_nic::Host::new(network.attach(mac(number)), config(number)).unwrap();
    let to = Peer { address: [10, 0, 0, 2].into(), mac: mac(2) };
    let connection = host.endpoint.connect(Time::ZERO, to, None).unwrap();
    (host, connection)
}

#[test]
fn hostile_messages_end_only_their_connection() {
    let network = MemoryNetwork::default();
    let (mut a, mut b) = (Host::new(&network, 1), Host::new(&network, 2));
    let valid = Header { tag: Some(1), ..Header::default() }.write();
    let mut invalid = vec![Vec::new(), vec![b'F'; 23], vec![0; 24], valid.to_vec()];
    invalid[3][2] = 255;
    for (number, message) in invalid.into_iter().enumerate() {
        let (mut plain_host, connection) = plain_host(&network, 3 + number as u8);
        plain_host.endpoint.send(connection, message.into()).unwrap();
        let mut ended = false;
        until(&network, &mut [&mut a, &mut b], |_| {
            plain_host.poll();
            let end = |event| matches!(event, EndpointEvent::Failed { error: ConnectionError::Aborted, .. });
            ended |= std::iter::from_fn(|| plain_host.endpoint.poll_event()).any(end);
            ended
        });
        let mut place = [0; 4];
        b.receive(None, None, &mut place, number);
        a.send(2, None, b"fine", number).unwrap();
        until(&network, &mut [&mut a, &mut b], |hosts| hosts[1].counts[1].done.load(Relaxed) == number as u64 + 1);
        assert_eq!(&place, b"fine");
    }
    assert_eq!(b.engine.receiving.matching.count(|_| true), (0, 0));
}

#[test]
fn unexpected_messages_are_bounded() {
    const EACH: usize = 1000;
    let network = MemoryNetwork::default();
    let mut b = Host::new(&network, 2);
    let (mut plain_host, connection) = plain_host(&network, 3);
    let (mut sent, mut delivered, mut quiet_ns) = (0, 0, monotonic_ns());
    let message = [&Header::default().write()[..], &[1; EACH]].concat();
    until(&network, &mut [&mut b], |_| {
        plain_host.poll();
        while plain_host.endpoint.send(connection, message.clone().into()).is_ok() {
            sent += 1;
        }
        let is_delivered = |event: &EndpointEvent| matches!(event, EndpointEvent::Delivered { .. });
        let more = std::iter::from_fn(|| plain_host.endpoint.poll_event()).filter(is_delivered).count();
        delivered += more;
        if more > 0 {
            quiet_ns = monotonic_ns();
        }
        monotonic_ns() - quiet_ns > 300_000_000
    });
    let (waiting, bytes) = b.engine.receiving.matching.count(|_| true);
    assert!(delivered < sent && waiting <= 4096 && bytes <= 2 * MAX_MESSAGE + 2 * EACH, "{waiting} with {bytes} bytes");
    // After a receive, the sender may send more.
    let mut place = [0; EACH];
    for number in 0..2 * waiting {
        b.receive(None, None, &mut place, number);
        let done = number as u64 + 1;
        until(&network, &mut [&mut b], |hosts| {
            plain_host.poll();
            while plain_host.endpoint.poll_event().is_some() {}
            let _ = plain_host.endpoint.send(connection, message.clone().into());
            hosts[0].counts[1].done.load(Relaxed) == done
        });
        read(&b.received);
    }
}
