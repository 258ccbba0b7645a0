//! Hosts connected by an in-memory wire, with messages that have bytes and messages that are only
//! counted.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use spray_wire::{Body, Data, EvPort, Probe, PullRequest};

use super::*;
use crate::cc::CcKind;
use crate::event::{Event, FreezeReason, Publisher};
use crate::flow::{Arrival, DataOutcome, FlowConfig, SenderEvent, Transmit};
use crate::now;
use crate::path::{BalancerKind, LossCause};
use crate::rng::stream;
use crate::tests::at;

const US: u64 = 1_000_000;
const PAYLOAD: usize = 1000;
const BPS: u64 = 100_000_000_000;

/// The payload of a message.
trait Payload: Clone + Default {
    /// A piece of a message in flight.
    type Piece: Clone;
    fn of(bytes: usize) -> Self;
    fn len(&self) -> usize;
    fn cut(&self, data: &Data) -> Self::Piece;
    fn put(&mut self, data: &Data, piece: Self::Piece) -> bool;
}

/// Bytes, each of which encodes its position.
impl Payload for Vec<u8> {
    type Piece = Vec<u8>;

    fn of(bytes: usize) -> Self {
        (0..bytes).map(|at| (at * 31 + (at >> 8)) as u8).collect()
    }

    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn cut(&self, data: &Data) -> Vec<u8> {
        self[data.offset as usize..][..usize::from(data.payload_bytes)].to_vec()
    }

    fn put(&mut self, data: &Data, piece: Vec<u8>) -> bool {
        self.resize(data.message_bytes as usize, 0);
        let Some(place) = self.get_mut(data.offset as usize..data.offset as usize + piece.len()) else { return false };
        place.copy_from_slice(&piece);
        true
    }
}

/// A count of bytes.
impl Payload for usize {
    type Piece = ();

    fn of(bytes: usize) -> Self {
        bytes
    }

    fn len(&self) -> usize {
        *self
    }

    fn cut(&self, _data: &Data) {}

    fn put(&mut self, data: &Data, (): ()) -> bool {
        *self += usize::from(data.payload_bytes);
        true
    }
}

/// A connection's entry: the message that it sends, and the one that it receives.
struct Connection<P> {
    halves: Option<(SendHalf, ReceiveHalf)>,
    waiting: Vec<u32>,
    outgoing: P,
    incoming: P,
    delivered: bool,
}

/// A frame on the wire: connection, port, header, payload.
type Flying<P> = (u32, EvPort, Body, Option<<P as Payload>::Piece>);

/// A host and its connections, timers and frames.
struct Station<P: Payload> {
    host: Scheduler,
    table: Vec<Connection<P>>,
    log: EventLog,
    out: VecDeque<Flying<P>>,
    received: Vec<(u32, u64)>,
    sender_timer: Vec<Time>,
    receiver_timer: Vec<Time>,
    done: Vec<u32>,
}

impl<P: Payload> Station<P> {
    /// Creates a host with `connections`, each of which has a message of `bytes` to send, or none.
    fn new(seed: u64, connections: usize, bytes: Option<usize>, config: &FlowConfig) -> Self {
        let mut host = Scheduler::new(BPS, connections, stream(seed, 0));
        let mut connection = || Connection {
            halves: Some((
                SendHalf::new(config, config.window_packets, config.max_data_bytes, &mut host.rng),
                ReceiveHalf::new(config),
            )),
            waiting: bytes.iter().map(|_| 7).collect(),
            outgoing: P::of(bytes.unwrap_or(0)),
            incoming: P::default(),
            delivered: false,
        };
        let table: Vec<_> = (0..connections).map(|_| connection()).collect();
        Self {
            host,
            table,
            log: EventLog::bounded(1 << 16),
            out: VecDeque::new(),
            received: Vec::new(),
            sender_timer: vec![Time::NEVER; connections],
            receiver_timer: vec![Time::NEVER; connections],
            done: Vec::new(),
        }
    }

    /// Handles the sender's deadline and the resulting events.
    fn serve(&mut self, now: Time, number: u32) {
        if let Some((half, _)) = &mut self.table[number as usize].halves {
            half.on_deadline(now, &mut self.log.of(number));
        }
        self.serve_sender(now, number);
    }

    fn serve_sender(&mut self, now: Time, number: u32) {
        let connection = &mut self.table[number as usize];
        let Some((half, _)) = &mut connection.halves else { return self.done.push(number) };
        while let Some(event) = half.sender.poll_event() {
            match event {
                SenderEvent::MessageDelivered { .. } => connection.delivered = true,
                SenderEvent::Failed => panic!("connection {number} failed"),
            }
        }
        for message in connection.waiting.drain(..) {
            half.sender.send_message(message, connection.outgoing.len() as u64).unwrap();
        }
        if connection.delivered {
            return self.done.push(number);
        }
        self.host.request_turn(number, half);
        self.sender_timer[number as usize] = half.deadline(now);
    }

