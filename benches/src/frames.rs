//! Frames without a transport: cost of devices, copies, checksums and headers.

use std::hint::black_box;

use spray_wire::{
    Ack, Body, Common, DSCP_DATA, Data, Ecn, Envelope, EvPort, INITIAL_TTL, Kind, Ports, emit, header_bytes, parse,
    xxh3,
};

use super::{BATCH, End, EndCosts, Load, Stopwatch, host, network};
use spray_nic::device::{Device, FrameId, MemoryDevice, Received};

/// The work on each frame. Each rung adds one thing to the previous rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Frames of the right length in one direction, and shorter ones back.
    Device,
    /// The payload is copied into and out of the frame.
    Copying,
    /// Both ends compute the checksum of the payload.
    Checksum,
    /// Data frames and ACKs are built, and parsed with all checks.
    Headers,
}

/// Two devices and the work of a rung.
#[derive(Debug)]
pub struct Frames {
    layer: Layer,
    ack_every: usize,
    sender: MemoryDevice,
    receiver: MemoryDevice,
    arrivals: Vec<Received>,
    payload_bytes: usize,
    message: Vec<u8>,
    received: Vec<u8>,
    /// Offset of the next payload to send.
    at: usize,
    /// Offset of the next payload to receive.
    place: usize,
}

const HEADERS: usize = header_bytes(false, Kind::Data);

impl Frames {
    /// Creates the devices and a message.
    #[must_use]
    pub fn new(load: &Load, layer: Layer) -> Self {
        let network = network();
        Self {
            layer,
            ack_every: load.ack_every as usize,
            sender: network.attach(host(1).mac),
            receiver: network.attach(host(2).mac),
            arrivals: Vec::with_capacity(BATCH),
            payload_bytes: load.payload_bytes as usize,
            message: vec![7; load.message_bytes()],
            received: vec![0; load.message_bytes()],
            at: 0,
            place: 0,
        }
    }

    /// Sends at least `packets` packets; returns the cost per packet.
    pub fn run(&mut self, packets: u64) -> EndCosts {
        let mut watch = Stopwatch::start();
        let batches = packets.div_ceil(BATCH as u64);
        for _ in 0..batches {
            self.send_data();
            watch.lap(End::Sender);
            self.receive_data();
            watch.lap(End::Receiver);
            self.receive_acks();
            watch.lap(End::Sender);
        }
        watch.per_packet(batches * BATCH as u64)
    }

    fn send_data(&mut self) {
        for _ in 0..BATCH {
            let payload = &self.message[self.at..self.at + self.payload_bytes];
            self.at = next(self.at, self.payload_bytes, self.message.len());
            let body = Body::Data(Data { payload_bytes: payload.len() as u16, ..Data::default() });
            send(&mut self.sender, self.layer, &envelope(1, 2), &body, payload);
        }
        self.sender.flush().expect("a memory device does not fail");
    }

    fn receive_data(&mut self) {
        take(&mut self.receiver, &mut self.arrivals);
        for (count, Received { frame, len, .. }) in (1..).zip(self.arrivals.drain(..)) {
            let bytes = self.receiver.frame(&frame, len);
            let place = &mut self.received[self.place..self.place + self.payload_bytes];
            self.place = next(self.place, self.payload_bytes, self.message.len());
            match self.layer {
                Layer::Device => drop(black_box(bytes[0])),
                Layer::Copying => place.copy_from_slice(&bytes[HEADERS..]),
                Layer::Checksum => {
                    black_box(xxh3(&bytes[HEADERS..]));
                    place.copy_from_slice(&bytes[HEADERS..]);
                }
                Layer::Headers => {
                    let frame = parse(bytes, Ports::DEFAULT).expect("a valid frame").expect("ours");
                    black_box(&frame.body);
                    place.copy_from_slice(frame.payload);
                }
            }
            self.receiver.release(frame);
            if count % self.ack_every == 0 {
                send(&mut self.receiver, self.layer, &envelope(2, 1), &Body::Ack(Ack::default()), &[]);
            }
        }
        self.receiver.flush().expect("a memory device does not fail");
    }

    fn receive_acks(&mut self) {
        take(&mut self.sender, &mut self.arrivals);
        for Received { frame, len, .. } in self.arrivals.drain(..) {
            let bytes = self.sender.frame(&frame, len);
            match self.layer {
                Layer::Device | Layer::Copying | Layer::Checksum => drop(black_box(bytes[0])),
                Layer::Headers => drop(black_box(parse(bytes, Ports::DEFAULT).is_ok())),
            }
            self.sender.release(frame);
        }
    }
}

fn next(at: usize, payload_bytes: usize, message_bytes: usize) -> usize {
    let next = at + payload_bytes;
    if next + payload_bytes > message_bytes { 0 } else { next }
}

fn take(device: &mut MemoryDevice, arrivals: &mut Vec<Received>) {
    device.receive(arrivals, BATCH).expect("a memory device does not fail");
}

fn send(device: &mut MemoryDevice, layer: Layer, envelope: &Envelope, body: &Body, payload: &[u8]) {
    let frame: FrameId = device.allocate().expect("all came back");
    let bytes = device.frame_mut(&frame);
    let len = body.header_bytes(false) + payload.len();
    if layer < Layer::Headers {
        bytes[..6].copy_from_slice(&envelope.dst_mac);
    }
    if layer == Layer::Copying || layer == Layer::Checksum {
        bytes[len - payload.len()..len].copy_from_slice(payload);
    }
    if layer == Layer::Checksum && !payload.is_empty() {
        black_box(xxh3(&bytes[len - payload.len()..len]));
    }
    if layer == Layer::Headers {
        emit(bytes, envelope, &Common::default(), body, payload).expect("it fits");
    }
    device.transmit(frame, len as u32).expect("the ring is empty");
}

fn envelope(from: u16, to: u16) -> Envelope {
    let (from, to) = (host(from), host(to));
    Envelope {
        src_mac: from.mac,
        dst_mac: to.mac,
        src: from.address,
        dst: to.address,
        src_port: EvPort::new(50_000),
        dst_port: Ports::DEFAULT.first(),
        dscp: DSCP_DATA,
        ecn: Ecn::Ect0,
        ttl: INITIAL_TTL,
    }
}
