//! An allocator that counts, for tests of what is allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts this thread's allocations.
pub struct Counting;

/// What one thread has allocated.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub allocations: u64,
    /// Bytes that it has allocated and not freed.
    pub live_bytes: i64,
}

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { allocations: 0, live_bytes: 0 }) };
}

/// What this thread has allocated so far.
pub fn counts() -> Counts {
    COUNTS.with(Cell::get)
}

// SAFETY: every call is passed on unchanged to the system's allocator; the counter allocates nothing, being const and without a
// destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNTS.with(|counts| {
            let Counts { allocations, live_bytes } = counts.get();
            counts.set(Counts { allocations: allocations + 1, live_bytes: live_bytes + layout.size() as i64 });
        });
        // SAFETY: by the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        COUNTS.with(|counts| {
            let Counts { allocations, live_bytes } = counts.get();
            counts.set(Counts { allocations, live_bytes: live_bytes - layout.size() as i64 });
        });
        // SAFETY: by the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}
