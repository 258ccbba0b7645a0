//! Cost of a frame at an in-memory switch queue, and of the switch program on one CPU and two.
//! `spray bench switch` measures it by scheme. The kernel part is skipped with a message without
//! root or the built programs.
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use spray_fabric::Switching;
use spray_pipeline::config::{OUTSIDE, PortConfig, Thresholds};
use spray_pipeline::queue::Queue;
use spray_switch::program::HopBench;
use std::cell::Cell;

/// The queue alone: frames in order at 90 % load, with a walk every other frame.
fn queue(c: &mut Criterion) {
    let drain = PortConfig::new(100_000_000_000, 0, &Thresholds::NONE, OUTSIDE, 3_114).drain(0);
    let (queue, mut t_ps) = (Queue::<Cell<u64>>::default(), 1 << 40);
    c.bench_function("switch/queue", |bencher| {
        bencher.iter(|| {
            t_ps += 277_000;
            let position = queue.locate(black_box(t_ps), &drain);
            queue.push(&position, 3_114);
            drain.delay_ps(position.backlog, 3_114)
        });
    });
}

/// One and two CPUs on the same ports, as with receive-side scaling. The bare redirect, which
/// shares nothing, shows the loss of the machine itself when both CPUs are busy.
fn cpus(c: &mut Criterion) {
    let bench = match HopBench::new(Switching::default(), 1) {
        Ok(bench) => bench,
        Err(error) => return eprintln!("switch/cpus SKIPPED: {error}"),
    };
    let mut group = c.benchmark_group("switch/cpus");
    group.throughput(Throughput::Elements(1));
    for cpus in [1, 2] {
        for (name, hops) in [("redirect", None), ("hop", Some(1)), ("hops", Some(4))] {
            group.bench_function(BenchmarkId::new(name, cpus), |bencher| {
                bencher.iter_custom(|count| {
                    bench.concurrent(cpus, hops, repeat(count)).expect("a test run").mul_f64(count as f64)
                });
            });
        }
    }
    group.finish();
}

/// The kernel returns the mean in whole nanoseconds, over runs long enough to be stable and short
/// enough to end.
fn repeat(count: u64) -> u32 {
    count.clamp(10_000, 200_000) as u32
}

criterion_group!(benches, queue, cpus);
criterion_main!(benches);
