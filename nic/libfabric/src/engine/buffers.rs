//! Application memory, which the provider uses from a call until its completion.
#![expect(unsafe_code, reason = "the application hands over addresses")]

use libc::iovec;

pub const MAX_PIECES: usize = 4;

#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    pieces: [(*mut u8, usize); MAX_PIECES],
    bytes: usize,
}

// SAFETY: by the contract of `Buffers::new`, the memory may be used on any thread.
unsafe impl Send for Buffers {}

impl Default for Buffers {
    fn default() -> Self {
        Self { pieces: [(std::ptr::null_mut(), 0); MAX_PIECES], bytes: 0 }
    }
}

impl Buffers {
    /// Combines `pieces`; returns `None` if they are too many or their sizes overflow.
    ///
    /// # Safety
    /// Until the message is completed and no copy of this value is used any more, every piece is
    /// valid on any thread for reads, if it is sent, or for writes, if it is received into.
    pub unsafe fn new(pieces: &[iovec]) -> Option<Self> {
        let mut all = [(std::ptr::null_mut(), 0); MAX_PIECES];
        let mut bytes = 0_usize;
        for (at, piece) in pieces.iter().enumerate() {
            *all.get_mut(at)? = (piece.iov_base.cast(), piece.iov_len);
            bytes = bytes.checked_add(piece.iov_len)?;
        }
        Some(Self { pieces: all, bytes })
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Skips the first `bytes`.
    pub fn skip(mut self, bytes: usize) -> Self {
        let mut skipped = bytes.min(self.bytes);
        self.bytes -= skipped;
        for (at, len) in &mut self.pieces {
            let here = skipped.min(*len);
            (*at, *len) = (at.wrapping_add(here), *len - here);
            skipped -= here;
        }
        self
    }

    /// Returns the address of the first byte, or 0 if empty.
    pub fn address(&self) -> usize {
        self.pieces.iter().find(|(_, len)| *len > 0).map_or(0, |(at, _)| at.addr())
    }

    /// Copies from `offset` into `to`, up to the end of the buffers.
    pub fn read(&self, offset: usize, to: &mut [u8]) {
        let mut done = 0;
        self.each(offset, to.len(), |at, bytes| {
            // SAFETY: `each` passes parts of the pieces, which are valid for reads by the contract of `new`, with at most
            // `to.len()` bytes in total. No Rust reference points to the application's memory, so the two do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(at, to[done..done + bytes].as_mut_ptr(), bytes) };
            done += bytes;
        });
    }

    /// Copies `from` into the buffers as far as it fits; returns the number of bytes.
    pub fn write(&self, from: &[u8]) -> usize {
        let mut done = 0;
        self.each(0, from.len(), |at, bytes| {
            // SAFETY: as in `read`, in the other direction.
            unsafe { std::ptr::copy_nonoverlapping(from[done..done + bytes].as_ptr(), at, bytes) };
            done += bytes;
        });
        done
    }

    /// Calls `part` with the parts of the pieces that cover `bytes` from `offset` on.
    fn each(&self, mut offset: usize, mut bytes: usize, mut part: impl FnMut(*mut u8, usize)) {
        for &(at, len) in &self.pieces {
            let skipped = offset.min(len);
            let taken = (len - skipped).min(bytes);
            if taken > 0 {
                part(at.wrapping_add(skipped), taken);
            }
            offset -= skipped;
            bytes -= taken;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: &mut [u8]) -> iovec {
        iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }
    }

    #[test]
    fn pieces_are_used_in_sequence() {
        let (mut first, mut second) = (*b"abc", *b"defgh");
        let none = iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let pieces = [piece(&mut first), none, piece(&mut second)];
        // SAFETY: both arrays outlive `buffers`, and are not accessed while it is used.
        let buffers = unsafe { Buffers::new(&pieces) }.unwrap();
        assert_eq!(buffers.bytes(), 8);
        for (offset, expected) in [(0, *b"abcd"), (2, *b"cdef"), (4, *b"efgh"), (6, *b"gh--"), (9, *b"----")] {
            let mut to = *b"----";
            buffers.read(offset, &mut to);
            assert_eq!(to, expected, "{offset}");
        }
        assert_eq!((buffers.write(b"12345"), buffers.write(b"123456789")), (5, 8));
        let behind = buffers.skip(4);
        assert_eq!((behind.bytes(), behind.address()), (4, pieces[2].iov_base.addr() + 1));
        assert_eq!((behind.write(b"wxyz"), behind.skip(9).bytes(), behind.skip(9).address()), (4, 0, 0));
        assert_eq!((&first, &second), (b"123", b"4wxyz"));
    }

    #[test]
    fn too_much_is_refused() {
        let none = iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let long = iovec { iov_base: std::ptr::null_mut(), iov_len: usize::MAX };
        // SAFETY: nothing is read or written.
        let made = unsafe { [Buffers::new(&[none; MAX_PIECES + 1]), Buffers::new(&[long; 2])] };
        assert!(made.iter().all(Option::is_none));
    }
}
