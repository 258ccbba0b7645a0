//! Cost of a frame on an in-memory device, included in the figures of endpoints on such a device.
//! `spray bench veth` measures AF_XDP on a real interface.
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use spray_nic::device::{Device, MemoryConfig, MemoryNetwork, Received};

const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
const B: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Frames per flush, as endpoints send them.
const BATCH: usize = 64;

/// Sends a batch, receives it, and reads only the first bytes of each frame, which excludes the
/// cost of the caller.
fn exchange(from: &mut impl Device, to: &mut impl Device, out: &mut Vec<Received>, len: u32) {
    for _ in 0..BATCH {
        let id = from.allocate().expect("all frames were returned");
        from.frame_mut(&id)[..6].copy_from_slice(&B);
        from.transmit(id, len).expect("the ring is empty");
    }
    from.flush().expect("a memory device does not fail");
    assert_eq!(to.receive(out, BATCH).expect("a memory device does not fail"), BATCH);
    for Received { frame, len, .. } in out.drain(..) {
        black_box(to.frame(&frame, len)[0]);
        to.release(frame);
    }
    to.flush().expect("a memory device does not fail");
}

fn memory(c: &mut Criterion) {
    let mut group = c.benchmark_group("device/memory");
    group.throughput(Throughput::Elements(BATCH as u64));
    for len in [64, 3072] {
        let network = MemoryNetwork::new(MemoryConfig::default());
        let (mut a, mut b, mut out) = (network.attach(A), network.attach(B), Vec::with_capacity(BATCH));
        group.bench_function(BenchmarkId::new("exchange", len), |bencher| {
            bencher.iter(|| exchange(&mut a, &mut b, &mut out, len));
        });
    }
    group.finish();
}

criterion_group!(benches, memory);
criterion_main!(benches);
