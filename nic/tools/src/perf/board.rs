//! Counters that the threads of `spray perf` share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::interval::Look;

#[derive(Debug, Default)]
pub(super) struct Board {
    looks: Box<[Mutex<Look>]>,
    bases: Box<[Mutex<Look>]>,
    pub(super) ready: AtomicUsize,
    pub(super) over: AtomicBool,
    pub(super) done: AtomicUsize,
}

impl Board {
    pub(super) fn new(threads: usize) -> Self {
        let [looks, bases] = [(); 2].map(|()| (0..threads).map(|_| Mutex::default()).collect());
        Self { looks, bases, ..Self::default() }
    }

    pub(super) fn threads(&self) -> usize {
        self.looks.len()
    }

    /// Whether all threads have counted themselves in `ready` or `done`.
    pub(super) fn are_all(&self, count: &AtomicUsize) -> bool {
        count.load(Ordering::Acquire) >= self.looks.len()
    }

    pub(super) fn put(&self, thread: usize, look: Look) {
        *self.looks[thread].lock().unwrap_or_else(PoisonError::into_inner) = look;
    }

    pub(super) fn put_base(&self, thread: usize, look: Look) {
        *self.bases[thread].lock().unwrap_or_else(PoisonError::into_inner) = look;
    }

    /// `first` is of the first thread.
    pub(super) fn sum(&self, first: Look) -> Look {
        with_others(first, &self.looks)
    }

    pub(super) fn base(&self, first: Look) -> Look {
        with_others(first, &self.bases).seen_at(first.at)
    }
}

fn with_others(first: Look, all: &[Mutex<Look>]) -> Look {
    let others = all[1..].iter().map(|look| *look.lock().unwrap_or_else(PoisonError::into_inner));
    others.fold(first, |sum, look| sum.plus(&look))
}
