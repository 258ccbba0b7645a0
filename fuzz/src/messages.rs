//! An endpoint and a hostile peer with repeated packet numbers and missing parts, while messages
//! are read late. A message must contain only what its packets wrote.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use spray_nic::device::{Device, MemoryConfig, MemoryDevice, MemoryNetwork, Received};
use spray_nic::{Endpoint, EndpointConfig, EndpointEvent, Peer, Time};
use spray_wire::{Body, Common, Data, Ports, Probe, Terms, emit, parse};

use crate::hosts::{envelope, host, transmit};
use crate::input::Input;

const US: u64 = 1_000_000;
const FRAME: usize = 2_048;
const OPERATIONS: usize = 200;
/// Content of the honest peer's messages, and of no other.
const SECRET: u8 = 0xff;
/// Packet payload and packet count of messages. Long ones use pages that are reused.
const SHAPES: [(u16, u64); 8] =
    [(1_380, 60), (1_000, 70), (100, 5), (1, 3), (1_380, 1), (700, 2), (1_380, 800), (5, 13_000)];
/// The number of the hostile peer, after the endpoint and the honest peer.
const PEER: u8 = 3;

struct Rig {
    network: MemoryNetwork,
    endpoint: Endpoint<MemoryDevice>,
    honest: Endpoint<MemoryDevice>,
    peer: MemoryDevice,
    arrivals: Vec<Received>,
    now: Time,
    connection: (u32, u64),
    /// Begin, end and content of the packets sent per message.
    sent: HashMap<u32, Vec<(u64, u64, u8)>>,
    taken: HashSet<u32>,
}

/// Input: packets of the peer, and the times at which messages are read.
pub(crate) fn messages(bytes: &[u8]) {
    play(bytes);
}

/// Returns the number of the peer's messages that were read.
fn play(bytes: &[u8]) -> usize {
    let mut input = Input(bytes);
    let mut rig = Rig::new();
    let honest = rig.honest.connect(rig.now, host(1), None).expect("a free slot");
    for number in 0..OPERATIONS {
        if input.is_empty() {
            break;
        }
        match input.byte() % 8 {
            0 => rig.take(usize::from(input.byte() % 4)),
            1 => {
                // Fails if the queue is full.
                let _ = rig.honest.send(honest, Bytes::from(vec![SECRET; 84_000]));
            }
            2 => {
                rig.pass(u64::from(input.byte()) * US);
            }
            _ => rig.send(&mut input, 1 + (number % 250) as u8),
        }
    }
    rig.take(usize::MAX);
    rig.taken.len()
}

impl Rig {
    fn new() -> Self {
        let network = MemoryNetwork::new(MemoryConfig { seed: 1, frame_size: FRAME as u32, ..MemoryConfig::default() });
        let endpoint = |number: u8| {
            let Peer { address, mac } = host(number);
            let config = EndpointConfig::real(address, mac, 1500).expect("a sound MTU").with_max_message(2 << 20);
            let config = EndpointConfig { seed: Some(number.into()), max_connections: 4, ..config };
            Endpoint::new(network.attach(mac), config).expect("a sound configuration")
        };
        let mut rig = Self {
            endpoint: endpoint(1),
            honest: endpoint(2),
            peer: network.attach(host(PEER).mac),
            network,
            arrivals: Vec::with_capacity(256),
            now: Time::ZERO,
            connection: (0, 0),
            sent: HashMap::new(),
            taken: HashSet::new(),
        };
        rig.connect();
        rig
    }

    fn connect(&mut self) {
        let terms = Terms {
            connection: 1,
            cookie: 7,
            window_packets: 8192,
            max_payload: 1_380,
            max_data: 1 << 20,
            ack_every: 1,
            exchange_bytes: 0,
            token: [0; 16],
        };
        let answer = self.transmit(&Body::Connect(terms), &[]);
        let Some(Body::Retry(retry)) = answer else { panic!("{answer:?}") };
        let answer = self.transmit(&Body::Connect(Terms { token: retry.token, ..terms }), &[]);
        let Some(Body::Accept(accept)) = answer else { panic!("{answer:?}") };
        self.connection = (accept.connection, accept.cookie);
        self.transmit(&Body::Probe(Probe { token: 1, timestamp: Time::ZERO }), &[]);
    }

