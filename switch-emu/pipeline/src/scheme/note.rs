//! The note that a frame carries from switch to switch (Reunion §3.1, figure 7), in ConWeave too.
//! The rest of the trail's note is the base's.

use crate::packed::packed;

packed! {
    /// The note of a data frame, or of a notification, which refers to its sender's table.
    //= docs/specs/reunion.md#REU-1 frame metadata
    pub(super) struct ReunionNote {
        /// Of the base.
        base: u64 in 33,
        path: u32 in 16,
        elephant: bool in 1,
        /// Links between switches so far, at most 7.
        hops: u32 in 3,
        /// The first of its links where elephants collide, from 1 on; 0: none.
        bottleneck: u32 in 3,
        notification: bool in 1,
    }
}

const MOST_HOPS: u32 = 7;

impl ReunionNote {
    /// The note of a notification at this place of its sender's table.
    #[inline(always)]
    pub(super) fn notify(place: u32, interval: u64) -> Self {
        Self { path: place & 0xff | (interval as u32 & 0xff) << 8, notification: true, ..Self::default() }
    }

    /// The place of a notification, and the low bits of its interval.
    #[inline(always)]
    pub(super) fn notified(self) -> Option<(u32, u64)> {
        if self.notification { Some((self.path & 0xff, u64::from(self.path >> 8))) } else { None }
    }

    /// The note of a data frame that has left its first switch by this path.
    #[inline(always)]
    pub(super) fn data(path: u32, elephant: bool) -> Self {
        Self { path, elephant, hops: 1, ..Self::default() }
    }

    /// Encodes the note beside the base's part of `before`.
    #[inline(always)]
    pub(super) fn beside(self, before: u64) -> u64 {
        Self { base: Self::unpack(before).base, ..self }.pack()
    }

    #[inline(always)]
    pub(super) fn further(self) -> Self {
        Self { hops: self.hops + u32::from(self.hops < MOST_HOPS), ..self }
    }

    /// Sets the last link as the bottleneck, unless there is one already.
    //= docs/specs/reunion.md#REU-11 the first bottleneck
    #[inline(always)]
    pub(super) fn collided(self) -> Self {
        Self { bottleneck: if self.bottleneck == 0 { self.hops } else { self.bottleneck }, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::assert_eq;

    #[test]
    fn fields_do_not_touch_each_other_or_the_base() {
        let note = ReunionNote::data(0xbeef, true).further().collided();
        let note = ReunionNote { path: 0x12ff, ..note }.further().collided();
        assert_eq!((note.path, note.elephant, note.hops, note.bottleneck), (0x12ff, true, 3, 2));
        assert_eq!(note.notified(), None);
        let (base, beside) = (u64::MAX >> 31, note.beside(u64::MAX));
        assert_eq!((beside & base, ReunionNote { base: 0, ..ReunionNote::unpack(beside) }), (base, note));
        let notification = ReunionNote::notify(77, 0x1234);
        assert_eq!((notification.notified(), notification.elephant), (Some((77, 0x34)), false));
    }

    #[test]
    fn hops_end_at_seven() {
        let far = (0..20).fold(ReunionNote::data(1, false), |note, _| note.further());
        assert_eq!((far.hops, far.bottleneck, far.path), (7, 0, 1));
    }
}
