//! Path choice per packet: choosing an entropy value plus taking the acknowledgement that echoes it.
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use spray_core::path::{AckInfo, AnyBalancer, Balancer, BalancerKind, Ev, LossCause, LossInfo, PathConfig, SendInfo};
use spray_core::rng;

const BASE_RTT_PS: u64 = 8_337_000;
const PACKET_PS: u64 = 83_000;

criterion_group!(benches, path);
criterion_main!(benches);

fn path(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("path");
    for kind in BalancerKind::ALL {
        group.bench_function(kind.name(), |bencher| {
            let mut connection = Connection::new(kind);
            bencher.iter(|| connection.round_trip(black_box(false)));
        });
    }
    group.bench_function("reps, every 4th marked", |bencher| {
        let mut connection = Connection::new(BalancerKind::Reps);
        let mut packet = 0u32;
        bencher.iter(|| {
            packet = packet.wrapping_add(1);
            connection.round_trip(black_box(packet.is_multiple_of(4)))
        });
    });
    group.bench_function("reps, frozen", |bencher| {
        let mut connection = Connection::frozen();
        bencher.iter(|| connection.round_trip(black_box(false)));
    });
    group.bench_function("reps, frozen and all marked", |bencher| {
        let mut connection = Connection::frozen();
        bencher.iter(|| connection.round_trip(black_box(true)));
    });
    group.finish();
}

/// One connection whose packets are acknowledged at once.
struct Connection {
    balancer: AnyBalancer,
    rng: rng::Rng,
    now_ps: u64,
}

impl Connection {
    fn new(kind: BalancerKind) -> Self {
        let mut rng = rng::stream(1, 1);
        let mut config = PathConfig::new(kind, BASE_RTT_PS, 100);
        // Longer than any run, so that a frozen connection stays so.
        config.schemes.reps.freezing_timeout_ps = 1_000_000_000_000_000;
        Self { balancer: AnyBalancer::new(&config, &mut rng), rng, now_ps: 0 }
    }

    fn frozen() -> Self {
        let mut connection = Self::new(BalancerKind::Reps);
        (0..8).for_each(|ev| connection.ack(ev, false));
        let loss = LossInfo {
            ev: 9,
            bytes: 4150,
            cause: LossCause::Timeout,
            max_rtt_ps: 0,
            path_clear: false,
            ..LossInfo::default()
        };
        connection.balancer.on_loss(0, &loss, &mut ());
        connection
    }

    fn round_trip(&mut self, marked: bool) -> Ev {
        self.now_ps += PACKET_PS;
        let packet = SendInfo { psn: self.now_ps, bytes: 4150, retransmit: false, ..SendInfo::default() };
        let ev = self.balancer.next_ev(self.now_ps, black_box(&packet), &mut self.rng);
        self.ack(ev, marked);
        ev
    }

    fn ack(&mut self, ev: Ev, marked: bool) {
        let marked_packets = u16::from(marked);
        let ack = AckInfo {
            ev,
            marked,
            packets: 1,
            marked_packets,
            bytes: 4150,
            rtt_ps: BASE_RTT_PS,
            hops: 3,
            ..AckInfo::default()
        };
        self.balancer.on_ack(self.now_ps, black_box(&ack), &mut ());
    }
}