    /// Sends a frame of the peer. Returns the first answer.
    fn transmit(&mut self, body: &Body, payload: &[u8]) -> Option<Body> {
        let (connection, cookie) = self.connection;
        let common = Common { connection, cookie, ..Common::default() };
        let mut frame = [0; FRAME];
        let length = emit(&mut frame, &envelope(host(PEER), host(1)), &common, body, payload).expect("it has room");
        transmit(&mut self.peer, &frame[..length]);
        self.pass(10 * US)
    }

    /// Advances the time. Returns the first frame that arrives at the peer.
    fn pass(&mut self, by_ps: u64) -> Option<Body> {
        self.now = self.now.after(by_ps);
        for _ in 0..2 {
            self.network.advance(self.now);
            self.endpoint.poll(self.now);
            self.honest.poll(self.now);
        }
        self.network.advance(self.now);
        while self.honest.poll_event().is_some() {}
        self.peer.receive(&mut self.arrivals, 256).expect("its link is up");
        let mut first = None;
        for arrival in self.arrivals.drain(..) {
            let frame = parse(self.peer.frame(&arrival.frame, arrival.len), Ports::DEFAULT).expect("not corrupt");
            first = first.or(frame.map(|frame| frame.body));
            self.peer.release(arrival.frame);
        }
        self.peer.flush().expect("its link is up");
        first
    }

    /// Sends packets of a message, with packet numbers of the peer's choice.
    fn send(&mut self, input: &mut Input<'_>, byte: u8) {
        let message = if input.byte() < 240 { u32::from(input.byte() % 12) } else { input.u32() };
        let (payload, packets) = SHAPES[usize::from(input.byte() % 8)];
        let first = u64::from(input.byte()) * 16;
        let choice = input.byte();
        let (from, count) = match choice % 4 {
            0 => (0, packets),
            1 => (0, packets - 1),
            2 => (packets - 1, 1),
            _ => (u64::from(input.u16()) % packets, 1 + u64::from(input.byte() % 32)),
        };
        // The last packet may be shorter.
        let message_bytes = packets * u64::from(payload) - u64::from(choice >> 7 & u8::from(payload > 1));
        for packet in from..(from + count.min(100)).min(packets) {
            let offset = packet * u64::from(payload);
            let bytes = (message_bytes - offset).min(payload.into());
            let data = Data {
                psn: first + packet,
                message,
                offset,
                message_bytes,
                payload_bytes: bytes as u16,
                ..Data::default()
            };
            self.sent.entry(message).or_default().push((offset, offset + bytes, byte));
            self.transmit(&Body::Data(data), &vec![byte; bytes as usize]);
        }
    }

    /// Reads events, and checks messages.
    fn take(&mut self, most: usize) {
        for _ in 0..most {
            let Some(event) = self.endpoint.poll_event() else { break };
            let EndpointEvent::Received { connection, message, data, .. } = event else { continue };
            if connection.raw() != self.connection.0 {
                assert!(data.iter().all(|byte| *byte == SECRET), "the honest peer's message");
                continue;
            }
            assert!(self.taken.insert(message.0), "message {} is received twice", message.0);
            let mut is_sent = vec![false; data.len()];
            for (from, until, byte) in self.sent.get(&message.0).into_iter().flatten() {
                let places = data.iter().zip(&mut is_sent).take(*until as usize).skip(*from as usize);
                places.for_each(|(found, is_sent)| *is_sent |= found == byte);
            }
            assert!(is_sent.iter().all(|sent| *sent), "message {} has bytes that were not sent", message.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages are received, including those with a reused number.
    #[test]
    fn messages_arrive() {
        let whole = |message: u8, shape: u8, first: u8| [3, 0, message, shape, first, 0];
        assert_eq!(play(&[whole(0, 0, 0), whole(1, 2, 4)].concat()), 2);
        assert_eq!(play(&[whole(0, 0, 0), whole(0, 0, 4), whole(1, 3, 8)].concat()), 2);
        assert_eq!(play(&[&[0, 1][..], &whole(0, 4, 0)].concat()), 1);
    }
}
