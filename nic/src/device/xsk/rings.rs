//! Moves frames between `Frames` and the four rings.

use std::io;

use xsk_rs::FrameDesc;

use super::{BATCH, XskDevice, sys};
use crate::device::frames::Place;

/// Empty receives in a row after which the socket is asked whether its interface is still there. A driver that sleeps for 10 ms between
/// polls notices within some 1.3 s.
pub(super) const RECEIVES_PER_CHECK: u32 = 128;

impl XskDevice {
    /// The frame that a descriptor of the kernel's lies in.
    pub(super) fn index_of(&self, descriptor: &FrameDesc) -> u32 {
        (descriptor.addr() / self.config.frame_size as usize) as u32
    }

    /// Puts free frames into the fill ring, except for those kept for sending.
    pub(super) fn refill(&mut self) {
        let rings = self.rings.get_mut();
        loop {
            // Frames in the rx ring still count as filled. So the rx ring, which has at least as many slots, cannot
            // overflow.
            let room = self.config.fill_ring.saturating_sub(self.frames.count(Place::Fill));
            let spare = self.frames.count(Place::Free).saturating_sub(self.tx_reserve);
            let wanted = room.min(spare).min(BATCH as u32);
            // The kernel shows a batch in rx a moment before it frees the fill slots.
            let batch = wanted.min(rings.fill.nb_free(wanted)) as usize;
            if batch == 0 {
                return;
            }
            for slot in &mut self.scratch[..batch] {
                let index = self.frames.take(Place::Fill).expect("no more than the free frames are taken");
                *slot = self.descriptors[index as usize];
            }
            // SAFETY: these frames are of this UMEM and were free: nobody else has them, and nobody touches them while in the ring.
            let produced = unsafe { rings.fill.produce(&self.scratch[..batch]) };
            assert!(produced == batch, "the fill ring has no room for {batch} frames after saying that it has");
        }
    }

    /// Takes back the frames that were sent.
    pub(super) fn reap(&mut self) {
        while self.frames.count(Place::Tx) as usize > self.pending.len() {
            // SAFETY: the completion ring holds frames of this UMEM only.
            let count = unsafe { self.rings.get_mut().completion.consume(&mut self.scratch[..]) };
            for at in 0..count {
                let index = self.index_of(&self.scratch[at]);
                self.frames.shift(index, Place::Tx, Place::Free);
            }
            self.stats.tx_completed += count as u64;
            if count < BATCH {
                return;
            }
        }
    }

    /// Puts pending frames into the tx ring, as many as it has room for.
    pub(super) fn submit(&mut self) {
        let tx = &mut self.rings.get_mut().tx;
        let pending = self.pending.len() as u32;
        // A driver may complete frames a moment before it frees their tx slots. Frames that do not fit wait for the
        // next flush.
        let batch = pending.min(tx.nb_free(pending)) as usize;
        // SAFETY: these frames are of this UMEM and in place Tx: the caller gave them up, and nobody touches them until completion.
        let produced = unsafe { tx.produce(&self.pending[..batch]) };
        assert!(produced == batch, "the tx ring has no room for {batch} frames after saying that it has");
        self.pending.drain(..batch);
    }

    /// Frames in the tx ring that the kernel has not taken yet.
    fn unsent(&mut self) -> u32 {
        self.config.tx_ring - self.rings.get_mut().tx.nb_free_exact()
    }

    /// Kicks until the kernel has taken all frames, or takes no more for now.
    pub(super) fn kick(&mut self) -> io::Result<()> {
        let mut unsent = self.unsent();
        while unsent > 0 {
            // In copy mode the kernel sends only within this call. In zero-copy mode the ring's flag says whether the
            // driver sleeps.
            if self.zero_copy && self.config.need_wakeup && !self.rings.get_mut().tx.needs_wakeup() {
                return Ok(());
            }
            self.stats.kicks += 1;
            let outcome = sys::kick(self.fd)?;
            if self.zero_copy {
                self.stats.kicks_deferred += u64::from(outcome != sys::Kick::Done);
                return Ok(());
            }
            // In copy mode EBUSY means that the driver dropped the frame; the frame still completes.
            self.stats.tx_dropped += u64::from(outcome == sys::Kick::Busy);
            self.reap();
            let left = self.unsent();
            if left == unsent {
                self.stats.kicks_deferred += 1;
                return Ok(());
            }
            unsent = left;
        }
        Ok(())
    }

    /// Counts a receive without a frame, and now and then asks the socket: a caller that only receives would not see that its
    /// interface was removed.
    pub(super) fn check_seldom(&mut self) -> io::Result<()> {
        self.empty_receives += 1;
        if self.empty_receives < RECEIVES_PER_CHECK {
            return Ok(());
        }
        self.empty_receives = 0;
        self.check_interface()
    }

    /// Fails with `ENETDOWN` once the interface was removed: that is the only error that the kernel leaves on the socket.
    pub(super) fn check_interface(&mut self) -> io::Result<()> {
        self.gone |= sys::pending_error(self.fd).is_err();
        if self.gone { Err(io::Error::from_raw_os_error(libc::ENETDOWN)) } else { Ok(()) }
    }

    /// Compares the rings with `Frames`. The kernel holds frames that are in no ring.
    pub(super) fn audit_rings(&self) -> Result<(), String> {
        let mut rings = self.rings.borrow_mut();
        let (rx, fill) = (rings.rx.nb_avail_exact(), self.config.fill_ring - rings.fill.nb_free_exact());
        if rx + fill > self.frames.count(Place::Fill) {
            return Err(format!(
                "{fill} frames in the fill ring and {rx} in rx, {} by place",
                self.frames.count(Place::Fill)
            ));
        }
        let (completed, tx) = (rings.completion.nb_avail_exact(), self.config.tx_ring - rings.tx.nb_free_exact());
        let pending = self.pending.len() as u32;
        if pending + tx + completed > self.frames.count(Place::Tx) {
            return Err(format!(
                "{pending} frames pending, {tx} in tx and {completed} in completion, {} by place",
                self.frames.count(Place::Tx)
            ));
        }
        Ok(())
    }
}
