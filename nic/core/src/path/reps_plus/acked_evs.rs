//! The packets that the present ACK settles.

use crate::path::Ev;

/// Maximum number of entropy values in the buffer: those of an ACK of 16 packets.
pub(super) const MAX_BUFFER: usize = 16;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckedEvs {
    pub evs: [Ev; MAX_BUFFER],
    pub len: u8,
    /// The number of values of slow packets, from the end of `evs`.
    slow: u8,
    /// Whether they are the ACK's own echoes: then all of them count.
    pub echoed: bool,
}

impl AckedEvs {
    pub fn push(&mut self, ev: Ev, evs: u16) {
        if !self.is_full()
            && ev.index() < evs
            && let Some(slot) = self.evs.get_mut(usize::from(self.len))
        {
            *slot = ev;
            self.len += 1;
        }
    }

    pub fn push_slow(&mut self, ev: Ev) {
        if !self.is_full()
            && let Some(slot) = self.evs.iter_mut().rev().nth(usize::from(self.slow))
        {
            *slot = ev;
            self.slow += 1;
        }
    }

    pub fn is_slow(&self, ev: Ev) -> bool {
        self.evs.iter().rev().take(usize::from(self.slow)).any(|slow| *slow == ev)
    }

    /// Whether no packet has been added. With echoes those that are not slow are the ACK's own.
    pub fn is_empty(&self) -> bool {
        self.len + self.slow == 0 && !self.echoed
    }

    fn is_full(&self) -> bool {
        usize::from(self.len + self.slow) == MAX_BUFFER
    }

    pub fn clear(&mut self) {
        (self.len, self.slow, self.echoed) = (0, 0, false);
    }
}
