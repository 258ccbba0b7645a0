//! Two endpoints, and an adversary on the path that delays, drops, duplicates, reorders, trims and
//! modifies frames, and forges frames with the numbers and cookies that it has seen.

use bytes::Bytes;
use spray_core::flow::FlowConfig;
use spray_core::path::{BalancerKind, Path};
use spray_nic::device::{Device, DeviceHealth, MemoryConfig, MemoryDevice, MemoryNetwork, Received};
use spray_nic::{ConnectionId, Endpoint, EndpointConfig, EndpointEvent, Peer, Time};
use spray_wire::offsets::v4;
use spray_wire::{Common, Envelope, Kind, Ports, emit, header_bytes, parse, switch_view};

use crate::hosts::{envelope, host, transmit};
use crate::input::Input;

const US: u64 = 1_000_000;
const LINK_BPS: u64 = 10_000_000_000;
const PAYLOAD: u32 = 400;
const FRAME: u32 = 2_048;
/// The number of the adversary, after the hosts 1 and 2.
const ADVERSARY: u8 = 3;
const MOST_WAITING: usize = 64;
const OPERATIONS: usize = 300;
const MESSAGE: usize = 20_000;

struct Rig {
    network: MemoryNetwork,
    endpoints: [Endpoint<MemoryDevice>; 2],
    middle: MemoryDevice,
    arrivals: Vec<Received>,
    /// Frames on the path, oldest first.
    waiting: Vec<Vec<u8>>,
    seen: Vec<Vec<u8>>,
    connections: Vec<(usize, ConnectionId)>,
    received: usize,
    now: Time,
}

/// The abilities of the adversary. Hosts without keys cannot detect modified frames.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Power {
    /// Guesses cookies, and drops, duplicates, delays and trims frames.
    Blind,
    /// Also reads and modifies frames.
    OnPath,
}

/// Input: the abilities of the adversary, then operations.
pub(crate) fn endpoint(bytes: &[u8]) {
    play(bytes);
}

/// Returns the number of messages that arrived.
fn play(bytes: &[u8]) -> usize {
    let mut input = Input(bytes);
    let choices = input.byte();
    let power = if choices & 1 == 0 { Power::Blind } else { Power::OnPath };
    let mut rig = Rig::new(choices);
    for _ in 0..OPERATIONS {
        if input.is_empty() {
            break;
        }
        rig.operate(&mut input, power);
        rig.check(power);
    }
    rig.settle(power);
    rig.received
}

impl Rig {
    fn new(choices: u8) -> Self {
        let config = MemoryConfig {
            seed: 1,
            frames: 128,
            frame_size: FRAME,
            rx_ring: 64,
            tx_ring: 64,
            ..MemoryConfig::default()
        };
        let network = MemoryNetwork::new(config);
        let endpoint = |number: u8| {
            let Peer { address, mac } = host(number);
            let balancer = [BalancerKind::Reps, BalancerKind::RepsPlus, BalancerKind::Flowcut, BalancerKind::Bitmap];
            let header = header_bytes(false, Kind::Data) as u32;
            let path = Path { evs: 64, bdp_packets: 60, ..Path::new(20 * US, LINK_BPS, PAYLOAD + header) };
            let flow = FlowConfig::new(balancer[usize::from(choices >> 2 & 3)], path, header);
            let flow = FlowConfig { window_packets: 256, ..flow };
            let config = EndpointConfig {
                max_connections: 4,
                seed: Some(u64::from(number - 1)),
                idle_timeout_ps: 5_000 * US,
                max_queued_messages: 8,
                event_log: 64,
                ..EndpointConfig::new(address, mac, flow)
            };
            Endpoint::new(network.attach(mac), config).expect("a valid configuration")
        };
        let endpoints = [endpoint(1), endpoint(2)];
        let middle = network.attach(host(ADVERSARY).mac);
        Self {
            network,
            endpoints,
            middle,
            arrivals: Vec::with_capacity(64),
            waiting: Vec::new(),
            seen: Vec::new(),
            connections: Vec::new(),
            received: 0,
            now: Time::from_ps(US),
        }
    }

