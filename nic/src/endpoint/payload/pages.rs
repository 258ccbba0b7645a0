//! Memory of incomplete messages. Pages of the operating system are zero without being written, so
//! that a peer that starts a long message costs a page, not the length.

use std::sync::Arc;

use bytes::Bytes;
use crossbeam_queue::ArrayQueue;
use memmap2::{Advice, MmapMut};

/// Maximum number of pooled pages; usually no more messages are received at a time.
const KEPT: usize = 16;
/// Shorter messages are on the heap.
const MIN_PAGED_BYTES: usize = 64 << 10;
/// Longer pages are not pooled.
const MAX_KEPT_BYTES: usize = 2 << 20;

/// Pages of messages that the user has dropped, for further messages: 32 MiB at most. New pages
/// cost a page fault per 4 KiB: with 3,000-byte packets on veth 15 % of a receiver's time.
#[derive(Debug, Clone)]
pub(crate) struct Pool(Arc<ArrayQueue<MmapMut>>);

impl Default for Pool {
    fn default() -> Self {
        Self(Arc::new(ArrayQueue::new(KEPT)))
    }
}

impl Pool {
    /// Returns a buffer of `bytes`. With `whole`, all of it may be backed at once, and its content
    /// is arbitrary: a message is returned only after all of it was written. Otherwise only the
    /// written pages are backed.
    pub(in crate::endpoint) fn take(&self, bytes: u64, whole: bool) -> Buffer {
        let Ok(bytes) = usize::try_from(bytes) else { return Buffer::NONE };
        match whole {
            true if bytes < MIN_PAGED_BYTES => Buffer::Heap(vec![0; bytes]),
            true => match self.kept(bytes) {
                Some(map) => self.paged(map, bytes),
                None => self.fresh(bytes, true),
            },
            false => self.fresh(bytes, false),
        }
    }

    /// Returns pooled pages that are as long, or at most an eighth longer.
    fn kept(&self, bytes: usize) -> Option<MmapMut> {
        for _ in 0..self.0.len() {
            let map = self.0.pop()?;
            if (bytes..=bytes + bytes / 8).contains(&map.len()) {
                return Some(map);
            }
            drop(self.0.force_push(map));
        }
        None
    }

    fn fresh(&self, bytes: usize, whole: bool) -> Buffer {
        let map = MmapMut::map_anon(bytes).and_then(|map| {
            // A huge page would back the memory of 512.
            let small = if whole { Ok(()) } else { map.advise(Advice::NoHugePage) };
            // A kernel without huge pages refuses.
            small.or_else(|error| if error.raw_os_error() == Some(libc::EINVAL) { Ok(()) } else { Err(error) })?;
            Ok(map)
        });
        // A system without pages may have heap memory.
        map.map_or_else(|_| Buffer::Heap(vec![0; bytes]), |map| self.paged(map, bytes))
    }

    fn paged(&self, map: MmapMut, bytes: usize) -> Buffer {
        Buffer::Pages(Pages { map: Some(map), bytes, home: self.clone() })
    }
}

/// Pages that return to the pool when dropped.
#[derive(Debug)]
pub(crate) struct Pages {
    map: Option<MmapMut>,
    bytes: usize,
    home: Pool,
}

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        self.map.as_ref().and_then(|map| map.get(..self.bytes)).unwrap_or_default()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if let Some(map) = self.map.take()
            && map.len() <= MAX_KEPT_BYTES
        {
            // The oldest is replaced, since messages may have another length now.
            drop(self.home.0.force_push(map));
        }
    }
}

/// The bytes of a message that is being received.
#[derive(Debug)]
pub(crate) enum Buffer {
    Heap(Vec<u8>),
    Pages(Pages),
}

impl Buffer {
    /// The buffer of a message with a lent payload.
    pub(in crate::endpoint) const NONE: Self = Self::Heap(Vec::new());

    /// Writes payload from `offset` on. Returns `false`, and writes nothing, if it would exceed the
    /// buffer.
    #[inline]
    pub(in crate::endpoint) fn write(&mut self, offset: u64, payload: &[u8]) -> bool {
        let Ok(offset) = usize::try_from(offset) else { return false };
        let Some(end) = offset.checked_add(payload.len()) else { return false };
        let Some(to) = self.as_mut().get_mut(offset..end) else { return false };
        to.copy_from_slice(payload);
        true
    }

    /// Returns its bytes if they are on the heap.
    pub(in crate::endpoint) fn heap_bytes(&self) -> u64 {
        if let Self::Heap(bytes) = self { bytes.len() as u64 } else { 0 }
    }

    fn as_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(bytes) => bytes,
            Self::Pages(Pages { map, bytes, .. }) => {
                map.as_mut().and_then(|map| map.get_mut(..*bytes)).unwrap_or_default()
            }
        }
    }
}

impl From<Buffer> for Bytes {
    fn from(buffer: Buffer) -> Self {
        match buffer {
            Buffer::Heap(bytes) => bytes.into(),
            Buffer::Pages(pages) => Self::from_owner(pages),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreferenced_pages_return_to_the_pool() {
        let pool = Pool::default();
        let take = |bytes: usize| Bytes::from(pool.take(bytes as u64, true));
        let (large, shared) = (take(200_000), take(200_000));
        let (at, other) = (large.as_ptr(), shared.clone());
        drop((large, shared, take(100), take(MAX_KEPT_BYTES + 1)));
        assert_eq!(pool.0.len(), 1, "neither shared, small nor very large buffers");
        assert_eq!((take(90_000).len(), take(300_000).len()), (90_000, 300_000), "not in a buffer of another size");
        let again = take(180_000);
        assert_eq!((again.len(), again.as_ptr()), (180_000, at));
        let many: Vec<_> = (0..100).map(|number| take(MIN_PAGED_BYTES + number)).collect();
        drop(many);
        assert_eq!((pool.0.len(), other[0]), (KEPT, 0));
    }

    /// A peer that starts messages and does not continue them uses one page for each.
    #[test]
    fn a_long_message_uses_memory_as_it_arrives() {
        let mut buffer = Pool::default().take(1 << 30, false);
        let resident_pages = || -> u64 {
            let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
            statm.split(' ').nth(1).unwrap().parse().unwrap()
        };
        let before = resident_pages();
        buffer.as_mut()[(1 << 30) - 1] = 1;
        // Tolerates the memory of tests that run concurrently.
        assert!(resident_pages() < before + (1 << 29) / 4096);
        assert_eq!(Bytes::from(buffer)[(1 << 30) - 1], 1);
    }
}