    fn serve_receiver(&mut self, number: u32) {
        let Some((_, half)) = &mut self.table[number as usize].halves else { return };
        while let Some((_, bytes)) = half.receiver.message_completed() {
            half.receiver.consumed(bytes);
            self.received.push((number, bytes));
        }
        while let Some((port, body)) = half.poll_control() {
            self.out.push_back((number, port, body, None));
        }
        self.receiver_timer[number as usize] = half.deadline();
    }

    fn arrive(&mut self, now: Time, (number, port, body, piece): Flying<P>, trimmed: bool) -> Option<DataOutcome> {
        let connection = &mut self.table[number as usize];
        let (sending, receiving) = connection.halves.as_mut().unwrap();
        if let (Body::Data(data), Some(piece)) = (body, piece) {
            let arrival = Arrival { data, port, hops: 1, trimmed, ..Arrival::default() };
            let place = |_| connection.incoming.put(&data, piece);
            let accept = self.host.on_data(now, receiving, &arrival, place);
            self.serve_receiver(number);
            return Some(accept);
        }
        let path = FramePath { port, hops: 1, marked: false, pause: false };
        if let Some(reply) = self.host.on_request(now, number, receiving, &body, &path) {
            self.out.push_back((number, port, reply, None));
        }
        if sending.on_feedback(now, &body, &path, &mut self.log.of(number)) {
            self.serve_sender(now, number);
        }
        None
    }

    fn grant(&mut self, now: Time) {
        let Some((number, pull)) = self.host.grant(now) else { return };
        let Some((_, half)) = &mut self.table[number as usize].halves else { return };
        self.out.push_back((number, self.host.pull_port(half), Body::Pull(pull), None));
    }

    /// Sends one data packet, if a connection has one.
    fn transmit(&mut self, now: Time) {
        while let Some(number) = self.host.next_turn() {
            let connection = &mut self.table[number as usize];
            let Some((half, _)) = &mut connection.halves else { continue };
            let frame = self.host.transmit(now, number, half, &mut self.log.of(number));
            self.sender_timer[number as usize] = half.deadline(now);
            match frame {
                Some(Transmit::Data { data, ev }) => {
                    let piece = Some(connection.outgoing.cut(&data));
                    return self.out.push_back((number, half.port(ev), Body::Data(data), piece));
                }
                Some(Transmit::Probe { probe, ev }) => {
                    self.out.push_back((number, half.port(ev), Body::Probe(probe), None));
                }
                Some(Transmit::PullRequest { request, ev }) => {
                    self.out.push_back((number, half.port(ev), Body::PullRequest(request), None));
                }
                None => {}
            }
        }
    }

    /// Handles the deadlines that have passed, and sends at most one data packet.
    fn step(&mut self, now: Time) {
        for number in 0..self.table.len() as u32 {
            if self.sender_timer[number as usize] <= now && !self.done.contains(&number) {
                self.serve(now, number);
            }
            if self.receiver_timer[number as usize] <= now {
                if let Some((_, half)) = &mut self.table[number as usize].halves {
                    half.receiver.on_timeout(now);
                }
                self.serve_receiver(number);
            }
        }
        while self.host.grant_at().is_some_and(|at| at <= now) {
            self.grant(now);
        }
        self.transmit(now);
    }
}

fn config(control: CcKind) -> FlowConfig {
    let rtt_ps = 10 * US;
    let path = now::Path { trimming: true, bdp_packets: 20, ..now::Path::new(rtt_ps, BPS, PAYLOAD as u32 + 64) };
    FlowConfig { ack_every: 4, cc: control.into(), ..FlowConfig::new(BalancerKind::Reps, path, 64) }
}