    fn operate(&mut self, input: &mut Input<'_>, power: Power) {
        let operation = input.byte();
        match operation % 16 {
            0 => self.connect(input),
            1 => self.send(input),
            2 => self.pass(usize::MAX),
            3 => self.pass(1),
            4 if !self.waiting.is_empty() => {
                let place = usize::from(input.byte()) % self.waiting.len();
                let frame = self.waiting.remove(place);
                self.transmit(&frame);
            }
            5 if !self.waiting.is_empty() => {
                let place = usize::from(input.byte()) % self.waiting.len();
                self.waiting.remove(place);
            }
            6 => self.with_seen(input, |frame, _| frame),
            7 => self.with_seen(input, |mut frame, _| {
                let length = switch_view::trim(&mut frame, Ports::DEFAULT).unwrap_or(frame.len());
                frame.truncate(length);
                frame
            }),
            // Corrupts a frame, which a checksum detects.
            8 => self.with_seen(input, |mut frame, input| {
                let place = usize::from(input.u16()) % frame.len();
                frame[place] ^= input.byte();
                frame
            }),
            9 => self.forge(input, power),
            10 if power == Power::OnPath => self.change(input),
            11 => self.close(input),
            12 => {
                let length = usize::from(input.byte());
                let bytes = input.bytes(length).to_vec();
                self.transmit(&bytes);
            }
            13 => self.step(u64::from(input.u16()) * US / 10),
            14 => self.step(u64::from(input.byte()) * 100 * US),
            _ => self.step(u64::from(input.byte()) * US / 10),
        }
        self.step(0);
    }

    fn connect(&mut self, input: &mut Input<'_>) {
        let from = usize::from(input.byte() & 1);
        let to = Peer { address: host(2 - from as u8).address, ..host(ADVERSARY) };
        if let Ok(connection) = self.endpoints[from].connect(self.now, to, None) {
            self.connections.push((from, connection));
        }
    }

    fn send(&mut self, input: &mut Input<'_>) {
        let Some(place) = input.index(self.connections.len()) else { return self.connect(input) };
        let (host, connection) = self.connections[place];
        let length = 1 + usize::from(input.u16()) % MESSAGE;
        // Fails if the connection is closed, or its queue is full.
        let _ = self.endpoints[host].send(connection, content(length));
    }

    fn close(&mut self, input: &mut Input<'_>) {
        let Some(place) = input.index(self.connections.len()) else { return };
        let (host, connection) = self.connections[place];
        match input.flag() {
            true => self.endpoints[host].close(connection),
            false => self.endpoints[host].abort(connection),
        }
    }

    fn pass(&mut self, most: usize) {
        let count = most.min(self.waiting.len());
        let frames: Vec<_> = self.waiting.drain(..count).collect();
        frames.iter().for_each(|frame| self.transmit(frame));
    }

