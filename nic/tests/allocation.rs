//! Checks with a counting allocator that nothing is allocated per packet while frames are built,
//! parsed, acknowledged, lost and retransmitted.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod counting;

use std::net::{IpAddr, Ipv4Addr};

use rand_core::RngCore;
use spray_core::Time;
use spray_core::flow::{Arrival, FlowConfig, Receiver, Sender, SenderEvent, Transmit};
use spray_core::path::{BalancerKind, Path};
use spray_core::rng::{self, Rng};
use spray_wire::{self as wire, Body, Common, Ecn, Envelope};

use counting::{Counting, counts};

#[global_allocator]
static COUNTING: Counting = Counting;

const PAYLOAD: usize = 3000;
const EVS: u32 = 65_535;
const MESSAGE: u64 = 100 * PAYLOAD as u64;
const STEP_PS: u64 = 250_000;
/// The maximum number of frames in flight, whose buffers are allocated beforehand.
const SLOTS: usize = 64;

/// Both ends of a connection, connected by a delay line of whole frames.
struct Pair {
    sender: Sender,
    receiver: Receiver,
    rng: Rng,
    line: Vec<([u8; 4096], usize)>,
    now: Time,
    messages: u32,
    delivered: u32,
}

impl Pair {
    fn new(balancer: BalancerKind) -> Self {
        let base_rtt_ps = 2 * SLOTS as u64 * STEP_PS;
        let known = Path::new(base_rtt_ps, 100_000_000_000, PAYLOAD as u32 + 114);
        let path = Path { trimming: true, bdp_packets: SLOTS as u32, ..known };
        let config = FlowConfig { max_data_bytes: 1 << 50, ..FlowConfig::new(balancer, path, 114) };
        let mut rng = rng::stream(5, 5);
        let sender = Sender::new(&config, config.window_packets, config.max_data_bytes, &mut rng);
        let receiver = Receiver::new(&config);
        Self { sender, receiver, rng, line: vec![([0; 4096], 0); SLOTS], now: Time::ZERO, messages: 0, delivered: 0 }
    }

    fn step(&mut self, number: usize) {
        self.now = self.now.after(STEP_PS);
        while self.messages < self.delivered + 4 && self.sender.send_message(self.messages, MESSAGE).is_ok() {
            self.messages += 1;
        }
        if self.sender.poll_timeout().is_some_and(|due| due <= self.now) {
            self.sender.on_timeout(self.now, &mut ());
        }
        while let Some(event) = self.sender.poll_event() {
            match event {
                SenderEvent::MessageDelivered { .. } => self.delivered += 1,
                SenderEvent::Failed => panic!("the line loses only one frame in twenty"),
            }
        }
        self.receiver.on_timeout(self.now);
        let slot = number % SLOTS;
        self.arrive(slot);
        self.line[slot].1 = 0;
        if let Some(Transmit::Data { data, ev }) = self.sender.poll_transmit(self.now, &mut self.rng, &mut ()) {
            let port = ev.port(EVS);
            if !self.rng.next_u32().is_multiple_of(20) {
                self.line[slot].1 = emit(&mut self.line[slot].0, port, &Body::Data(data), &[7; PAYLOAD]);
            }
        }
    }

    /// Delivers the frame of a slot to the receiver and its ACK, also as a frame, to the sender.
    fn arrive(&mut self, slot: usize) {
        let (frame, length) = &self.line[slot];
        let Some(frame) = wire::parse(&frame[..*length], spray_wire::Ports::DEFAULT).expect("nothing is corrupt")
        else {
            return;
        };
        let Body::Data(data) = frame.body else { panic!("only data is on the line") };
        let marked = self.rng.next_u32().is_multiple_of(8);
        let port = frame.envelope.src_port;
        let arrival = Arrival { data, port, marked, hops: 3, ..Arrival::default() };
        self.receiver.on_data(self.now, &arrival);
        while let Some((_, bytes)) = self.receiver.message_completed() {
            self.receiver.consumed(bytes);
        }
        let mut bytes = [0; 256];
        while let Some(ack) = self.receiver.poll_ack() {
            let length = emit(&mut bytes, port, &Body::Ack(ack), &[]);
            let back = wire::parse(&bytes[..length], spray_wire::Ports::DEFAULT).expect("as built").expect("ours");
            let Body::Ack(ack) = back.body else { panic!("an ACK comes back as one") };
            self.sender.on_ack(self.now, &ack, &mut ());
        }
    }
}

fn emit(out: &mut [u8], port: wire::EvPort, body: &Body, payload: &[u8]) -> usize {
    let [src, dst] = [1, 2].map(|host| IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)));
    let envelope = Envelope {
        src_mac: [2; 6],
        dst_mac: [4; 6],
        src,
        dst,
        src_port: port,
        dst_port: spray_wire::Ports::DEFAULT.first(),
        dscp: wire::DSCP_DATA,
        ecn: Ecn::Ect0,
        ttl: wire::INITIAL_TTL,
    };
    let payload = if let Body::Data(data) = body { &payload[..usize::from(data.payload_bytes)] } else { payload };
    wire::emit(out, &envelope, &Common::default(), body, payload).expect("the buffer is large enough")
}

#[test]
fn nothing_is_allocated_per_packet() {
    for balancer in BalancerKind::ALL {
        let mut pair = Pair::new(balancer);
        (0..2_000).for_each(|number| pair.step(number));
        let before = counts();
        (2_000..100_000).for_each(|number| pair.step(number));
        let after = counts();
        // Tables double when more packets or messages than ever before are in flight or open.
        let (allocations, more_bytes) = (after.allocations - before.allocations, after.live_bytes - before.live_bytes);
        assert!(allocations <= 16, "{balancer}: {allocations} in 98,000 steps, {more_bytes} bytes");
        let stats = pair.sender.stats();
        assert!(pair.delivered > 100 && stats.retransmits > 500, "{balancer}: {} messages, {stats:?}", pair.delivered);
    }
}
