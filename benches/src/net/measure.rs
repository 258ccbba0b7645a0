//! Measurements with a sending and a receiving thread on the machine's clock.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use spray_nic::driver::{DriverOptions, Idle};
use spray_switch::RunError;
use spray_testbed::StopOnDrop;

/// Round-trip times in nanoseconds.
pub type Latency = Histogram<u64>;

pub(super) const REQUEST_BYTES: usize = 64;
/// Longest distinguishable round trip.
const LONGEST: Duration = Duration::from_secs(60);

/// The packets of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throughput {
    /// Packets or frames that the sender passed on.
    pub sent: u64,
    /// Packets or frames that the receiver took.
    pub received: u64,
    /// Bytes of each, as configured: a message, or the whole frame.
    pub bytes: usize,
    /// Time from the first arrival to the last.
    pub receiving: Duration,
}

impl Throughput {
    /// Returns the packets received per second, between the first arrival and the last.
    #[must_use]
    pub fn received_pps(&self) -> f64 {
        if self.receiving.is_zero() { 0.0 } else { self.received as f64 / self.receiving.as_secs_f64() }
    }

    /// Returns the received Gb/s, counting `bytes` of each packet.
    #[must_use]
    pub fn received_gbps(&self) -> f64 {
        self.received_pps() * self.bytes as f64 * 8e-9
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures the machine's time")]
pub(super) fn now() -> Instant {
    Instant::now()
}

pub(super) fn latency() -> Latency {
    Histogram::new_with_bounds(1, LONGEST.as_nanos() as u64, 2).expect("valid bounds and digits")
}

pub(super) fn record(latency: &mut Latency, took: Duration) {
    latency.saturating_record(took.as_nanos() as u64);
}

/// Scheduling of both threads: SCHED_IDLE, because they spin, and pinned, because migrations halve
/// the figures.
pub(super) fn threads() -> [DriverOptions; 2] {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    [0, 1].map(|side| DriverOptions { idle_priority: true, cpu: (cpus > 1).then_some(side), idle: Idle::Spin })
}

pub(super) fn failed(doing: &'static str) -> impl Fn(io::Error) -> RunError {
    move |error| RunError::io(doing, error)
}

#[derive(Default)]
pub(super) struct Arrivals {
    pub(super) count: u64,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Arrivals {
    pub(super) fn add(&mut self, count: u64) {
        if count > 0 {
            let now = now();
            self.count += count;
            self.first.get_or_insert(now);
            self.last = Some(now);
        }
    }

    pub(super) fn time(&self) -> Duration {
        self.first.zip(self.last).map_or(Duration::ZERO, |(first, last)| last - first)
    }
}

/// Runs both on separate threads until both have ended. Either sets the flag at its end.
pub(super) fn run_both<A: Send, B: Send>(
    threads: [DriverOptions; 2],
    first: impl FnOnce(&AtomicBool) -> A + Send,
    second: impl FnOnce(&AtomicBool) -> B + Send,
) -> io::Result<(A, B)> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let second = thread::Builder::new().spawn_scoped(scope, || {
            let _stop = StopOnDrop(&stop);
            threads[1].apply().map(|()| second(&stop))
        })?;
        let first = thread::Builder::new().spawn_scoped(scope, || {
            let _stop = StopOnDrop(&stop);
            threads[0].apply().map(|()| first(&stop))
        });
        let first = first.inspect_err(|_| stop.store(true, Ordering::Release))?;
        Ok((join(first)?, join(second)?))
    })
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
