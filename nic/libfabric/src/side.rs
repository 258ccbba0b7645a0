//! One direction of an endpoint: where the ends of its operations are told.

use std::sync::Arc;

use crate::abi::FI_COMPLETION;
use crate::error::Errno;
use crate::queue::{Completion, Count, Queue};

/// What is bound to one direction.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// The completion queue.
    pub queue: Option<Arc<Queue>>,
    /// The counter.
    pub count: Option<Arc<Count>>,
    /// Whether only operations that ask for it are told of.
    pub is_selective: bool,
    /// Flags of operations that come without any.
    pub flags: u64,
}

impl Side {
    /// Whether an operation with these flags is told of when all goes well.
    #[must_use]
    pub fn tells(&self, flags: u64) -> bool {
        !self.is_selective || flags & FI_COMPLETION != 0
    }

    /// Whether completions have to be read before there is room for more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.is_full())
    }

    /// An operation went well.
    pub fn done(&self, completion: impl Into<Completion>, is_told: bool) {
        if let Some(count) = &self.count {
            count.add_done(1);
        }
        if is_told && let Some(queue) = &self.queue {
            queue.push(completion.into());
        }
    }

    /// An operation failed.
    pub fn failed(&self, completion: impl Into<Completion>, errno: Errno) {
        if let Some(count) = &self.count {
            count.add_failed(1);
        }
        if let Some(queue) = &self.queue {
            queue.push(Completion { errno: errno.0, ..completion.into() });
        }
    }
}
