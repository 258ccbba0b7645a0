//! The word that all CPUs share, and functions on queues of it.

use core::cell::UnsafeCell;
use core::intrinsics::{AtomicOrdering, atomic_cxchg, atomic_xadd};
use spray_pipeline::queue::{Drain, Queue, QueueWord};
use spray_pipeline::word::Word;

/// A word of a map that all CPUs share.
#[repr(transparent)]
pub struct SharedWord(UnsafeCell<u64>);

// Volatile for the reason that `CpuWord` is.
impl Word for SharedWord {
    #[inline(always)]
    fn load(&self) -> u64 {
        // SAFETY: an aligned word of a live map value.
        unsafe { self.0.get().read_volatile() }
    }
    #[inline(always)]
    fn store(&self, value: u64) {
        // SAFETY: as above.
        unsafe { self.0.get().write_volatile(value) }
    }
    #[inline(always)]
    fn add(&self, value: u64) {
        // SAFETY: as above; one atomic instruction.
        unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::Relaxed }>(self.0.get(), value) };
    }
    #[inline(always)]
    fn compare_set(&self, seen: u64, value: u64) {
        const SEQ_CST: AtomicOrdering = AtomicOrdering::SeqCst;
        // SAFETY: as above.
        unsafe { atomic_cxchg::<u64, SEQ_CST, SEQ_CST>(self.0.get(), seen, value) };
    }
    #[inline(always)]
    fn next(&self) -> u64 {
        // Not relaxed, for which the compiler emits an instruction without the previous value.
        // SAFETY: as above.
        unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::SeqCst }>(self.0.get(), 1) }
    }
}

impl QueueWord for SharedWord {
    #[inline(always)]
    fn walk(queue: &Queue<Self>, from: u64, to: u64, drain: &Drain) {
        // SAFETY: both are references, valid for the call.
        unsafe { spray_walk(queue, from, to, drain) };
    }
    #[inline(always)]
    fn stride(queue: &Queue<Self>, from: u64, to: u64, drain: &Drain) {
        // SAFETY: as above.
        unsafe { spray_stride(queue, from, to, drain) };
    }
}

/// [`Queue::walk`] as a global function, checked once: inlined everywhere, its 128 rounds would
/// exceed the verifier's limits. The pointers must be null or valid.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn spray_walk(queue: *const Queue<SharedWord>, from: u64, to: u64, drain: *const Drain) -> u32 {
    // The verifier requires the null checks: it only knows the pointers' types.
    // SAFETY: by this function's contract.
    if let (Some(queue), Some(drain)) = unsafe { (queue.as_ref(), drain.as_ref()) } {
        queue.walk(from, to, drain);
    }
    0
}

/// [`Queue::stride`] as a global function, for the same reason. The pointers must be null or valid.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn spray_stride(queue: *const Queue<SharedWord>, from: u64, to: u64, drain: *const Drain) -> u32 {
    // SAFETY: by this function's contract.
    if let (Some(queue), Some(drain)) = unsafe { (queue.as_ref(), drain.as_ref()) } {
        queue.stride(from, to, drain);
    }
    0
}
