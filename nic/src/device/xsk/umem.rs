//! The memory of the frames.

use std::io;

use memmap2::{MmapOptions, MmapRaw};

/// Memory of equal frames, shared with the kernel and the NIC: the UMEM.
#[derive(Debug)]
pub(super) struct Umem {
    map: MmapRaw,
    frame_size: usize,
}

impl Umem {
    pub(super) fn new(frames: u32, frame_size: u32) -> io::Result<Self> {
        let frame_size = frame_size as usize;
        let map = MmapOptions::new().len(frames as usize * frame_size).map_anon()?;
        Ok(Self { map: map.into(), frame_size })
    }

    pub(super) fn start(&self) -> u64 {
        self.map.as_ptr() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// Returns a frame's bytes from `at` on.
    ///
    /// # Safety
    /// Neither the kernel nor another borrower writes to this frame during the lifetime of the
    /// result.
    #[inline]
    pub(super) unsafe fn frame(&self, index: u32, at: usize, len: usize) -> &[u8] {
        let begin = self.begin_of(index, at, len);
        // SAFETY: `begin_of` checked that the bytes lie within the mapping, which lives as long as `self`; nobody writes to them, by contract.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(begin), len) }
    }

    /// Returns a frame's bytes from `at` on, to write.
    ///
    /// # Safety
    /// Neither the kernel nor another borrower accesses this frame during the lifetime of the
    /// result.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "frames have owners of their own, whom `Frames` knows")]
    pub(super) unsafe fn frame_mut(&self, index: u32, at: usize) -> &mut [u8] {
        let len = self.frame_size - at;
        let begin = self.begin_of(index, at, len);
        // SAFETY: as in `frame`; the contract excludes other borrowers and the kernel.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().add(begin), len) }
    }

    #[inline]
    fn begin_of(&self, index: u32, at: usize, len: usize) -> usize {
        let begin = index as usize * self.frame_size + at;
        assert!(
            at + len <= self.frame_size && begin + len <= self.map.len(),
            "{len} bytes from {at} on leave frame {index}"
        );
        begin
    }
}
