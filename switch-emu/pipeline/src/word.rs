//! A shared 64-bit word: an atomic in userspace, a map cell in the kernel, a `Cell` in a simulator.

use core::cell::Cell;

/// A 64-bit word that several CPUs may use at once.
///
/// Orders nothing but itself: a lost update costs accuracy of one slot, never more.
pub trait Word {
    /// The present value.
    fn load(&self) -> u64;
    /// Replaces the value.
    fn store(&self, value: u64);
    /// Adds, wrapping, in one step.
    fn add(&self, value: u64);
    /// Replaces `old` by `new`; false when the value was another.
    fn exchange(&self, old: u64, new: u64) -> bool;
}

impl Word for Cell<u64> {
    #[inline(always)]
    fn load(&self) -> u64 {
        self.get()
    }
    #[inline(always)]
    fn store(&self, value: u64) {
        self.set(value);
    }
    #[inline(always)]
    fn add(&self, value: u64) {
        self.set(self.get().wrapping_add(value));
    }
    #[inline(always)]
    fn exchange(&self, old: u64, new: u64) -> bool {
        let equal = self.get() == old;
        if equal {
            self.set(new);
        }
        equal
    }
}

#[cfg(not(target_arch = "bpf"))]
mod atomic {
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

    impl super::Word for AtomicU64 {
        fn load(&self) -> u64 {
            AtomicU64::load(self, Relaxed)
        }
        fn store(&self, value: u64) {
            AtomicU64::store(self, value, Relaxed);
        }
        fn add(&self, value: u64) {
            self.fetch_add(value, Relaxed);
        }
        fn exchange(&self, old: u64, new: u64) -> bool {
            self.compare_exchange(old, new, Relaxed, Relaxed).is_ok()
        }
    }
}
