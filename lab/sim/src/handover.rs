//! Exchange of frames between parts, and synchronisation of their threads between windows.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use spray_pipeline::config::NEVER;

use super::arena::{Kind, Turn};
use super::mail::{Mail, Over};
use super::net::Net;
use super::partition::Partition;
use super::watch::Watch;

/// Mailboxes between parts, double-buffered by window, so that no lock is contended.
#[derive(Debug)]
pub(super) struct Handover {
    windows: [Window; 2],
    /// The first way of each part, and the destination of each way.
    first_way: Vec<usize>,
    ends: Vec<u32>,
    /// The ways to each part, by origin.
    into: Vec<Vec<usize>>,
}

#[derive(Debug)]
struct Window {
    /// By way.
    mail: Vec<Mutex<Mail>>,
    /// By part.
    over: Vec<Mutex<Vec<Over>>>,
    /// By part, whether it has anything to receive.
    any: Vec<AtomicBool>,
}

impl Handover {
    pub(super) fn new(partition: &Partition) -> Self {
        let first_way = partition.ways.iter().scan(0, |next, ways| Some(std::mem::replace(next, *next + ways.len())));
        let first_way: Vec<usize> = first_way.collect();
        let ends: Vec<u32> = partition.ways.iter().flatten().copied().collect();
        let mut into = vec![Vec::new(); partition.len()];
        ends.iter().enumerate().for_each(|(way, end)| into[*end as usize].push(way));
        let windows = [(); 2].map(|()| Window {
            mail: ends.iter().map(|_| Mutex::default()).collect(),
            over: into.iter().map(|_| Mutex::default()).collect(),
            any: into.iter().map(|_| AtomicBool::new(false)).collect(),
        });
        Self { windows, first_way, ends, into }
    }

    /// Sends the outbox of part `number`; returns the earliest time in it.
    pub(super) fn hand_over<W: Watch>(
        &self,
        window: usize,
        number: usize,
        net: &mut Net<'_, W>,
        spare: &mut Vec<Mail>,
    ) -> u64 {
        let Window { mail, over, any } = &self.windows[window % 2];
        for (way, own) in (self.first_way[number]..).zip(&mut net.outbox) {
            let own = std::mem::take(own);
            if own.slots.is_empty() {
                spare.push(own);
                continue;
            }
            *lock(&mail[way]) = own;
            any[self.ends[way] as usize].store(true, Ordering::Relaxed);
        }
        for told in net.over.drain(..) {
            lock(&over[told.part as usize]).push(told);
            any[told.part as usize].store(true, Ordering::Relaxed);
        }
        std::mem::replace(&mut net.out_ps, NEVER)
    }

    /// Receives what was sent to part `number` in `window`, in the order of the senders, regardless
    /// of threads. Buffers go to `spare`, and from there to outboxes: they are in the cache.
    pub(super) fn take_in<W: Watch>(&self, window: usize, number: usize, net: &mut Net<'_, W>, spare: &mut Vec<Mail>) {
        let Window { mail, over, any } = &self.windows[window % 2];
        if !any[number].swap(false, Ordering::Relaxed) {
            return;
        }
        for way in &self.into[number] {
            let mut mail = std::mem::take(&mut *lock(&mail[*way]));
            if !mail.slots.is_empty() {
                net.take_in(&mut mail);
                spare.push(mail);
            }
        }
        let mut over = std::mem::take(&mut *lock(&over[number]));
        over.sort_unstable();
        over.into_iter().for_each(|over| net.schedule(over.at_ps, Turn::Start, Kind::Over, over.end));
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
