//! A pair of endpoints over an in-memory network, and the same frames without endpoints.
//!
//! The difference of `endpoints` and `frames_only` is the cost of connections, path selection,
//! congestion control and acknowledgements per data packet, for both sides together. Both include
//! copies and checksums.
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::{hint::black_box, net::IpAddr, time::Duration};

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use spray_core::{
    flow::FlowConfig,
    path::{BalancerKind, Path},
};
use spray_nic::{
    Endpoint, EndpointConfig, EndpointEvent, Peer, Time,
    device::{Device, MemoryConfig, MemoryDevice, MemoryNetwork, Received},
};
use spray_wire::{Body, Common, Data, Ecn, Envelope, EvPort, Kind, emit, header_bytes, parse};

const PAYLOAD: u32 = 3000;
const PACKETS: u64 = 1000;
const RTT_PS: u64 = 100_000_000;
const LINK_BPS: u64 = 100_000_000_000;

fn host(number: u8) -> Peer {
    Peer { address: IpAddr::from([10, 0, 0, number]), mac: [2, 0, 0, 0, 0, number] }
}

fn flow(ack_every: u32) -> FlowConfig {
    let header = header_bytes(false, Kind::Data) as u32;
    let path = Path { bdp_packets: 400, ..Path::new(RTT_PS, LINK_BPS, PAYLOAD + header) };
    FlowConfig { ack_every, ..FlowConfig::new(BalancerKind::Reps, path, header) }
}

struct Pair {
    sender: Endpoint<MemoryDevice>,
    receiver: Endpoint<MemoryDevice>,
    now: Time,
}

impl Pair {
    fn new(ack_every: u32) -> Self {
        let network = MemoryNetwork::new(MemoryConfig { frames: 2048, ..MemoryConfig::default() });
        let make = |number| {
            let Peer { address, mac } = host(number);
            let config = EndpointConfig::new(address, mac, flow(ack_every));
            Endpoint::new(network.attach(mac), config).expect("a valid configuration")
        };
        Self { sender: make(1), receiver: make(2), now: Time::ZERO }
    }

    /// Polls both sides once, 1 us later.
    fn step(&mut self) -> Option<EndpointEvent> {
        self.now = self.now.after(1_000_000);
        self.sender.poll(self.now);
        self.receiver.poll(self.now);
        while self.receiver.poll_event().is_some() {}
        self.sender.poll_event()
    }

    fn transfer(&mut self, connection: spray_nic::ConnectionId, data: &Bytes) {
        self.sender.send(connection, data.clone()).expect("an empty queue");
        while !matches!(self.step(), Some(EndpointEvent::Delivered { .. })) {}
    }
}

fn endpoints(criterion: &mut Criterion) {
    let data = Bytes::from(vec![7; PAYLOAD as usize * PACKETS as usize]);
    let mut group = criterion.benchmark_group("endpoints");
    group.throughput(Throughput::Elements(PACKETS));
    for (name, ack_every) in [("ack_every_1", 1), ("ack_every_4", 4)] {
        let mut pair = Pair::new(ack_every);
        let connection = pair.sender.connect(Time::ZERO, host(2), None).expect("a free slot");
        while !matches!(pair.step(), Some(EndpointEvent::Connected { .. })) {}
        group.bench_function(name, |bencher| bencher.iter(|| pair.transfer(connection, &data)));
    }
    group.bench_function("frames_only", |bencher| {
        let mut bare = Bare::new();
        bencher.iter(|| bare.transfer(&data));
    });
    group.bench_function("idle_poll", |bencher| {
        let mut pair = Pair::new(1);
        bencher.iter(|| black_box(pair.sender.poll(Time::from_ns(1))));
    });
    group.finish();
}

/// The same frames without a transport: written, carried, parsed and copied out, each answered by a
/// small frame.
struct Bare {
    sender: MemoryDevice,
    receiver: MemoryDevice,
    arrivals: Vec<Received>,
    sink: Vec<u8>,
}

