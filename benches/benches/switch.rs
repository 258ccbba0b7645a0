//! Cost of a frame at the switch, in memory and in the kernel. The kernel's BPF test run also measures a program that only
//! redirects, for comparison.
//!
//! Target: at most 120 ns per frame and hop over the bare redirect, frames arriving in order. The kernel's part needs
//! root and the built programs; without them it is left out with a message.
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use spray_fabric::{FlowHash, HashFunction, Scheme, Switching};
use spray_pipeline::config::{OUTSIDE, PortConfig, Thresholds};
use spray_pipeline::queue::Queue;
use spray_testbed::program::HopBench;
use std::cell::Cell;

/// The queue alone: frames in order at 90 % load, a walk every other frame.
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

/// The programs; `None`, with a message, where they cannot be loaded.
fn load(group: &str, switching: Switching, cables: u32) -> Option<HopBench> {
    HopBench::new(switching, cables).inspect_err(|error| eprintln!("switch/{group} SKIPPED: {error}")).ok()
}

fn kernel(c: &mut Criterion) {
    let Some(bench) = load("kernel", Switching::default(), 1) else { return };
    let mut group = c.benchmark_group("switch/kernel");
    group.throughput(Throughput::Elements(1));
    group.bench_function("redirect", |bencher| {
        bencher.iter_custom(|count| bench.redirect(repeat(count)).expect("a test run").mul_f64(count as f64));
    });
    for hops in [1, 2, HopBench::HOPS] {
        group.bench_function(BenchmarkId::new("hops", hops), |bencher| {
            bencher.iter_custom(|count| bench.switch(hops, repeat(count)).expect("a test run").mul_f64(count as f64));
        });
    }
    group.bench_function(BenchmarkId::new("disorder", HopBench::HOPS), |bencher| {
        bencher.iter_custom(|count| {
            bench.disorder(HopBench::HOPS, repeat(count)).expect("a test run").mul_f64(count as f64)
        });
    });
    group.finish();
}

/// One CPU and two at the same ports, as with receive-side scaling. The bare redirect, which shares nothing, tells what the machine itself
/// loses when both its CPUs are busy.
fn cpus(c: &mut Criterion) {
    let Some(bench) = load("cpus", Switching::default(), 1) else { return };
    let mut group = c.benchmark_group("switch/cpus");
    group.throughput(Throughput::Elements(1));
    for cpus in [1, 2] {
        for (name, hops) in [("redirect", None), ("hop", Some(1)), ("hops", Some(4))] {
            group.bench_function(BenchmarkId::new(name, cpus), |bencher| {
                bencher.iter_custom(|count| {
                    bench.together(cpus, hops, repeat(count)).expect("a test run").mul_f64(count as f64)
                });
            });
        }
    }
    group.finish();
}

/// Six switches in a row with four cables between two of them, by each scheme and each hash; frames in order and out of order.
fn schemes(c: &mut Criterion) {
    let mut group = c.benchmark_group("switch/schemes");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    let hashes = [HashFunction::Crc16, HashFunction::Crc32, HashFunction::Xor].map(|function| {
        let hash = FlowHash { function, ..FlowHash::default() };
        (format!("{function:?}").to_lowercase(), Switching { hash, ..Switching::default() })
    });
    let schemes = Scheme::ALL
        .into_iter()
        .filter(|scheme| scheme.is_in_kernel())
        .map(|scheme| (scheme.to_string(), Switching::all(scheme)));
    for (name, switching) in schemes.into_iter().chain(hashes) {
        let Some(bench) = load("schemes", switching, 4) else { return };
        let hops = HopBench::HOPS;
        group.bench_function(BenchmarkId::new("order", &name), |bencher| {
            bencher.iter_custom(|count| bench.switch(hops, repeat(count)).expect("a test run").mul_f64(count as f64));
        });
        group.bench_function(BenchmarkId::new("disorder", &name), |bencher| {
            bencher.iter_custom(|count| bench.disorder(hops, repeat(count)).expect("a test run").mul_f64(count as f64));
        });
    }
    group.finish();
}

/// The kernel gives the mean in whole nanoseconds, over runs long enough for it to be stable and short enough to end.
fn repeat(count: u64) -> u32 {
    count.clamp(10_000, 200_000) as u32
}

criterion_group!(benches, queue, kernel, cpus, schemes);
criterion_main!(benches);
