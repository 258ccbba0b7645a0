//! Frames that switches send to each other.

use spray_pipeline::frame::Frame;
use spray_pipeline::scheme::{self, Notice};

use super::arena::Slot;
use super::tables::{Switches, frame};

impl Switches<'_> {
    /// Returns the next notice of switch `at`, and a host of the switch that it is for.
    #[inline]
    pub(super) fn poll_notice(&self, at: u32) -> Option<(u32, Notice)> {
        if self.common.first_host.is_empty() {
            return None;
        }
        let notice = scheme::poll(self, at)?;
        Some((*self.common.first_host.get(notice.to as usize)?, notice))
    }

    pub(super) fn begin_notice(&mut self, index: u32, entry: u32, notice: &Notice) {
        self.trail.begin_notice(entry, notice.note, notice.flow, notice.more);
        self.keep_trail(index);
    }

    /// Whether a notice has reached its destination switch; if so, the switch processes it.
    pub(super) fn hear(&mut self, index: u32, slot: &Slot) -> bool {
        let is_there = self.common.first_host.get(slot.place as usize) == Some(&slot.to);
        if is_there {
            self.trail.resume(self.trails[index as usize]);
            let mut frame = Frame { switch: slot.place, ..frame(slot, self.common.trimmed_len) };
            let _heeded = scheme::recall(self, &mut frame, slot.to);
        }
        is_there
    }
}
