//! Exchange of frames between parts, and synchronisation of their threads between windows.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use spray_pipeline::config::NEVER;

use super::arena::{Kind, Phase};
use super::batch::{Batch, FlowEnd};
use super::net::Net;
use super::observer::Observer;
use super::partition::Partition;

/// Mailboxes between parts, double-buffered by window, so that no lock is contended.
#[derive(Debug)]
pub(super) struct Mailboxes {
    windows: [Window; 2],
    /// The first channel of each part, and the destination of each channel.
    first_channel: Vec<usize>,
    ends: Vec<u32>,
    /// The channels to each part, by origin.
    into: Vec<Vec<usize>>,
}

#[derive(Debug)]
struct Window {
    /// By channel.
    mail: Vec<Mutex<Batch>>,
    /// By part.
    over: Vec<Mutex<Vec<FlowEnd>>>,
    /// By part, whether it has anything to receive.
    any: Vec<AtomicBool>,
}

impl Mailboxes {
    pub(super) fn new(partition: &Partition) -> Self {
        let first = partition.channels.iter().scan(0, |next, to| Some(std::mem::replace(next, *next + to.len())));
        let first_channel: Vec<usize> = first.collect();
        let ends: Vec<u32> = partition.channels.iter().flatten().copied().collect();
        let mut into = vec![Vec::new(); partition.len()];
        ends.iter().enumerate().for_each(|(channel, end)| into[*end as usize].push(channel));
        let windows = [(); 2].map(|()| Window {
            mail: ends.iter().map(|_| Mutex::default()).collect(),
            over: into.iter().map(|_| Mutex::default()).collect(),
            any: into.iter().map(|_| AtomicBool::new(false)).collect(),
        });
        Self { windows, first_channel, ends, into }
    }

    /// Sends the outbox of `part`; returns the earliest time in it.
    pub(super) fn send_outbox<W: Observer>(
        &self,
        window: usize,
        part: usize,
        net: &mut Net<'_, W>,
        spare: &mut Vec<Batch>,
    ) -> u64 {
        let Window { mail, over, any } = &self.windows[window % 2];
        for (channel, own) in (self.first_channel[part]..).zip(&mut net.outbox) {
            let own = std::mem::take(own);
            if own.slots.is_empty() {
                spare.push(own);
                continue;
            }
            *lock(&mail[channel]) = own;
            any[self.ends[channel] as usize].store(true, Ordering::Relaxed);
        }
        for told in net.flow_ends.drain(..) {
            lock(&over[told.part as usize]).push(told);
            any[told.part as usize].store(true, Ordering::Relaxed);
        }
        std::mem::replace(&mut net.out_ps, NEVER)
    }

    /// Receives what was sent to `part` in `window`, in the order of the senders, regardless
    /// of threads. Buffers go to `free`, and from there to outboxes: they are in the cache.
    pub(super) fn receive<W: Observer>(&self, window: usize, part: usize, net: &mut Net<'_, W>, free: &mut Vec<Batch>) {
        let Window { mail, over, any } = &self.windows[window % 2];
        if !any[part].swap(false, Ordering::Relaxed) {
            return;
        }
        for channel in &self.into[part] {
            let mut mail = std::mem::take(&mut *lock(&mail[*channel]));
            if !mail.slots.is_empty() {
                net.insert_batch(&mut mail);
                free.push(mail);
            }
        }
        let mut over = std::mem::take(&mut *lock(&over[part]));
        over.sort_unstable();
        over.into_iter().for_each(|over| net.schedule(over.at_ps, Phase::Start, Kind::FlowEnd, over.end));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A barrier between windows. Each thread contributes the time of its next event and its number of
/// open flows; all receive the earliest time and the sum.
#[derive(Debug, Default)]
pub(super) struct WindowBarrier {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    /// By the parity of the round: late threads still read one while others write the other.
    contributions: [Vec<(AtomicU64, AtomicUsize)>; 2],
    /// Whether a thread has panicked.
    failed: AtomicBool,
}

impl WindowBarrier {
    pub(super) fn new(threads: usize) -> Self {
        let contributions = || (0..threads).map(|_| (AtomicU64::new(NEVER), AtomicUsize::new(0))).collect();
        Self { threads, contributions: [contributions(), contributions()], ..Self::default() }
    }

    /// Waits for all threads. Panics if another thread has panicked.
    pub(super) fn wait(&self, thread: usize, next_ps: u64, open: usize) -> (u64, usize) {
        let round = self.round.load(Ordering::Relaxed);
        let contributions = &self.contributions[round & 1];
        contributions[thread].0.store(next_ps, Ordering::Relaxed);
        contributions[thread].1.store(open, Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round + 1, Ordering::Release);
        }
        let mut turns = 0u32;
        while self.round.load(Ordering::Acquire) == round {
            assert!(!self.failed.load(Ordering::Relaxed), "another thread of this run panicked");
            turns += 1;
            if turns < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        let all =
            contributions.iter().map(|(next_ps, open)| (next_ps.load(Ordering::Relaxed), open.load(Ordering::Relaxed)));
        all.fold((NEVER, 0), |(least_ps, sum), (next_ps, open)| (least_ps.min(next_ps), sum + open))
    }
}

/// Releases the other threads if this one panics.
#[derive(Debug)]
pub(super) struct PanicGuard<'a>(pub &'a WindowBarrier);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, Ordering::Relaxed);
        }
    }
}

/// Number of spins before yielding: some microseconds.
const SPINS: u32 = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_leave_with_the_earliest_time_and_the_sum() {
        for threads in [1, 2, 5] {
            let barrier = WindowBarrier::new(threads);
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        for round in 0..200 {
                            let found = barrier.wait(thread, 1_000 * round + thread as u64, thread + round as usize);
                            let sum = threads * (threads - 1) / 2 + threads * round as usize;
                            assert_eq!(found, (1_000 * round, sum));
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn threads_do_not_wait_for_one_that_has_panicked() {
        let barrier = WindowBarrier::new(2);
        let ended = std::thread::scope(|scope| {
            let waits = scope.spawn(|| barrier.wait(0, 1, 1));
            let fails = scope.spawn(|| {
                let _guard = PanicGuard(&barrier);
                panic!("on purpose");
            });
            [waits.join().is_err(), fails.join().is_err()]
        });
        assert_eq!(ended, [true, true]);
    }
}
