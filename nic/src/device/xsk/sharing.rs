//! Forwards frames between the shards of an interface by descriptor, without a copy; the receiving
//! shard returns them to the queue of arrival.

use std::os::fd::RawFd;
use std::sync::Arc;

use super::umem::Umem;
use crate::device::mailboxes::Mailbox;
use crate::device::{FrameId, Received};

/// A frame that is forwarded to another shard, or returned.
#[derive(Debug)]
pub(super) struct FrameHandover {
    /// Its number among the frames of all queues.
    number: u32,
    len: u32,
    /// The offset of the packet.
    begin: u16,
}

/// Access to the frames of other shards' queues.
#[derive(Debug)]
pub(super) struct Sharing {
    mailbox: Mailbox<FrameHandover>,
    /// The memory of each queue, which outlives the queue's socket while it is read.
    memories: Arc<[Arc<Umem>]>,
    /// Maximum number of frames of a queue. Frame `i` of queue `n` has the number `n * frames + i`.
    frames: u32,
    /// The offset of the packet in each frame of another shard that is held here, by its number;
    /// otherwise [`ABSENT`].
    begins: Box<[u16]>,
    /// Frames that arrived on this shard's queues.
    arrived: u64,
    handed_over: u64,
}

/// Not a possible offset: a frame has 4,096 bytes at most.
const ABSENT: u16 = u16::MAX;

impl Sharing {
    pub(super) fn new(mailbox: Mailbox<FrameHandover>, memories: Arc<[Arc<Umem>]>, frames: u32) -> Self {
        let begins = vec![ABSENT; memories.len() * frames as usize].into();
        Self { mailbox, memories, frames, begins, arrived: 0, handed_over: 0 }
    }

    /// Returns whether this shard serves queue `place` of the interface.
    #[inline]
    pub(super) fn has_queue(&self, place: usize) -> bool {
        self.server(place) == self.mailbox.shard().number()
    }

    #[inline]
    fn server(&self, place: usize) -> u8 {
        self.mailbox.shard().shard_of_queue(place)
    }

    /// Forwards a frame of this shard's queue to the shard that it is for, if that is another one.
    /// Returns whether it did.
    #[inline]
    pub(super) fn forward(&mut self, number: u32, begin: u16, packet: &[u8]) -> bool {
        self.arrived += 1;
        let Some(shard) = self.mailbox.owner_of(packet) else { return false };
        let parcel = FrameHandover { number, len: packet.len() as u32, begin };
        // A shard that has ended accepts none.
        let passed = self.mailbox.forward(shard, parcel).is_ok();
        self.handed_over += u64::from(passed);
        passed
    }

    /// Takes up to `budget` forwarded frames. Frames of this shard that are returned go to `home`,
    /// by number.
    #[inline]
    pub(super) fn take_forwarded(&mut self, out: &mut Vec<Received>, budget: usize, mut home: impl FnMut(u32)) {
        let mut room = budget.min(out.capacity() - out.len());
        while room > 0
            && let Some(FrameHandover { number, len, begin }) = self.mailbox.take()
        {
            if self.has_queue((number / self.frames) as usize) {
                home(number);
                continue;
            }
            self.begins[number as usize] = begin;
            out.push(Received { frame: FrameId(number), len, misrouted: true });
            room -= 1;
        }
    }

    /// Returns a packet in a frame of another shard that is held here.
    #[inline]
    pub(super) fn frame(&self, id: &FrameId, len: u32) -> &[u8] {
        let (memory, index, begin) = self.find(id);
        // SAFETY: the frame's owner holds it for us until we hand it back, so neither the kernel nor that shard touches it; a mutable view of
        // it needs `&mut self`.
        unsafe { memory.frame(index, begin, len as usize) }
    }

    /// Returns the packet with the rest of its frame, to be written.
    #[inline]
    pub(super) fn frame_mut(&mut self, id: &FrameId) -> &mut [u8] {
        let (memory, index, begin) = self.find(id);
        // SAFETY: as above; `&mut self` excludes other views of ours.
        unsafe { memory.frame_mut(index, begin) }
    }

    /// # Panics
    /// When the frame is not held here.
    #[inline]
    fn find(&self, id: &FrameId) -> (&Umem, u32, usize) {
        let begin = self.begins[id.index()];
        assert!(begin != ABSENT, "frame {} of another shard is not held here", id.0);
        (&self.memories[(id.0 / self.frames) as usize], id.0 % self.frames, begin.into())
    }

    /// Returns a frame to the shard of its queue.
    ///
    /// # Panics
    /// When the frame is not held here.
    #[inline]
    pub(super) fn return_frame(&mut self, id: &FrameId) {
        self.find(id);
        self.begins[id.index()] = ABSENT;
        let parcel = FrameHandover { number: id.0, len: 0, begin: 0 };
        // A shard that has ended does not need it.
        let _ = self.mailbox.forward(self.server((id.0 / self.frames) as usize), parcel);
    }

    /// Wakes shards that have new frames, and publishes the number of arrivals.
    #[inline]
    pub(super) fn settle(&mut self) {
        self.mailbox.count(self.arrived);
        self.mailbox.wake();
    }

    /// Returns the number of frames that arrived at the interface, for all shards.
    pub(super) fn interface_rx_frames(&self) -> u64 {
        self.mailbox.arrived()
    }

    /// Returns the number of arrivals that were forwarded.
    pub(super) fn handed_over(&self) -> u64 {
        self.handed_over
    }

    pub(super) fn wake_fd(&self) -> RawFd {
        self.mailbox.wake_fd()
    }
}

impl Drop for Sharing {
    fn drop(&mut self) {
        self.mailbox.close();
        while let Some(FrameHandover { number, .. }) = self.mailbox.take() {
            if !self.has_queue((number / self.frames) as usize) {
                self.begins[number as usize] = 0;
                self.return_frame(&FrameId(number));
            }
        }
        self.mailbox.wake();
    }
}
