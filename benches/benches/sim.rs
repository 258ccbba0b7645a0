//! The simulator: packet-hops per second on one thread.
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use spray_core::path::BalancerKind;
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::{Simulation, reference};
use spray_experiments::workload::{FlowTemplate, Pattern};
use spray_fabric::LeafSpine;

criterion_group!(benches, sim);
criterion_main!(benches);

/// A permutation of `bytes` across the leaves of leaf-spine fabrics, and the number of runs of each.
const CASES: [(&str, usize, u64); 3] =
    [("32 hosts, 4 MiB", 4, 4 << 20), ("128 hosts, 8 MiB", 8, 8 << 20), ("1,024 hosts, 1 MiB", 32, 1 << 20)];

fn sim(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sim");
    group.sample_size(10);
    for (name, leaves, bytes) in CASES {
        let scenario = permutation(leaves, bytes);
        let simulation = Simulation::new(&scenario);
        for balancer in [BalancerKind::Ops, BalancerKind::Reps] {
            let first = simulation.run(balancer, 1, &[]).expect("the scenario fits");
            group.throughput(Throughput::Elements(first.sim.map_or(0, |sim| sim.packet_hops)));
            group.bench_function(format!("{name}, {balancer}"), |bencher| {
                bencher.iter(|| black_box(simulation.run(balancer, 1, &[])));
            });
        }
    }
    group.finish();
}

fn permutation(leaves: usize, bytes: u64) -> Scenario {
    let hosts_per_leaf = if leaves == 4 { 8 } else { leaves.max(16) };
    let counts = LeafSpine::uniform([leaves, hosts_per_leaf, hosts_per_leaf], 400_000_000_000, 1_000_000);
    let pattern = Pattern::CrossLeafPermutation(FlowTemplate { bytes, start_ps: 0 });
    reference("permutation", counts.network(), pattern)
}
