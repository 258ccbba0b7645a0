//! The circular buffer of entropy values.

use super::RecycledEvs;
use crate::path::Ev;

impl RecycledEvs {
    pub(super) fn cache(&mut self, ev: Ev, depth: u8) {
        let head = self.head;
        if let Some(slot) = self.cached.get_mut(usize::from(head)) {
            *slot = ev;
        }
        self.filled += u8::from(head == self.filled);
        self.head = if head + 1 < depth { head + 1 } else { 0 };
        self.valid = (self.valid + 1).min(depth);
    }

    /// Uses the oldest valid value. There must be one.
    pub(super) fn oldest(&mut self, depth: u8) -> Ev {
        let at = if self.head >= self.valid { self.head - self.valid } else { self.head + depth - self.valid };
        self.valid -= 1;
        self.cached.get(usize::from(at)).copied().unwrap_or_default()
    }

    /// Uses the value cached last, then the one before it, and so on around the buffer. The next
    /// cached value replaces the one used last.
    pub(super) fn newest(&mut self) -> Ev {
        let newest = self.latest().unwrap_or_default();
        self.head = self.head.checked_sub(1).unwrap_or(self.filled.saturating_sub(1));
        self.valid = self.valid.saturating_sub(1);
        newest
    }

    /// Uses the value cached or used longest ago. The next cached value replaces the one after it.
    pub(super) fn around(&mut self) -> Ev {
        let at = if self.head < self.filled { self.head } else { 0 };
        self.head = if at + 1 < self.filled { at + 1 } else { 0 };
        self.cached.get(usize::from(at)).copied().unwrap_or_default()
    }

    pub(super) fn holds(&self, ev: Ev) -> bool {
        self.cached.iter().take(self.filled.into()).any(|cached| *cached == ev)
    }

    /// The last cached value that [`newest`](Self::newest) has not used since.
    pub(super) fn latest(&self) -> Option<Ev> {
        let last = self.head.checked_sub(1).unwrap_or(self.filled.checked_sub(1)?);
        self.cached.get(usize::from(last)).copied()
    }

    /// The values of the buffer, used or not, the oldest first.
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = Ev> {
        let Self { cached, head, filled, .. } = *self;
        (0..filled).filter_map(move |step| cached.get(usize::from((head + step) % filled)).copied())
    }

    /// Removes a value, used or not. The others keep their order.
    pub(super) fn forget(&mut self, ev: Ev, depth: u8) {
        let before = *self;
        let Self { valid, filled, .. } = before;
        (self.head, self.valid, self.filled) = (0, 0, 0);
        // The last ones are the valid ones.
        for (step, old) in (0..filled).zip(before.oldest_first()).filter(|(_, old)| *old != ev) {
            if let Some(slot) = self.cached.get_mut(usize::from(self.filled)) {
                *slot = old;
            }
            self.filled += 1;
            self.valid += u8::from(step + valid >= filled);
        }
        self.head = if self.filled < depth { self.filled } else { 0 };
    }
}