/// Sends `connections` messages from one host to another over a wire that loses or trims every 13th
/// packet.
fn transfer<P: Payload>(connections: usize, bytes: usize, control: CcKind) -> (Station<P>, Station<P>) {
    let config = config(control);
    let mut sender = Station::<P>::new(1, connections, Some(bytes), &config);
    let mut receiver = Station::<P>::new(2, connections, None, &config);
    (0..connections as u32).for_each(|number| sender.serve(Time::ZERO, number));
    let (mut now, mut packets) = (Time::ZERO, 0);
    while sender.done.len() < connections {
        now = now.after(US / 10);
        assert!(now < at(100_000 * US), "{:?} of {connections} after 100 ms", sender.done);
        sender.step(now);
        receiver.step(now);
        for frame in core::mem::take(&mut sender.out) {
            packets += u64::from(frame.3.is_some());
            let trimmed = frame.3.is_some() && packets % 26 == 0;
            if frame.3.is_none() || packets % 13 != 0 || trimmed {
                receiver.arrive(now, frame, trimmed);
            }
        }
        for frame in core::mem::take(&mut receiver.out) {
            sender.arrive(now, frame, false);
        }
    }
    (sender, receiver)
}

#[test]
fn messages_of_bytes_arrive_unchanged() {
    let (sender, receiver) = transfer::<Vec<u8>>(3, 40 * PAYLOAD + 7, CcKind::Dctcp);
    for (sent, received) in sender.table.iter().zip(&receiver.table) {
        assert!(sent.delivered && sent.outgoing == received.incoming);
    }
    assert_eq!(receiver.received.len(), 3);
    let resent = |entry: &LogEntry| matches!(entry.event, Event::Retransmit { cause: LossCause::Trimmed, .. });
    assert!({ sender.log }.drain().any(|entry| resent(&entry)));
}

#[test]
fn messages_without_bytes_behave_the_same() {
    let bytes = 40 * PAYLOAD + 7;
    let (counted, receiver) = transfer::<usize>(3, bytes, CcKind::Dctcp);
    assert!(receiver.table.iter().all(|connection| connection.incoming == bytes));
    let (carried, _) = transfer::<Vec<u8>>(3, bytes, CcKind::Dctcp);
    for (counted, carried) in counted.table.iter().zip(&carried.table) {
        let stats =
            [&counted.halves, &carried.halves].map(|halves| halves.as_ref().map(|(half, _)| half.sender.stats()));
        assert_eq!(stats[0], stats[1]);
    }
}

#[test]
fn connections_take_turns_packet_by_packet() {
    let mut station = Station::<usize>::new(1, 3, Some(10 * PAYLOAD), &config(CcKind::Dctcp));
    (0..3).for_each(|number| station.serve(Time::ZERO, number));
    assert_eq!(station.host.turn(0), Some(0));
    (0..6).for_each(|_| station.transmit(Time::ZERO));
    let order: Vec<u32> = station.out.iter().map(|(number, ..)| *number).collect();
    assert_eq!(order, [0, 1, 2, 0, 1, 2]);
    // An ended connection loses its turn, and the others continue.
    station.table[0].halves = None;
    station.out.clear();
    (0..3).for_each(|_| station.transmit(Time::ZERO));
    let order: Vec<u32> = station.out.iter().map(|(number, ..)| *number).collect();
    assert_eq!(order, [1, 2, 1]);
}

#[test]
fn a_probe_is_answered_on_its_port() {
    let mut station = Station::<usize>::new(1, 1, None, &config(CcKind::Dctcp));
    let probe = Body::Probe(Probe { token: 9, timestamp: at(5_000) });
    let port = EvPort::new(4711);
    station.arrive(at(20_000), (0, port, probe, None), false);
    let (number, port, answer, _) = station.out.pop_front().unwrap();
    let Body::ProbeAck(answer) = answer else { panic!("{answer:?}") };
    assert_eq!(
        (number, port, answer.port, answer.token, answer.timestamp, answer.hops),
        (0, port, port, 9, at(5_000), 1)
    );
}

#[test]
fn a_host_grants_credit_while_connections_request_it() {
    let mut station = Station::<usize>::new(1, 2, None, &config(CcKind::Dctcp));
    assert!(station.host.pacer.is_none());
    let request = |demand_bytes| Body::PullRequest(PullRequest { demand_bytes, pulled_bytes: 0 });
    station.arrive(Time::ZERO, (0, EvPort::new(1), request(10_000), None), false);
    station.arrive(Time::ZERO, (1, EvPort::new(1), request(3_000), None), false);
    assert_eq!(station.host.grant_at(), Some(Time::ZERO));
    let mut granted = [0, 0];
    let mut now = Time::ZERO;
    while let Some(at) = station.host.grant_at() {
        now = at;
        station.grant(now);
        for (number, _, body, _) in station.out.drain(..) {
            let Body::Pull(pull) = body else { panic!("{body:?}") };
            granted[number as usize] = pull.credit_bytes;
        }
    }
    assert_eq!(granted, [10_000, 3_000]);
    // 13 grants and two remainders at 99 % of 100 Gb/s.
    assert!((at(700_000)..at(1_200_000)).contains(&now), "{now:?}");
    station.arrive(now, (0, EvPort::new(1), request(20_000), None), false);
    let (_, half) = station.table[0].halves.take().unwrap();
    station.host.close(&half);
    station.grant(now.after(US));
    assert!(station.out.is_empty() && station.host.grant_at().is_none());
}

