//! Completions and counters.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::{FI_ADDR_NOTAVAIL, fi_addr_t, fi_cq_tagged_entry};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub entry: fi_cq_tagged_entry,
    /// Sender of the message, if requested and known.
    pub source: fi_addr_t,
    /// The error, or 0.
    pub errno: i32,
    /// Number of bytes that did not fit.
    pub lost: usize,
}

impl From<fi_cq_tagged_entry> for Completion {
    fn from(entry: fi_cq_tagged_entry) -> Self {
        Self { entry, source: FI_ADDR_NOTAVAIL, errno: 0, lost: 0 }
    }
}

/// Unread completions.
#[derive(Debug)]
pub struct Queue {
    waiting: Mutex<VecDeque<Completion>>,
    size: usize,
    signalled: AtomicBool,
}

impl Queue {
    pub fn new(size: usize) -> Self {
        Self { waiting: Mutex::default(), size, signalled: AtomicBool::new(false) }
    }

    /// Returns whether completions have to be read before new operations.
    pub fn is_full(&self) -> bool {
        self.lock().len() >= self.size
    }

    pub fn push(&self, completion: Completion) {
        self.lock().push_back(completion);
    }

    /// Removes up to `most` successful completions. Fails if the oldest is an error.
    pub fn read(&self, most: usize, mut each: impl FnMut(usize, &Completion)) -> Result<usize, ErrorPending> {
        let mut waiting = self.lock();
        let mut read = 0;
        while read < most
            && let Some(completion) = waiting.front()
        {
            match (completion.errno, read) {
                (0, _) => each(read, completion),
                (_, 0) => return Err(ErrorPending),
                _ => break,
            }
            waiting.pop_front();
            read += 1;
        }
        Ok(read)
    }

    pub fn read_failed(&self) -> Option<Completion> {
        let mut waiting = self.lock();
        waiting.front().filter(|completion| completion.errno != 0)?;
        waiting.pop_front()
    }

    /// Ends a blocked read.
    pub fn signal(&self) {
        self.signalled.store(true, Ordering::Release);
    }

    /// Returns whether a blocked read has to end, and resets the signal.
    pub fn take_signal(&self) -> bool {
        self.signalled.swap(false, Ordering::AcqRel)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Completion>> {
        // A panic can only happen between updates.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The oldest completion is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorPending;

#[derive(Debug, Default)]
pub struct Count {
    pub done: AtomicU64,
    pub failed: AtomicU64,
}

impl Count {
    pub fn add_done(&self, operations: u64) {
        self.done.fetch_add(operations, Ordering::Relaxed);
    }

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
    fn failures_are_read_in_order() {
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
        assert_eq!(read(9), Err(ErrorPending));
        assert_eq!(queue.read_failed(), Some(completion(3, 5)));
        assert_eq!(read(9), Ok(vec![4]));
        assert_eq!(read(9), Ok(vec![]));
    }
}
