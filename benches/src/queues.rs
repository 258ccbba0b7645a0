//! Two hosts with several queues: a thread and an endpoint per queue.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::{Load, MTU, Pair, host};
use spray_nic::Shard;
use spray_nic::device::{MemoryConfig, MemoryNetwork, Steering};
use spray_nic::sys::{monotonic_ns, pin_to_cpu};

/// Returns the packets per second between two hosts with `queues` queues. Each queue carries
/// `packets` packets on a pinned thread, with both ends of its connections and the devices between.
/// Misrouted frames are handed over between threads.
#[must_use]
pub fn packets_per_s(load: &Load, queues: usize, steering: Steering, packets: u64) -> f64 {
    let network =
        MemoryNetwork::new(MemoryConfig { mtu: MTU, queues: queues as u32, steering, ..MemoryConfig::default() });
    let [from, to] = [host(1), host(2)].map(|host| network.attach_shards(host.mac).expect("pipes to wake threads"));
    let (ready, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // A thread that waits for the others keeps serving their frames.
    let meet = |pair: &mut Pair, there: &AtomicUsize| {
        there.fetch_add(1, Ordering::Relaxed);
        while there.load(Ordering::Relaxed) < queues {
            pair.turn();
        }
    };
    let carry = |(devices, shard): (_, Shard)| {
        // Ignored with fewer CPUs, which are shared.
        let _ = pin_to_cpu(shard.number().into());
        let mut pair = Pair::between(devices, shard, load);
        pair.run(packets / 4);
        meet(&mut pair, &ready);
        let first_ns = monotonic_ns();
        let before = pair.packets();
        pair.run(packets);
        let span = (first_ns, monotonic_ns(), pair.packets() - before);
        meet(&mut pair, &done);
        span
    };
    let spans: Vec<(u64, u64, u64)> = thread::scope(|scope| {
        let carry = &carry;
        let shards = from.into_iter().zip(to).map(|(from, to)| [from, to]).zip(Shard::all(queues));
        let threads: Vec<_> = shards.map(|shard| scope.spawn(move || carry(shard))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a queue does not panic")).collect()
    });
    let first_ns = spans.iter().map(|span| span.0).min().unwrap_or(0);
    let last_ns = spans.iter().map(|span| span.1).max().unwrap_or(1);
    let sent: u64 = spans.iter().map(|span| span.2).sum();
    sent as f64 * 1e9 / (last_ns - first_ns).max(1) as f64
}
