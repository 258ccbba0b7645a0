//! A queue of fixed capacity.

use alloc::boxed::Box;
use alloc::vec;

/// First in, first out, in storage allocated once.
#[derive(Clone, Debug)]
pub(super) struct Ring<T> {
    slots: Box<[T]>,
    head: usize,
    len: usize,
}

impl<T: Copy + Default> Ring<T> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { slots: vec![T::default(); capacity.max(1).next_power_of_two()].into_boxed_slice(), head: 0, len: 0 }
    }

    /// Appends `item`; `false` when there is no room.
    #[inline]
    pub(super) fn push(&mut self, item: T) -> bool {
        if self.is_full() {
            return false;
        }
        let tail = (self.head + self.len) & (self.slots.len() - 1);
        self.slots[tail] = item;
        self.len += 1;
        true
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let item = self.slots[self.head];
        self.head = (self.head + 1) & (self.slots.len() - 1);
        self.len -= 1;
        Some(item)
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.len == self.slots.len()
    }
}
