//! The poll loop: many endpoints on one thread.

use std::{io, ops::ControlFlow, os::fd::RawFd, time::Duration};

use spray_core::Time;

use crate::{
    clock::Clock,
    device::Device,
    endpoint::Endpoint,
    sys::{self, pin_to_cpu, set_idle_priority},
};

/// What a driver does while nothing is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Keeps polling, for the lowest latency.
    Spin,
    /// Sleeps until a frame arrives, something is due, or this time has passed.
    Sleep(Duration),
}

/// How a driver thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverOptions {
    /// Run the thread in SCHED_IDLE, so that it does not starve ksoftirqd on a shared CPU: at
    /// normal priority, spinning raises latencies from microseconds to milliseconds.
    pub idle_priority: bool,
    /// Bind the thread to this CPU.
    pub cpu: Option<usize>,
    /// What to do while nothing is due.
    pub idle: Idle,
}

impl Default for DriverOptions {
    /// Returns SCHED_IDLE, any CPU, sleeping up to 10 ms when idle.
    fn default() -> Self {
        Self { idle_priority: true, cpu: None, idle: Idle::Sleep(Duration::from_millis(10)) }
    }
}

impl DriverOptions {
    /// Returns the options for real interfaces: normal priority, any CPU, sleeping up to 10 ms.
    #[must_use]
    pub fn real() -> Self {
        Self { idle_priority: false, ..Self::default() }
    }

    /// Applies priority and CPU to the calling thread.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn apply(&self) -> io::Result<()> {
        if self.idle_priority {
            set_idle_priority()?;
        }
        self.cpu.map_or(Ok(()), pin_to_cpu)
    }
}

/// Polls endpoints in turn until `between` breaks, which is called after each round with the time.
///
/// `between` handles events and sends messages. The caller applies [`DriverOptions::apply`].
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
    let mut idler = Idler::new(idle, &*endpoints, &[]);
    loop {
        let (now, due_ns) = round(endpoints, clock);
        if between(endpoints, now).is_break() {
            return;
        }
        idler.pause(endpoints.iter().map(Endpoint::activity).sum(), due_ns);
    }
}

/// Polls each endpoint once. Returns the time, and nanoseconds until the next poll is due.
pub(crate) fn round<D: Device>(endpoints: &mut [Endpoint<D>], clock: &mut impl Clock) -> (Time, u64) {
    let now = clock.now();
    let next_at = endpoints.iter_mut().filter_map(|endpoint| endpoint.poll(now)).min().unwrap_or(Time::NEVER);
    (now, next_at.since(now) / 1000)
}

#[derive(Debug)]
pub(crate) struct Idler {
    idle: Idle,
    fds: Vec<libc::pollfd>,
    /// Longest sleep if a device has no descriptor to wait on.
    blind: Option<Duration>,
    activity: u64,
    quiet_rounds: u32,
}

/// Rounds without a frame before a driver sleeps: some 50 us, longer than gaps within a transfer.
const QUIET_ROUNDS: u32 = 100;
/// Spin-loop hints in a round without a frame: a busy loop would slow the sibling hyperthread.
const SPINS: u32 = 64;
/// Shortest sleep: the kernel may extend any by 50 us.
const MIN_SLEEP_NS: u64 = 100_000;
/// Sleep with a device that has no descriptor to wait on.
const BLIND_SLEEP: Duration = Duration::from_micros(50);

impl Idler {
    /// For a driver of these endpoints, which also wakes when one of `also` is readable.
    pub(crate) fn new<'a, D: Device + 'a>(
        idle: Idle,
        endpoints: impl IntoIterator<Item = &'a Endpoint<D>>,
        also: &[RawFd],
    ) -> Self {
        let wakers: Vec<_> = endpoints.into_iter().map(|endpoint| endpoint.device().info().wake_fd).collect();
        let blind = wakers.contains(&None).then_some(BLIND_SLEEP);
        let fds = wakers.into_iter().flatten().chain(also.iter().copied()).map(sys::poll_fd).collect();
        Self { idle, fds, blind, activity: 0, quiet_rounds: 0 }
    }

    /// Sleeps if nothing has happened for some rounds and nothing is due within `due_ns`.
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
