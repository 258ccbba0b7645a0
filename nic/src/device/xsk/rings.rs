//! Moves frames between `Frames` and the four rings.

use std::io;

use super::socket::Kick;
use super::{XskDevice, place_of};
use crate::device::frames::FrameState;
use crate::device::{FrameId, Received};

/// Consecutive empty receives after which the socket is checked for a removed interface. A driver
/// that sleeps for 10 ms between polls notices within 1.3 s.
pub(super) const RECEIVES_PER_CHECK: u32 = 128;

impl XskDevice {
    /// Returns the address of a frame's packet, as the kernel counts.
    pub(super) fn address_of(&self, index: u32) -> u64 {
        u64::from(index) * u64::from(self.config.frame_size) + u64::from(self.begins[index as usize])
    }

    /// Puts free frames into the fill ring, except for those reserved for sending.
    pub(super) fn refill(&mut self) {
        // Frames in the rx ring count as filled, so that it, having at least as many slots, cannot
        // overflow.
        let room = self.config.fill_ring.saturating_sub(self.frames.count(FrameState::Fill));
        let spare = self.frames.count(FrameState::Free).saturating_sub(self.tx_reserve);
        // The kernel publishes a batch in rx before it frees the fill slots.
        let batch = self.socket.fill.room(room.min(spare));
        let (frames, size) = (&mut self.frames, u64::from(self.config.frame_size));
        self.socket.fill.put(batch, || {
            let index = frames.take(FrameState::Fill).expect("no more than the free frames are taken");
            // The kernel adds its headroom.
            u64::from(index) * size
        });
    }

    /// Takes arrived frames. Returns their number.
    #[inline]
    pub(super) fn take(&mut self, out: &mut Vec<Received>, most: u32) -> u32 {
        let Self { socket, frames, begins, stats, config, .. } = self;
        let received = socket.rx.take(most, |descriptor| {
            let (index, begin) = place_of(descriptor.addr, config.frame_size);
            frames.shift(index, FrameState::Fill, FrameState::Held);
            begins[index as usize] = begin;
            stats.rx_bytes += u64::from(descriptor.len);
            out.push(Received { frame: FrameId(index), len: descriptor.len, misrouted: false });
        });
        stats.rx += u64::from(received);
        received
    }

    /// Takes back frames that were sent.
    pub(super) fn reap(&mut self) {
        let (frames, size) = (&mut self.frames, self.config.frame_size);
        let count = self.socket.completion.take(u32::MAX, |address| {
            frames.shift(place_of(address, size).0, FrameState::Tx, FrameState::Free);
        });
        self.stats.tx_completed += u64::from(count);
    }

    /// Puts pending frames into the tx ring, as far as it has room.
    pub(super) fn submit(&mut self) {
        // A driver may complete frames before it frees their tx slots. Frames that do not fit wait
        // for the next flush.
        let batch = self.socket.tx.room(self.pending.len() as u32);
        let pending = &mut self.pending;
        self.socket.tx.put(batch, || pending.pop_front().expect("no more than are pending"));
    }

    /// Kicks until the kernel has taken all frames, or takes no more for now.
    pub(super) fn kick(&mut self) -> io::Result<()> {
        let mut unsent = self.socket.tx.waiting();
        while unsent > 0 {
            // In copy mode the kernel sends only within this call. In zero-copy mode the ring's
            // flag shows whether the driver sleeps; a polled driver sends within this call in any
            // case.
            if self.zero_copy && !self.polls && self.config.need_wakeup && !self.socket.tx.needs_wakeup() {
                return Ok(());
            }
            self.stats.kicks += 1;
            let outcome = self.socket.kick()?;
            if self.zero_copy {
                self.stats.kicks_deferred += u64::from(outcome != Kick::Done);
                // Polling runs only the receive routine of a driver that has a separate one for
                // sending.
                if self.polls && self.socket.tx.needs_wakeup() && self.socket.tx.waiting() > 0 {
                    self.socket.wake_all();
                }
                return Ok(());
            }
            // In copy mode EBUSY means that the driver dropped the frame; the frame still completes.
            self.stats.tx_dropped += u64::from(outcome == Kick::Busy);
            self.reap();
            let left = self.socket.tx.waiting();
            if left == unsent {
                self.stats.kicks_deferred += 1;
                return Ok(());
            }
            unsent = left;
        }
        Ok(())
    }

    /// Counts an empty receive, and periodically checks the socket: a caller that only receives
    /// would not notice that its interface was removed.
    pub(super) fn check_periodically(&mut self) -> io::Result<()> {
        self.empty_receives += 1;
        if self.empty_receives < RECEIVES_PER_CHECK {
            return Ok(());
        }
        self.empty_receives = 0;
        self.check_interface()
    }

    /// Fails with `ENETDOWN` after the interface was removed, the only error that the kernel leaves
    /// on the socket.
    pub(super) fn check_interface(&mut self) -> io::Result<()> {
        self.gone |= self.socket.has_failed();
        if self.gone { Err(io::Error::from_raw_os_error(libc::ENETDOWN)) } else { Ok(()) }
    }

    /// Compares the rings with `Frames`. Frames that are in no ring are in the kernel.
    pub(super) fn audit_rings(&self) -> Result<(), String> {
        let (rx, fill) = (self.socket.rx.waiting(), self.socket.fill.waiting());
        if rx + fill > self.frames.count(FrameState::Fill) {
            return Err(format!(
                "{fill} frames in the fill ring and {rx} in rx, {} by place",
                self.frames.count(FrameState::Fill)
            ));
        }
        let (completed, tx) = (self.socket.completion.waiting(), self.socket.tx.waiting());
        let pending = self.pending.len() as u32;
        if pending + tx + completed > self.frames.count(FrameState::Tx) {
            return Err(format!(
                "{pending} frames pending, {tx} in tx and {completed} in completion, {} by place",
                self.frames.count(FrameState::Tx)
            ));
        }
        Ok(())
    }
}
