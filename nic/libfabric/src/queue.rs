//! What the application is told: completions and counters.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::{FI_ADDR_NOTAVAIL, fi_addr_t, fi_cq_tagged_entry};

/// The end of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What the application gets.
    pub entry: fi_cq_tagged_entry,
    /// The sender of the message, where that is asked for and known.
    pub source: fi_addr_t,
    /// Why it failed; 0 when it did not.
    pub errno: i32,
    /// Bytes that found no room.
    pub lost: usize,
}

impl From<fi_cq_tagged_entry> for Completion {
    fn from(entry: fi_cq_tagged_entry) -> Self {
        Self { entry, source: FI_ADDR_NOTAVAIL, errno: 0, lost: 0 }
    }
}

/// Completions that the application has not read yet.
#[derive(Debug)]
pub struct Queue {
    waiting: Mutex<VecDeque<Completion>>,
    size: usize,
    signalled: AtomicBool,
}

impl Queue {
    /// A queue for so many.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self { waiting: Mutex::default(), size, signalled: AtomicBool::new(false) }
    }

    /// Whether no operation should be begun before some are read.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.lock().len() >= self.size
    }

    /// Adds one.
    pub fn push(&self, completion: Completion) {
        self.lock().push_back(completion);
    }

    /// Takes up to `most` of operations that went well. `Err`: the oldest has failed.
    pub fn read(&self, most: usize, mut each: impl FnMut(usize, &Completion)) -> Result<usize, Failed> {
        let mut waiting = self.lock();
        let mut read = 0;
        while read < most
            && let Some(completion) = waiting.front()
        {
            match (completion.errno, read) {
                (0, _) => each(read, completion),
                (_, 0) => return Err(Failed),
                _ => break,
            }
            waiting.pop_front();
            read += 1;
        }
        Ok(read)
    }

    /// Takes the oldest if it has failed.
    pub fn read_failed(&self) -> Option<Completion> {
        let mut waiting = self.lock();
        waiting.front().filter(|completion| completion.errno != 0)?;
        waiting.pop_front()
    }

    /// Ends somebody's waiting for a completion.
    pub fn signal(&self) {
        self.signalled.store(true, Ordering::Release);
    }

    /// Whether the waiting is to end; asked once.
    pub fn take_signal(&self) -> bool {
        self.signalled.swap(false, Ordering::AcqRel)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Completion>> {
        // Whoever held it can have panicked only between whole completions.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The oldest operation of a queue has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// A counter.
#[derive(Debug, Default)]
pub struct Count {
    /// Operations that went well.
    pub done: AtomicU64,
    /// Operations that failed.
    pub failed: AtomicU64,
}

impl Count {
    /// Counts `operations` that went well.
    pub fn add_done(&self, operations: u64) {
        self.done.fetch_add(operations, Ordering::Relaxed);
    }

    /// Counts `operations` that failed.
    pub fn add_failed(&self, operations: u64) {
        self.failed.fetch_add(operations, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(op_context: usize, errno: i32) -> Completion {
        Completion { errno, ..fi_cq_tagged_entry { op_context, ..Default::default() }.into() }
    }

    #[test]
    fn a_failure_is_read_in_its_turn() {
        let queue = Queue::new(4);
        for (context, errno) in [(1, 0), (2, 0), (3, 5), (4, 0)] {
            assert!(!queue.is_full());
            queue.push(completion(context, errno));
        }
        assert!(queue.is_full());
        let read = |most| {
            let mut contexts = Vec::new();
            queue.read(most, |_, completion| contexts.push(completion.entry.op_context)).map(|_| contexts)
        };
        assert_eq!(queue.read_failed(), None);
        assert_eq!(read(1), Ok(vec![1]));
        assert_eq!(read(9), Ok(vec![2]));
        assert_eq!(read(9), Err(Failed));
        assert_eq!(queue.read_failed(), Some(completion(3, 5)));
        assert_eq!(read(9), Ok(vec![4]));
        assert_eq!(read(9), Ok(vec![]));
    }
}