    /// Sends a modified copy of a frame that passed.
    fn with_seen(&mut self, input: &mut Input<'_>, change: impl Fn(Vec<u8>, &mut Input<'_>) -> Vec<u8>) {
        let Some(place) = input.index(self.seen.len()) else { return };
        let frame = change(self.seen[place].clone(), input);
        self.transmit(&frame);
    }

    /// Sends a forged frame; with [`Power::OnPath`] for the connection of a frame that passed.
    fn forge(&mut self, input: &mut Input<'_>, power: Power) {
        let to = input.byte() & 1;
        let mut envelope = Envelope { src: host(2 - to).address, ..envelope(host(ADVERSARY), host(1 + to)) };
        let mut common = Common { connection: input.u32(), cookie: input.u64(), ..Common::default() };
        if power == Power::OnPath
            && let Some(place) = input.index(self.seen.len())
            && let Ok(Some(frame)) = parse(&self.seen[place], Ports::DEFAULT)
        {
            (envelope, common) = (frame.envelope, frame.common);
        }
        let (body, payload) = input.body();
        let mut frame = [0; FRAME as usize];
        let length = emit(&mut frame, &envelope, &common, &body, payload).expect("it has room");
        self.transmit(&frame[..length]);
    }

    /// Modifies a byte of a frame, and its checksums accordingly.
    fn change(&mut self, input: &mut Input<'_>) {
        let Some(place) = input.index(self.seen.len()) else { return };
        let seen = self.seen[place].clone();
        let Ok(Some(frame)) = parse(&seen, Ports::DEFAULT) else { return };
        let mut payload = frame.payload.to_vec();
        if !payload.is_empty() {
            let place = usize::from(input.u16()) % payload.len();
            payload[place] ^= input.byte();
        }
        let mut common = frame.common;
        match input.byte() % 4 {
            0 => common.connection = common.connection.wrapping_add(input.u32()),
            1 => common.cookie = input.u64(),
            _ => {}
        }
        let mut changed = [0; FRAME as usize];
        if let Ok(length) = emit(&mut changed, &frame.envelope, &common, &frame.body, &payload) {
            self.transmit(&changed[..length]);
        }
    }

    fn transmit(&mut self, bytes: &[u8]) {
        transmit(&mut self.middle, bytes);
    }

    /// Advances the time, and collects frames on the path.
    fn step(&mut self, by_ps: u64) {
        self.now = self.now.after(by_ps);
        self.network.advance(self.now);
        for endpoint in &mut self.endpoints {
            endpoint.poll(self.now);
        }
        self.network.advance(self.now);
        self.middle.receive(&mut self.arrivals, 64).expect("its link is up");
        for arrival in self.arrivals.drain(..) {
            let mut frame = self.middle.frame(&arrival.frame, arrival.len).to_vec();
            self.middle.release(arrival.frame);
            // The destination is determined by the IP address, because the rest may be sealed.
            let for_second = frame.get(v4::DST..v4::UDP) == Some(&[10, 0, 0, 2]);
            frame[..6].copy_from_slice(&host(1 + u8::from(for_second)).mac);
            frame[6..12].copy_from_slice(&host(ADVERSARY).mac);
            if self.seen.len() < MOST_WAITING {
                self.seen.push(frame.clone());
            }
            self.waiting.push(frame);
        }
        // The oldest frames beyond this number are dropped.
        let surplus = self.waiting.len().saturating_sub(4 * MOST_WAITING);
        self.waiting.drain(..surplus);
        self.middle.flush().expect("its link is up");
    }

    /// Checks the invariants after every operation.
    fn check(&mut self, power: Power) {
        for endpoint in &mut self.endpoints {
            while let Some(event) = endpoint.poll_event() {
                if let EndpointEvent::Received { data, .. } = event {
                    self.received += 1;
                    let is_sound = data.len() <= MESSAGE && data == content(data.len());
                    assert!(power == Power::OnPath || is_sound, "{} bytes that no host sent", data.len());
                }
            }
            assert!(endpoint.connections() <= 4);
            endpoint.drain_log().for_each(drop);
        }
    }

    /// Ends the attack: every connection must end, and every frame must be accounted for.
    fn settle(&mut self, power: Power) {
        for (host, connection) in std::mem::take(&mut self.connections) {
            self.endpoints[host].close(connection);
        }
        for _ in 0..200 {
            self.pass(usize::MAX);
            self.step(50 * US);
            self.check(power);
        }
        for endpoint in &self.endpoints {
            endpoint.device().audit().unwrap_or_else(|error| panic!("{error}"));
        }
        self.network.audit().unwrap_or_else(|error| panic!("{error}"));
    }
}

fn content(length: usize) -> Bytes {
    (0..length).map(|at| (at.wrapping_mul(31) ^ at >> 8 ^ length) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without this test the targets would also pass if the hosts never received anything.
    #[test]
    fn a_message_arrives_if_the_adversary_forwards_it() {
        const PASS: [u8; 3] = [2, 15, 50];
        for choices in 0..16 {
            let begin = [[choices, 0, 0].as_slice(), &PASS.repeat(8)].concat();
            let message = [[1, 0, 200, 2].as_slice(), &PASS.repeat(40)].concat();
            assert_eq!(play(&[begin, message].concat()), 1, "{choices}");
        }
    }
}
