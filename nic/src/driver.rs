//! The poll loop: many endpoints on one thread.

use std::{io, ops::ControlFlow, os::fd::RawFd, time::Duration};

use spray_core::Time;

use crate::{
    clock::Clock,
    device::Device,
    endpoint::Endpoint,
    sys::{self, pin_to_cpu, set_idle_priority},
};

/// What a driver does between polls when nothing is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Keeps polling: the lowest latency.
    Spin,
    /// Sleeps until a frame arrives, something is due, or this much time has passed.
    Sleep(Duration),
}

/// How a driver thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverOptions {
    /// Put the thread into SCHED_IDLE. Needed wherever it shares its CPU with the kernel's packet processing: a thread that spins at
    /// normal priority starves ksoftirqd, and latencies go from microseconds to milliseconds.
    pub idle_priority: bool,
    /// Bind the thread to this CPU.
    pub cpu: Option<usize>,
    /// What to do when nothing is due.
    pub idle: Idle,
}

impl Default for DriverOptions {
    /// SCHED_IDLE, any CPU, sleeping up to 10 ms when idle.
    fn default() -> Self {
        Self { idle_priority: true, cpu: None, idle: Idle::Sleep(Duration::from_millis(10)) }
    }
}

impl DriverOptions {
    /// For real interfaces: normal priority, any CPU, sleeping up to 10 ms when idle.
    #[must_use]
    pub fn real() -> Self {
        Self { idle_priority: false, ..Self::default() }
    }

    /// Applies priority and CPU to the calling thread.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn apply(&self) -> io::Result<()> {
        if self.idle_priority {
            set_idle_priority()?;
        }
        self.cpu.map_or(Ok(()), pin_to_cpu)
    }
}

/// Polls endpoints in turn until `between`, which is called after every round with the time, breaks off.
///
/// `between` takes events and sends messages. The caller sets the thread's priority with [`DriverOptions::apply`].
///
/// ```
/// # use spray_nic::{clock::MonotonicClock, device::MemoryDevice, driver::{Idle, run}, Endpoint};
/// # use std::ops::ControlFlow;
/// # let mut endpoints: Vec<Endpoint<MemoryDevice>> = Vec::new();
/// let mut rounds = 0;
/// run(&mut endpoints, &mut MonotonicClock::new(), Idle::Spin, |_endpoints, _now| {
///     rounds += 1;
///     if rounds == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
/// });
/// ```
pub fn run<D: Device>(
    endpoints: &mut [Endpoint<D>],
    clock: &mut impl Clock,
    idle: Idle,
    mut between: impl FnMut(&mut [Endpoint<D>], Time) -> ControlFlow<()>,
) {
    let mut rest = Rest::new(idle, &*endpoints, &[]);
    loop {
        let (now, due_ns) = round(endpoints, clock);
        if between(endpoints, now).is_break() {
            return;
        }
        rest.pause(endpoints.iter().map(Endpoint::activity).sum(), due_ns);
    }
}

/// One round of [`run`] without a pause. Returns the time, and how long until one of the endpoints wants to be polled again
/// at the latest, in nanoseconds.
pub(crate) fn round<D: Device>(endpoints: &mut [Endpoint<D>], clock: &mut impl Clock) -> (Time, u64) {
    let now = clock.now();
    let next_at = endpoints.iter_mut().filter_map(|endpoint| endpoint.poll(now)).min().unwrap_or(Time::NEVER);
    (now, next_at.since(now) / 1000)
}

/// Decides when a driver sleeps, and does.
#[derive(Debug)]
pub(crate) struct Rest {
    idle: Idle,
    fds: Vec<libc::pollfd>,
    /// Longest sleep if a device has no descriptor to wake us.
    blind: Option<Duration>,
    activity: u64,
    quiet_rounds: u32,
}

/// Rounds without a frame before a driver sleeps: some 50 us, longer than the gaps within a transfer.
const QUIET_ROUNDS: u32 = 100;
/// Pauses of some nanoseconds each in a round without a frame: a busy loop would slow the core's other hyperthread.
const SPINS: u32 = 64;
/// No sleep is shorter than this: the kernel may stretch any by 50 us.
const MIN_SLEEP_NS: u64 = 100_000;
/// How long to sleep with a device that has no descriptor to wait on.
const BLIND_SLEEP: Duration = Duration::from_micros(50);

impl Rest {
    /// For a driver of these endpoints, which also wakes when one of `also` is readable.
    pub(crate) fn new<'a, D: Device + 'a>(
        idle: Idle,
        endpoints: impl IntoIterator<Item = &'a Endpoint<D>>,
        also: &[RawFd],
    ) -> Self {
        let wakers: Vec<_> = endpoints.into_iter().map(|endpoint| endpoint.device().info().wake_fd).collect();
        let blind = wakers.contains(&None).then_some(BLIND_SLEEP);
        let fds = wakers.into_iter().flatten().chain(also.iter().copied()).map(sys::readable).collect();
        Self { idle, fds, blind, activity: 0, quiet_rounds: 0 }
    }

    /// Sleeps if nothing has happened for some rounds and nothing is due for `due_ns`.
    pub(crate) fn pause(&mut self, activity: u64, due_ns: u64) {
        let is_quiet = std::mem::replace(&mut self.activity, activity) == activity;
        let Idle::Sleep(longest) = self.idle else {
            if is_quiet {
                (0..SPINS).for_each(|_| std::hint::spin_loop());
                std::thread::yield_now();
            }
            return;
        };
        self.quiet_rounds = if is_quiet { self.quiet_rounds.saturating_add(1) } else { 0 };
        if self.quiet_rounds < QUIET_ROUNDS || due_ns < MIN_SLEEP_NS {
            return;
        }
        let longest = self.blind.map_or(longest, |blind| blind.min(longest));
        sys::wait_readable(&mut self.fds, longest.min(Duration::from_nanos(due_ns)));
    }
}

#[cfg(test)]
mod tests;
