//! A counting allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Forwards to the system's allocator and counts this thread's allocations.
pub struct Counting;

/// The allocations of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub allocations: u64,
    /// Bytes allocated and not yet freed.
    pub live_bytes: i64,
}

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { allocations: 0, live_bytes: 0 }) };
}

/// Returns the counts of this thread so far.
pub fn counts() -> Counts {
    COUNTS.with(Cell::get)
}

// SAFETY: every call is forwarded unchanged to the system's allocator; the counter itself allocates
// nothing, because it is const and has no destructor.
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
