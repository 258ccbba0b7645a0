//! Cost of path selection per packet, for every balancer: selecting an entropy value, and handling
//! the acknowledgement that echoes it.
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use rand_core::RngCore;
use spray_core::Time;
use spray_core::cc::CcKind;
use spray_core::path::{
    AckInfo, Admission, AnyBalancer, Balancer, BalancerConfig, BalancerKind, CustomBalancer, Ev, LossCause, LossInfo,
    MakeBalancer, PacketInfo, Path, Reps, RepsConfig, Scheme, SendInfo,
};
use spray_core::rng;
use spray_core::units::Micros;

const BASE_RTT_PS: u64 = 8_337_000;
const PACKET_PS: u64 = 83_000;
const PACKET_BYTES: u32 = 4_150;
/// Packets in flight: one bandwidth-delay product.
const WINDOW: u64 = 100;
/// Slots of the ring of packets; more than the window.
const SLOTS: usize = 128;
/// One in this many packets is marked.
const MARKED_OF: u64 = 16;

criterion_group!(benches, path);
criterion_main!(benches);

fn path(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("path");
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    for kind in BalancerKind::ALL {
        group.bench_function(kind.name(), |bencher| {
            let mut connection = Connection::new(kind);
            (0..10_000).for_each(|_| connection.step());
            bencher.iter(|| connection.step());
        });
    }
    group.bench_function("reps, of another crate", |bencher| {
        let make: &MakeBalancer = &|path, rng| Box::new(Reps::make(&RepsConfig::default(), path, rng));
        let mut connection = Connection::new(CustomBalancer { name: "reps", make });
        (0..10_000).for_each(|_| connection.step());
        bencher.iter(|| connection.step());
    });
    group.bench_function("reps, frozen", |bencher| {
        let mut connection = Connection::frozen();
        bencher.iter(|| connection.step());
    });
    group.finish();
}

/// A connection with a window in flight. In each step the feedback for one packet arrives, and one
/// packet is sent if the balancer allows it.
struct Connection {
    balancer: AnyBalancer,
    path: Path,
    rng: rng::Rng,
    step: u64,
    next_psn: u64,
    in_flight: u64,
    /// The packet sent in each step, indexed by the step modulo the number of slots.
    sent: [Option<PacketInfo>; SLOTS],
    /// Round-trip times of packets in turn: up to a third above the base.
    rtts_ps: [u64; SLOTS],
}

impl Connection {
    fn new(balancer: impl Into<BalancerConfig>) -> Self {
        let (balancer, mut rng) = (balancer.into(), rng::stream(1, 1));
        let path = Path { bdp_packets: WINDOW as u32, ..Path::new(BASE_RTT_PS, 400_000_000_000, PACKET_BYTES) };
        let mut balancer = AnyBalancer::new(&balancer, &path, &mut rng);
        balancer.on_control(&CcKind::Dctcp.into(), &path);
        balancer.on_reachable(path.at(Time::ZERO), &[1, 2, 3, 4, 5, 6, 7, 8].map(|ev| [Ev::new(ev); 8]));
        let rtts_ps = std::array::from_fn(|_| BASE_RTT_PS + rng.next_u64() % (BASE_RTT_PS / 3));
        Self { balancer, path, rng, step: 0, next_psn: 0, in_flight: 0, sent: [None; SLOTS], rtts_ps }
    }

    fn frozen() -> Self {
        // Longer than any run, so that the connection stays frozen.
        let reps = RepsConfig { freezing_timeout_us: Some(Micros::new(1_000_000_000)), ..RepsConfig::default() };
        let mut connection = Self::new(BalancerConfig::Reps(reps));
        (0..10_000).for_each(|_| connection.step());
        let (ev, bytes) = (Ev::new(9), PACKET_BYTES);
        let loss = LossInfo { ev, bytes, cause: LossCause::Timeout, ..LossInfo::default() };
        connection.balancer.on_loss(connection.path.at(connection.now()), &loss, &mut ());
        connection
    }

    fn now(&self) -> Time {
        Time::from_ps(self.step * PACKET_PS)
    }

    fn step(&mut self) {
        self.step += 1;
        if let Some(packet) = self.sent[(self.step.wrapping_sub(WINDOW)) as usize % SLOTS].take() {
            self.ack(&packet);
        }
        let sent = self.send();
        self.sent[self.step as usize % SLOTS] = sent;
    }

    fn send(&mut self) -> Option<PacketInfo> {
        let now = self.now();
        let packet = SendInfo {
            psn: self.next_psn,
            bytes: PACKET_BYTES,
            retransmit: false,
            in_flight_bytes: self.in_flight * u64::from(PACKET_BYTES),
            unacked_packets: self.in_flight,
            unsent_bytes: 1 << 30,
        };
        let _ = black_box(self.balancer.poll_probe(self.path.at(now)));
        if self.balancer.admit(self.path.at(now), black_box(&packet)) == Admission::Wait {
            return None;
        }
        let ev: Ev = self.balancer.next_ev(self.path.at(now), black_box(&packet), &mut self.rng);
        self.next_psn += 1;
        self.in_flight += 1;
        Some(PacketInfo {
            psn: packet.psn,
            ev: black_box(ev),
            bytes: PACKET_BYTES,
            sent_at: now,
            was_lost: false,
            reported: true,
        })
    }

    fn ack(&mut self, packet: &PacketInfo) {
        self.in_flight -= 1;
        let now = self.now();
        if self.balancer.features().packet_feedback {
            self.balancer.on_packet_acked(self.path.at(now), black_box(packet));
        }
        let marked = packet.psn.is_multiple_of(MARKED_OF);
        let ack = AckInfo {
            ev: packet.ev,
            marked,
            packets: 1,
            marked_packets: u16::from(marked),
            bytes: PACKET_BYTES.into(),
            rtt_ps: self.rtts_ps[packet.psn as usize % SLOTS],
            hops: 3,
            packet_bytes: PACKET_BYTES,
            in_flight_bytes: self.in_flight * u64::from(PACKET_BYTES),
            unacked_packets: self.in_flight,
            unsent_bytes: 1 << 30,
            window_bytes: WINDOW * u64::from(PACKET_BYTES),
        };
        self.balancer.on_ack(self.path.at(now), black_box(&ack), &mut ());
    }
}