impl Bare {
    fn new() -> Self {
        let network = MemoryNetwork::new(MemoryConfig { frames: 2048, ..MemoryConfig::default() });
        let (sender, receiver) = (network.attach(host(1).mac), network.attach(host(2).mac));
        Self { sender, receiver, arrivals: Vec::with_capacity(64), sink: vec![0; PAYLOAD as usize] }
    }

    fn transfer(&mut self, data: &Bytes) {
        let mut chunks = data.chunks(PAYLOAD as usize);
        let mut psn = 0;
        while psn < PACKETS {
            for payload in chunks.by_ref().take(64) {
                let body = Body::Data(Data { psn, payload_bytes: PAYLOAD as u16, ..Data::default() });
                send(&mut self.sender, 1, 2, &body, payload);
                psn += 1;
            }
            self.sender.flush().expect("memory");
            let arrived = self.receiver.receive(&mut self.arrivals, 64).expect("memory");
            for arrival in self.arrivals.drain(..) {
                let bytes = self.receiver.frame(&arrival.frame, arrival.len);
                let frame = parse(bytes, spray_wire::Ports::DEFAULT).expect("sound").expect("ours");
                self.sink.copy_from_slice(frame.payload);
                self.receiver.release(arrival.frame);
            }
            for _ in 0..arrived {
                send(&mut self.receiver, 2, 1, &Body::Ack(Default::default()), &[]);
            }
            self.receiver.flush().expect("memory");
            self.sender.receive(&mut self.arrivals, 64).expect("memory");
            for arrival in self.arrivals.drain(..) {
                black_box(parse(self.sender.frame(&arrival.frame, arrival.len), spray_wire::Ports::DEFAULT).is_ok());
                self.sender.release(arrival.frame);
            }
            self.sender.flush().expect("memory");
        }
    }
}

fn send(device: &mut MemoryDevice, from: u8, to: u8, body: &Body, payload: &[u8]) {
    let (from, to) = (host(from), host(to));
    let envelope = Envelope {
        src_mac: from.mac,
        dst_mac: to.mac,
        src: from.address,
        dst: to.address,
        src_port: EvPort::new(50_000),
        dst_port: spray_wire::Ports::DEFAULT.first(),
        dscp: 10,
        ecn: Ecn::Ect0,
        ttl: 64,
    };
    let frame = device.allocate().expect("a free frame");
    let bytes =
        emit(device.frame_mut(&frame), &envelope, &Common::default(), body, payload).expect("a large enough frame");
    device.transmit(frame, bytes as u32).expect("room");
}

fn small(criterion: &mut Criterion) {
    // Messages of 60 bytes show the cost per message.
    let mut pair = Pair::new(1);
    let connection = pair.sender.connect(Time::ZERO, host(2), None).expect("a free slot");
    while !matches!(pair.step(), Some(EndpointEvent::Connected { .. })) {}
    criterion.bench_function("endpoints/message_of_60_bytes", |bencher| {
        bencher.iter_batched(
            || Bytes::from_static(&[7; 60]),
            |data| pair.transfer(connection, &data),
            BatchSize::SmallInput,
        );
    });
}

/// Either end separately, as in `spray bench transport`.
fn ends(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("transport");
    for (name, payload_bytes, in_place) in
        [("3400_bytes", 3400, false), ("3400_bytes_in_place", 3400, true), ("64_bytes", 64, false)]
    {
        let mut pair =
            spray_benches::Pair::new(&spray_benches::Load { in_place, ..spray_benches::Load::new(payload_bytes, 4) });
        for end in ["sender", "receiver"] {
            let pick = |ends: spray_benches::EndCosts| if end == "sender" { ends.sender_ns } else { ends.receiver_ns };
            group.bench_function(format!("{end}/{name}"), |bencher| {
                bencher.iter_custom(|packets| Duration::from_nanos((pick(pair.run(packets)) * packets as f64) as u64));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, endpoints, small, ends);
criterion_main!(benches);
