//! One end of a ring shared with the kernel (`Documentation/networking/af_xdp.rst`).
//!
//! Both indices count up and wrap. The side that writes an index thereby publishes the slots before
//! it: ours are stored with release, the kernel's loaded with acquire.

use std::{
    io,
    os::fd::RawFd,
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering},
};

use memmap2::{MmapOptions, MmapRaw};

#[derive(Debug)]
struct Ring<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    slots: NonNull<T>,
    /// A power of two.
    size: u32,
    /// The mapping that the pointers point into.
    _map: MmapRaw,
}

// SAFETY: the pages belong to the process, not to a thread; slots are plain numbers.
unsafe impl<T: Send> Send for Ring<T> {}

/// The offsets and size of a ring in its socket.
pub(super) struct Location {
    pub(super) socket: RawFd,
    pub(super) page: u64,
    pub(super) slots: u32,
    pub(super) offsets: libc::xdp_ring_offset,
}

impl<T: Copy> Ring<T> {
    fn map(at: &Location) -> io::Result<Self> {
        let offsets = &at.offsets;
        let bytes = offsets.desc as usize + at.slots as usize * size_of::<T>();
        let map = MmapOptions::new().len(bytes).offset(at.page).populate().map_raw(at.socket)?;
        // The last slot lies within the mapping, and so do all.
        let _last: NonNull<T> = place(&map, bytes - size_of::<T>());
        Ok(Self {
            producer: place(&map, offsets.producer as usize),
            consumer: place(&map, offsets.consumer as usize),
            flags: place(&map, offsets.flags as usize),
            slots: place(&map, offsets.desc as usize),
            size: at.slots,
            _map: map,
        })
    }

    #[inline]
    fn producer(&self) -> &AtomicU32 {
        // SAFETY: it points into `_map`, is aligned, and both sides use it as an atomic.
        unsafe { self.producer.as_ref() }
    }

    #[inline]
    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as for the producer's.
        unsafe { self.consumer.as_ref() }
    }

    #[inline]
    fn slot(&self, number: u32) -> NonNull<T> {
        // SAFETY: `size` is a power of two, so the masked number is below it, and `map` checked the last slot.
        unsafe { self.slots.add((number & (self.size - 1)) as usize) }
    }
}

/// Returns a pointer `at` bytes from the start.
///
/// # Panics
/// When no `T` fits there.
fn place<T>(map: &MmapRaw, at: usize) -> NonNull<T> {
    assert!(at.checked_add(size_of::<T>()).is_some_and(|end| end <= map.len()), "{at} lies behind {}", map.len());
    assert!(at.is_multiple_of(align_of::<T>()), "{at} is not aligned");
    NonNull::new(map.as_mut_ptr().wrapping_add(at).cast()).expect("nothing is mapped at address zero")
}

/// The producer side of a ring: fill or tx.
#[derive(Debug)]
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// The next slot to write.
    next: u32,
    /// The end of the room at the last check.
    end: u32,
}

impl<T: Copy> Producer<T> {
    pub(super) fn map(at: &Location) -> io::Result<Self> {
        let ring = Ring::map(at)?;
        let next = ring.producer().load(Ordering::Relaxed);
        Ok(Self { end: next, ring, next })
    }

    /// Returns the number of free slots, at most `wanted`.
    #[inline]
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        if self.end.wrapping_sub(self.next) < wanted {
            self.end = self.ring.consumer().load(Ordering::Acquire).wrapping_add(self.ring.size);
        }
        self.end.wrapping_sub(self.next).min(wanted)
    }

    /// Writes `count` descriptors, no more than [`room`](Self::room) returned, and publishes them.
    #[inline]
    pub(super) fn put(&mut self, count: u32, mut each: impl FnMut() -> T) {
        assert!(self.end.wrapping_sub(self.next) >= count, "no room for {count} descriptors");
        for number in 0..count {
            // SAFETY: the slot lies within the ring; it is before `end`, so the kernel does not read it until the store below.
            unsafe { self.ring.slot(self.next.wrapping_add(number)).write(each()) };
        }
        self.next = self.next.wrapping_add(count);
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// Returns the number of descriptors that the kernel has not taken.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.next.wrapping_sub(self.ring.consumer().load(Ordering::Acquire))
    }

    /// Returns whether the kernel needs a system call to continue.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        // SAFETY: it points into the mapping, is aligned, and the kernel writes it as one word.
        unsafe { self.ring.flags.as_ref() }.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// The consumer side of a ring: completion or rx.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    next: u32,
}

