//! Memory that is mapped: the frames, and the rings.

use std::{io, os::fd::RawFd, ptr, ptr::NonNull};

/// Pages of this process, unmapped when dropped.
#[derive(Debug)]
pub(super) struct Map {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the pages belong to the process, not to a thread, and a `Map` lends no reference to them by itself.
unsafe impl Send for Map {}
// SAFETY: as above; who makes references answers for there being no others.
unsafe impl Sync for Map {}

impl Map {
    /// Pages of our own, all zeros.
    pub(super) fn anonymous(bytes: usize) -> io::Result<Self> {
        Self::new(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    /// Pages that the kernel shares by a socket, at an offset that says which.
    pub(super) fn of(socket: RawFd, bytes: usize, offset: libc::off_t) -> io::Result<Self> {
        Self::new(bytes, libc::MAP_SHARED | libc::MAP_POPULATE, socket, offset)
    }

    fn new(bytes: usize, flags: i32, fd: RawFd, offset: libc::off_t) -> io::Result<Self> {
        // SAFETY: the kernel chooses the place, so nothing that is mapped already changes; the result is checked below.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at address zero"))?;
        Ok(Self { start, bytes })
    }

    /// The place `at` bytes from the start.
    ///
    /// # Panics
    /// Where no `T` fits there.
    pub(super) fn place<T>(&self, at: usize) -> NonNull<T> {
        assert!(at.checked_add(size_of::<T>()).is_some_and(|end| end <= self.bytes), "{at} lies behind {}", self.bytes);
        assert!(at.is_multiple_of(align_of::<T>()), "{at} is not aligned");
        // SAFETY: as checked above, it lies within the mapping.
        unsafe { self.start.add(at) }.cast()
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: these pages were mapped by `new`, and a reference into them borrows `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The memory of equal frames, which the kernel and the NIC read and write as well: the UMEM.
#[derive(Debug)]
pub(super) struct Umem {
    map: Map,
    frame_size: usize,
}

impl Umem {
    pub(super) fn new(frames: u32, frame_size: u32) -> io::Result<Self> {
        let frame_size = frame_size as usize;
        Ok(Self { map: Map::anonymous(frames as usize * frame_size)?, frame_size })
    }

    pub(super) fn start(&self) -> u64 {
        self.map.start.as_ptr() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.map.bytes as u64
    }

    /// A frame's bytes from `at` on.
    ///
    /// # Safety
    /// Nobody writes to this frame as long as the result lives: neither the kernel nor another borrower.
    #[inline]
    pub(super) unsafe fn frame(&self, index: u32, at: usize, len: usize) -> &[u8] {
        let begin = self.begin_of(index, at, len);
        // SAFETY: `begin_of` checked that the bytes lie within the mapping, which lives as long as `self`; nobody writes to them, by contract.
        unsafe { std::slice::from_raw_parts(self.map.start.as_ptr().add(begin), len) }
    }

    /// A frame's bytes from `at` on, to write.
    ///
    /// # Safety
    /// Nobody else reads or writes this frame as long as the result lives: neither the kernel nor another borrower.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "frames have owners of their own, whom `Frames` knows")]
    pub(super) unsafe fn frame_mut(&self, index: u32, at: usize) -> &mut [u8] {
        let len = self.frame_size - at;
        let begin = self.begin_of(index, at, len);
        // SAFETY: as in `frame`; the contract excludes other borrowers and the kernel.
        unsafe { std::slice::from_raw_parts_mut(self.map.start.as_ptr().add(begin), len) }
    }

    #[inline]
    fn begin_of(&self, index: u32, at: usize, len: usize) -> usize {
        let begin = index as usize * self.frame_size + at;
        assert!(
            at + len <= self.frame_size && begin + len <= self.map.bytes,
            "{len} bytes from {at} on leave frame {index}"
        );
        begin
    }
}
