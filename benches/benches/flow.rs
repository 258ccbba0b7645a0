//! Cost of the transport per packet: of the sender (send, and handle the acknowledgement), of the
//! receiver, of both.
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::collections::VecDeque;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use spray_core::Time;
use spray_core::flow::{Arrival, FlowConfig, Receiver, Sender, Transmit};
use spray_core::path::{BalancerKind, Ev, Path};
use spray_core::rng::{self, Rng};
use spray_wire::{Ack, Data, EvPort};

const BASE_RTT_PS: u64 = 8_337_000;
const PACKET_PS: u64 = 83_000;
/// About the bandwidth-delay product of 4 KiB packets at 400 Gb/s.
const IN_FLIGHT: usize = 100;
const EVS: u32 = 65_535;

criterion_group!(benches, flow);
criterion_main!(benches);

fn flow(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("flow");
    for kind in [BalancerKind::Ops, BalancerKind::Reps] {
        group.bench_function(format!("{kind}: send and ack"), |bencher| {
            let mut connection = Connection::new(kind, 1);
            bencher.iter(|| connection.send_and_ack(black_box(false)));
        });
    }
    group.bench_function("reps: send and ack, swapped pairs", |bencher| {
        let mut connection = Connection::new(BalancerKind::Reps, 1);
        bencher.iter(|| connection.send_and_ack(black_box(true)));
    });
    for ack_every in [1, 4] {
        group.bench_function(format!("receive, an ack per {ack_every}"), |bencher| {
            let mut source = Source::new(ack_every);
            bencher.iter(|| source.receive());
        });
        group.bench_function(format!("reps: both ends, an ack per {ack_every}"), |bencher| {
            let mut connection = Connection::new(BalancerKind::Reps, ack_every);
            bencher.iter(|| connection.round_trip());
        });
    }
    group.finish();
}

fn config(kind: BalancerKind, ack_every: u32) -> FlowConfig {
    let path = Path { bdp_packets: IN_FLIGHT as u32, ..Path::new(BASE_RTT_PS, 400_000_000_000, 4150) };
    let unlimited = u64::MAX / 4;
    let config = FlowConfig::new(kind, path, 64);
    FlowConfig { window_packets: 512, ack_every, max_data_bytes: unlimited, max_message_bytes: unlimited, ..config }
}

/// A connection in its steady state: every step sends one packet, and handles the feedback for the
/// packet of 100 steps ago.
struct Connection {
    sender: Sender,
    receiver: Receiver,
    rng: Rng,
    now: Time,
    flight: VecDeque<(Data, Ev)>,
    acks: VecDeque<Ack>,
}

impl Connection {
    fn new(kind: BalancerKind, ack_every: u32) -> Self {
        let config = config(kind, ack_every);
        let mut rng = rng::stream(1, 1);
        let mut sender = Sender::new(&config, config.window_packets, config.max_data_bytes, &mut rng);
        sender.send_message(1, u64::MAX / 8).expect("an empty queue");
        let receiver = Receiver::new(&config);
        let (flight, acks) = Default::default();
        let mut connection = Self { sender, receiver, rng, now: Time::ZERO, flight, acks };
        (0..IN_FLIGHT).for_each(|_| connection.send());
        connection
    }

    #[inline]
    fn send(&mut self) {
        self.now = self.now.after(PACKET_PS);
        match self.sender.poll_transmit(self.now, &mut self.rng, &mut ()) {
            Some(Transmit::Data { data, ev }) => self.flight.push_back((data, ev)),
            Some(Transmit::Probe { .. } | Transmit::PullRequest { .. }) | None => {}
        }
    }

    /// Builds the ACK without a receiver, so that only the sender is measured.
    #[inline]
    fn send_and_ack(&mut self, swapped: bool) {
        self.send();
        let at = usize::from(swapped && self.sender.next_psn().is_multiple_of(2));
        let Some((data, ev)) = self.flight.remove(at) else { return };
        let first = self.flight.front().map_or(data.psn + 1, |(next, _)| next.psn.min(data.psn + 1));
        let ack = Ack {
            cumulative: first,
            timestamp_echo: data.timestamp,
            sack_base: first,
            bitmap: [if first < data.psn { 2 } else { 0 }, 0, 0, 0],
            port: ev.port(EVS),
            hops: 3,
            packets: 1,
            max_data: u64::MAX / 4,
            ..Ack::default()
        };
        self.sender.on_ack(self.now, black_box(&ack), &mut ());
        black_box(self.sender.poll_timeout());
    }

    #[inline]
    fn round_trip(&mut self) {
        self.send();
        if let Some((data, ev)) = self.flight.pop_front() {
            let arrival = Arrival { data, port: ev.port(EVS), hops: 3, ..Arrival::default() };
            black_box(self.receiver.on_data(self.now, black_box(&arrival)));
        }
        while let Some(ack) = self.receiver.poll_ack() {
            self.acks.push_back(ack);
        }
        while let Some(ack) = self.acks.pop_front() {
            self.sender.on_ack(self.now, black_box(&ack), &mut ());
        }
        black_box((self.sender.poll_timeout(), self.receiver.poll_timeout()));
    }
}

/// A receiver of one long message in order.
struct Source {
    receiver: Receiver,
    data: Data,
}

impl Source {
    fn new(ack_every: u32) -> Self {
        let data = Data { message_bytes: u64::MAX / 8, payload_bytes: 4086, ..Data::default() };
        Self { receiver: Receiver::new(&config(BalancerKind::Ops, ack_every)), data }
    }

    #[inline]
    fn receive(&mut self) {
        let arrival = Arrival { data: self.data, port: EvPort::new(77), hops: 3, ..Arrival::default() };
        black_box(self.receiver.on_data(self.data.timestamp, black_box(&arrival)));
        black_box(self.receiver.poll_ack());
        self.data.psn += 1;
        self.data.offset += 4086;
        self.data.timestamp = self.data.timestamp.after(PACKET_PS);
    }
}
