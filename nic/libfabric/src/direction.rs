//! One direction of an endpoint.

use std::sync::Arc;

use crate::abi::FI_COMPLETION;
use crate::error::Errno;
use crate::queue::{Completion, Count, Queue};

/// The bindings of one direction.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    pub queue: Option<Arc<Queue>>,
    pub count: Option<Arc<Count>>,
    /// Whether success is only reported for operations with `FI_COMPLETION`.
    pub is_selective: bool,
    /// Default flags of operations.
    pub flags: u64,
}

impl Direction {
    /// Returns whether the success of an operation with these flags is reported.
    pub fn reports(&self, flags: u64) -> bool {
        !self.is_selective || flags & FI_COMPLETION != 0
    }

    /// Returns whether completions have to be read before there is space for more.
    pub fn is_full(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.is_full())
    }

    /// Counts a success, and reports it if `is_reported`.
    pub fn done(&self, completion: impl Into<Completion>, is_reported: bool) {
        if let Some(count) = &self.count {
            count.add_done(1);
        }
        if is_reported && let Some(queue) = &self.queue {
            queue.push(completion.into());
        }
    }

    /// Counts and reports a failure.
    pub fn failed(&self, completion: impl Into<Completion>, errno: Errno) {
        if let Some(count) = &self.count {
            count.add_failed(1);
        }
        if let Some(queue) = &self.queue {
            queue.push(Completion { errno: errno.0, ..completion.into() });
        }
    }
}
