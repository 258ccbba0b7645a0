//! Queues that share nothing: a thread and a device each.

use std::sync::Barrier;
use std::thread;

use super::{Load, Pair};
use spray_nic::sys::{monotonic_ns, pin_to_cpu};

/// Has so many queues carry as many packets each at the same time, every one by a thread on a CPU of its own: both ends of
/// its connections, and the devices between them. Returns the packets that all of them together carried in a second.
///
/// # Panics
/// When a thread does.
#[must_use]
pub fn packets_per_s(load: &Load, queues: usize, packets: u64) -> f64 {
    let barrier = Barrier::new(queues);
    let carry = |queue| {
        // A machine with fewer CPUs shares them, and the figures say so.
        let _ = pin_to_cpu(queue);
        let mut pair = Pair::new(load);
        pair.run(packets / 4);
        barrier.wait();
        let first_ns = monotonic_ns();
        let before = pair.packets();
        pair.run(packets);
        (first_ns, monotonic_ns(), pair.packets() - before)
    };
    let spans: Vec<(u64, u64, u64)> = thread::scope(|scope| {
        let carry = &carry;
        let threads: Vec<_> = (0..queues).map(|queue| scope.spawn(move || carry(queue))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a queue does not panic")).collect()
    });
    let first_ns = spans.iter().map(|span| span.0).min().unwrap_or(0);
    let last_ns = spans.iter().map(|span| span.1).max().unwrap_or(1);
    let sent: u64 = spans.iter().map(|span| span.2).sum();
    sent as f64 * 1e9 / (last_ns - first_ns).max(1) as f64
}