impl<T: Copy> Consumer<T> {
    pub(super) fn map(at: &Location) -> io::Result<Self> {
        let ring = Ring::map(at)?;
        let next = ring.consumer().load(Ordering::Relaxed);
        Ok(Self { ring, next })
    }

    /// Reads up to `most` descriptors. Returns their number.
    #[inline]
    pub(super) fn take(&mut self, most: u32, mut each: impl FnMut(T)) -> u32 {
        let count = self.waiting().min(most);
        for number in 0..count {
            // SAFETY: the slot lies within the ring; it is before the producer's index, so the kernel has written it, and does not again
            // until the store below.
            each(unsafe { self.ring.slot(self.next.wrapping_add(number)).read() });
        }
        if count > 0 {
            self.next = self.next.wrapping_add(count);
            self.ring.consumer().store(self.next, Ordering::Release);
        }
        count
    }

    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.ring.producer().load(Ordering::Acquire).wrapping_sub(self.next)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        fs::File,
        os::fd::{AsRawFd, FromRawFd},
        os::unix::fs::FileExt,
    };

    use proptest::prelude::*;

    use super::*;

    const SLOTS: u32 = 8;
    const OFFSETS: libc::xdp_ring_offset = libc::xdp_ring_offset { producer: 0, consumer: 64, flags: 128, desc: 192 };

    /// Creates a ring in a file whose indices start at `first`, and returns both ends: the test
    /// plays the kernel's part.
    fn both_ends(first: u32) -> (Producer<u64>, Consumer<u64>) {
        // SAFETY: the name ends in a NUL; the result is checked below.
        let fd = unsafe { libc::memfd_create(c"ring".as_ptr(), 0) };
        assert!(fd >= 0, "memfd: {}", io::Error::last_os_error());
        // SAFETY: the descriptor was just created by the call above.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(4096).unwrap();
        for index in [OFFSETS.producer, OFFSETS.consumer] {
            file.write_all_at(&first.to_ne_bytes(), index).unwrap();
        }
        let at = Location { socket: file.as_raw_fd(), page: 0, slots: SLOTS, offsets: OFFSETS };
        (Producer::map(&at).unwrap(), Consumer::map(&at).unwrap())
    }

    proptest! {
        /// A ring of eight slots behaves as a bounded queue, also where the indices wrap.
        #[test]
        fn a_ring_is_a_bounded_queue(first in prop_oneof![Just(0), Just(u32::MAX - 3), any::<u32>()],
                                     steps in prop::collection::vec((any::<bool>(), 0..12_u32), 1..200)) {
            let (mut producer, mut consumer) = both_ends(first);
            let (mut queue, mut next) = (VecDeque::new(), 0_u64);
            for (puts, count) in steps {
                if puts {
                    let room = producer.room(count);
                    prop_assert_eq!(room, count.min(SLOTS - queue.len() as u32));
                    producer.put(room, || { next += 1; queue.push_back(next); next });
                } else {
                    let mut got = Vec::new();
                    prop_assert_eq!(consumer.take(count, |one| got.push(one)) as usize, got.len());
                    let expected: Vec<u64> = queue.drain(..queue.len().min(count as usize)).collect();
                    prop_assert_eq!(got, expected);
                }
                prop_assert_eq!(producer.waiting() as usize, queue.len());
                prop_assert_eq!(consumer.waiting() as usize, queue.len());
                prop_assert!(!producer.needs_wakeup());
            }
        }
    }

    #[test]
    #[should_panic(expected = "no room for 9 descriptors")]
    fn more_descriptors_than_free_slots_panic() {
        let (mut producer, _consumer) = both_ends(0);
        producer.room(9);
        producer.put(9, || 0);
    }
}
