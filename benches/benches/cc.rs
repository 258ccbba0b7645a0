//! Cost of congestion control per packet: admission by pacing and window, send, acknowledgement.
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use spray_core::Time;
use spray_core::cc::{AnyCc, CcKind, CongestionControl, Path};
use spray_core::path::{AckInfo, LossCause};

const BASE_RTT_PS: u64 = 8_337_000;
const PACKET_PS: u64 = 83_000;
const PACKET_BYTES: u32 = 4_150;

criterion_group!(benches, cc);
criterion_main!(benches);

fn cc(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cc");
    for kind in CcKind::ALL {
        group.bench_function(kind.name(), |bencher| {
            let mut connection = Connection::new(kind);
            bencher.iter(|| connection.round_trip());
        });
    }
    for kind in CcKind::ALL {
        group.bench_function(format!("{kind}, loss"), |bencher| {
            let mut connection = Connection::new(kind);
            bencher.iter(|| {
                connection.cc.on_loss(connection.path.at(connection.now), black_box(PACKET_BYTES), LossCause::Trimmed);
                connection.round_trip()
            });
        });
    }
    group.finish();
}

/// A connection over a queue that grows and shrinks. A quarter of its packets is marked.
struct Connection {
    path: Path,
    cc: AnyCc,
    now: Time,
    packets: u64,
}

impl Connection {
    fn new(kind: CcKind) -> Self {
        let path = Path::new(BASE_RTT_PS, 400_000_000_000, PACKET_BYTES);
        Self { path, cc: AnyCc::new(&kind.into(), &path), now: Time::ZERO, packets: 0 }
    }

    fn round_trip(&mut self) -> (Time, u64) {
        self.now = self.now.after(PACKET_PS);
        self.packets += 1;
        // Delays vary from 0 to one base RTT without a pattern, which the branch predictor could
        // learn.
        let noise = self.packets.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 41;
        let marked = noise.is_multiple_of(4);
        let ack = AckInfo {
            marked,
            packets: 1,
            marked_packets: u16::from(marked),
            bytes: PACKET_BYTES.into(),
            rtt_ps: BASE_RTT_PS + noise,
            hops: 3,
            packet_bytes: PACKET_BYTES,
            in_flight_bytes: 400_000,
            ..AckInfo::default()
        };
        let paced = self.cc.poll_send(self.path.at(self.now));
        self.cc.on_send(self.path.at(self.now), black_box(PACKET_BYTES));
        self.cc.on_ack(self.path.at(self.now), black_box(&ack));
        (paced, self.cc.window_bytes(&self.path))
    }
}
