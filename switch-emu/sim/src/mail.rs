//! What one part of a run hands over to others, and how those that run the parts meet between windows.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use spray_core::host::NEVER;
use spray_pipeline::trail;
use spray_wire::Body;

use super::arena::Slot;

/// An event that goes on in another part.
#[derive(Debug)]
pub(super) struct Letter {
    pub slot: Slot,
    /// What a frame says beyond its slot.
    pub body: Option<Body>,
    /// What switches have told each other in a frame, where they do.
    pub trail: Option<[u64; trail::WORDS]>,
}

/// Letters to one part, in the order in which they were handed over.
#[derive(Debug, Default)]
pub(super) struct Mail {
    slots: Vec<Slot>,
    /// Of those that have a body, and of all where frames have trails.
    bodies: Vec<Body>,
    trails: Vec<[u64; trail::WORDS]>,
}

impl Mail {
    /// Adds a letter.
    #[inline]
    pub(super) fn put(&mut self, Letter { slot, body, trail }: Letter) {
        self.slots.push(slot);
        self.bodies.extend(body);
        self.trails.extend(trail);
    }

    /// Takes all letters out, in order.
    #[inline]
    pub(super) fn take(&mut self, mut letter: impl FnMut(Letter)) {
        let (mut bodies, mut trails) = (self.bodies.drain(..), self.trails.drain(..));
        for slot in self.slots.drain(..) {
            let body = if slot.has_body() { bodies.next() } else { None };
            letter(Letter { slot, body, trail: trails.next() });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

/// Where threads meet between windows. Each brings the time of its next event and how many flows it has left; all leave with the
/// earliest time and the sum.
#[derive(Debug)]
pub(super) struct Meeting {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    /// By the parity of the round what each thread brings: who is late reads the one while others write the other.
    brought: [Vec<(AtomicU64, AtomicUsize)>; 2],
    /// A thread has panicked, and will not come.
    failed: AtomicBool,
}

impl Meeting {
    /// A place for so many threads to meet.
    pub(super) fn new(threads: usize) -> Self {
        let brought = || (0..threads).map(|_| (AtomicU64::new(NEVER), AtomicUsize::new(0))).collect();
        Self {
            threads,
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            brought: [brought(), brought()],
            failed: AtomicBool::new(false),
        }
    }

    /// Waits for all threads.
    ///
    /// # Panics
    /// When another thread has panicked: the run is lost.
    pub(super) fn agree(&self, thread: usize, next_ps: u64, open: usize) -> (u64, usize) {
        let round = self.round.load(Ordering::Relaxed);
        let brought = &self.brought[round & 1];
        brought[thread].0.store(next_ps, Ordering::Relaxed);
        brought[thread].1.store(open, Ordering::Relaxed);
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
        let all = brought.iter().map(|(next_ps, open)| (next_ps.load(Ordering::Relaxed), open.load(Ordering::Relaxed)));
        all.fold((NEVER, 0), |(least_ps, sum), (next_ps, open)| (least_ps.min(next_ps), sum + open))
    }

    /// While it lives, a panic of the thread that holds it lets the others go.
    pub(super) fn attend(&self) -> Attendance<'_> {
        Attendance(self)
    }
}

/// See [`Meeting::attend`].
#[derive(Debug)]
pub(super) struct Attendance<'a>(&'a Meeting);

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, Ordering::Relaxed);
        }
    }
}

/// How often a thread looks before it lets another one have its core: some microseconds.
const SPINS: u32 = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_leave_with_the_earliest_time_and_the_sum() {
        for threads in [1, 2, 5] {
            let meeting = Meeting::new(threads);
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let meeting = &meeting;
                    scope.spawn(move || {
                        for round in 0..200 {
                            let found = meeting.agree(thread, 1_000 * round + thread as u64, thread + round as usize);
                            let sum = threads * (threads - 1) / 2 + threads * round as usize;
                            assert_eq!(found, (1_000 * round, sum));
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn nobody_waits_for_a_thread_that_has_panicked() {
        let meeting = Meeting::new(2);
        let ended = std::thread::scope(|scope| {
            let waits = scope.spawn(|| meeting.agree(0, 1, 1));
            let fails = scope.spawn(|| {
                let _attendance = meeting.attend();
                panic!("on purpose");
            });
            [waits.join().is_err(), fails.join().is_err()]
        });
        assert_eq!(ended, [true, true]);
    }
}
