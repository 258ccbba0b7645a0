//! Counters that the threads of `spray perf` share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::interval::Snapshot;

#[derive(Debug, Default)]
pub(super) struct Board {
    snapshots: Box<[Mutex<Snapshot>]>,
    pub(super) ready: AtomicUsize,
    pub(super) over: AtomicBool,
    pub(super) done: AtomicUsize,
}

impl Board {
    pub(super) fn new(threads: usize) -> Self {
        Self { snapshots: (0..threads).map(|_| Mutex::default()).collect(), ..Self::default() }
    }

    pub(super) fn threads(&self) -> usize {
        self.snapshots.len()
    }

    /// Whether all threads have counted themselves in `ready` or `done`.
    pub(super) fn are_all(&self, count: &AtomicUsize) -> bool {
        count.load(Ordering::Acquire) >= self.snapshots.len()
    }

    pub(super) fn put(&self, thread: usize, snapshot: Snapshot) {
        *self.snapshots[thread].lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    /// `first` is of the first thread.
    pub(super) fn sum(&self, first: Snapshot) -> Snapshot {
        let others = self.snapshots[1..].iter().map(|other| *other.lock().unwrap_or_else(PoisonError::into_inner));
        others.fold(first, |sum, snapshot| sum.plus(&snapshot))
    }
}
