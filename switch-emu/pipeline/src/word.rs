//! A shared 64-bit word: an atomic in user space, a map cell in the kernel, or a `Cell`.

use core::cell::Cell;

/// A 64-bit word that several CPUs may use at once.
///
/// It orders no other memory. A lost update costs accuracy in one slot of a queue. The default
/// bodies are those of a word that one CPU writes: a shared one overrides all three.
//= docs/specs/virtual-queue.md#VQ-12 several cpus
pub trait Word: Sized {
    /// Returns the value.
    fn load(&self) -> u64;
    /// Replaces the value.
    fn store(&self, value: u64);
    /// Adds atomically, wrapping.
    #[inline(always)]
    fn add(&self, value: u64) {
        self.store(self.load().wrapping_add(value));
    }
    /// Replaces `seen` by `value` atomically, unless another CPU has replaced it.
    #[inline(always)]
    fn compare_set(&self, _seen: u64, value: u64) {
        self.store(value);
    }
    /// Returns the value and increments it atomically.
    #[inline(always)]
    fn next(&self) -> u64 {
        let value = self.load();
        self.store(value.wrapping_add(1));
        value
    }
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
        fn compare_set(&self, seen: u64, value: u64) {
            let _ = self.compare_exchange(seen, value, Relaxed, Relaxed);
        }
        fn next(&self) -> u64 {
            self.fetch_add(1, Relaxed)
        }
    }
}