//= docs/specs/eqds.md#EQDS-18 Paths of requests and pulls
#[test]
fn the_first_pull_takes_the_path_of_the_request() {
    let mut station = Station::<usize>::new(1, 1, None, &config(CcKind::Dctcp));
    let mut ports = Vec::new();
    for demand_bytes in [60_000, 120_000] {
        let request = Body::PullRequest(PullRequest { demand_bytes, pulled_bytes: 0 });
        station.arrive(Time::ZERO, (0, EvPort::new(7), request, None), false);
        while let Some(at) = station.host.grant_at() {
            station.grant(at);
        }
        ports.push(station.out.drain(..).map(|(_, port, ..)| port).collect::<Vec<_>>());
    }
    for ports in ports {
        assert!(ports.len() > 5 && ports[0] == EvPort::new(7), "{ports:?}");
        assert!(ports[1..].iter().any(|port| *port != ports[0]), "{ports:?}");
    }
}

/// Returns the number of pulls in 100 ms for a connection that requests the maximum every
/// `again_ps` and sends `send`.
fn pulls(again_ps: u64, send: Option<Data>) -> usize {
    let mut station = Station::<usize>::new(1, 1, None, &config(CcKind::Dctcp));
    let (mut pulls, mut pulled_bytes, mut asks_ps) = (0, 0, 0);
    for now_ps in (0..100_000 * US).step_by(US as usize / 10) {
        let now = at(now_ps);
        if now_ps >= asks_ps {
            let request = PullRequest { demand_bytes: u64::MAX, pulled_bytes };
            station.arrive(now, (0, EvPort::new(1), Body::PullRequest(request), None), false);
            asks_ps += again_ps;
            if let Some(data) = send {
                station.arrive(now, (0, EvPort::new(1), Body::Data(data), Some(())), true);
            }
        }
        station.step(now);
        for (.., body, _) in station.out.drain(..) {
            if let Body::Pull(pull) = body {
                (pulls, pulled_bytes) = (pulls + 1, pull.credit_bytes);
            }
        }
    }
    pulls
}

//= docs/specs/eqds.md#EQDS-16 limit of unused credit
//= docs/specs/eqds.md#EQDS-17 requests without room
#[test]
fn requests_without_data_trigger_bounded_pulls() {
    let config = config(CcKind::Dctcp);
    let most = config.credit_bound().bytes.div_ceil(u64::from(config.packet_bytes())) as usize;
    assert_eq!(most, 512, "the packet window");
    assert_eq!(pulls(u64::MAX / 2, None), most);
    // With a request every microsecond: one further pull per minimum timeout.
    let timeouts = (100_000 * US / config.rto.min_ps) as usize;
    assert!((most..=most + timeouts + 1).contains(&pulls(US, None)), "{}", pulls(US, None));
    // Trimmed frames with maximum claims: one pull each.
    let claims = Data { message_bytes: 60_000, payload_bytes: 60_000, ..Data::default() };
    assert!(pulls(100 * US, Some(claims)) <= most + timeouts + 1_001);
}

#[test]
fn credit_delivers_all_messages_over_a_lossy_wire() {
    let (_, receiver) = transfer::<usize>(2, 30 * PAYLOAD, CcKind::Eqds);
    assert!(receiver.table.iter().all(|connection| connection.incoming == 30 * PAYLOAD));
    assert!(receiver.host.pacer.is_some());
}

#[test]
fn the_log_keeps_each_event_under_its_connection() {
    let mut log = EventLog::bounded(2);
    log.of(3).on_event(at(10_000), Event::FreezeEntered { reason: FreezeReason::Setting });
    log.of(4).on_event(at(20_000), Event::FreezeExited);
    log.of(3).on_event(at(30_000), Event::FreezeExited);
    assert_eq!(log.overflow(), 1);
    let entries: Vec<_> = log.drain().map(|entry| (entry.at, entry.connection)).collect();
    assert_eq!(entries, [(at(10_000), 3), (at(20_000), 4)]);
    let mut log = EventLog::unbounded();
    log.of(1).on_event(at(1_000), Event::Retransmit { psn: 0, cause: LossCause::Timeout });
    log.of(1).on_event(at(2_000), Event::Timeout { psn: 0 });
    assert_eq!(log.drain().count(), 1);
}
