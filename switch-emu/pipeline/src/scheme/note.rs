//! What a frame carries from switch to switch (Reunion §3.1, figure 7).
//!
//! ConWeave has the same, as a base of Reunion. The rest of the trail's note is the base's.

use crate::packed::packed;

packed! {
    /// What a data frame says of itself. A notification says where it is written down, instead.
    //= docs/specs/reunion.md#REU-1 frame metadata
    pub(super) struct ReunionNote {
        /// Of the base.
        base: u64 in 33,
        /// Its PathID.
        path: u32 in 16,
        /// Whether its flow is an elephant.
        elephant: bool in 1,
        /// Links between switches that it has taken; at most seven are told apart.
        hops: u32 in 3,
        /// Which of its links is the first where elephants collide, from 1 on; 0: none.
        bottleneck: u32 in 3,
        /// It is a notification.
        notification: bool in 1,
    }
}

const MOST_HOPS: u32 = 7;

impl ReunionNote {
    /// A notification at this place of its sender's table.
    #[inline(always)]
    pub(super) fn notify(place: u32, interval: u64) -> Self {
        Self { path: place & 0xff | (interval as u32 & 0xff) << 8, notification: true, ..Self::default() }
    }

    /// Where a notification is written down, and the low bits of its interval.
    #[inline(always)]
    pub(super) fn notified(self) -> Option<(u32, u64)> {
        if self.notification { Some((self.path & 0xff, u64::from(self.path >> 8))) } else { None }
    }

    /// A frame of an elephant, or not, that has left its first switch by this path.
    #[inline(always)]
    pub(super) fn data(path: u32, elephant: bool) -> Self {
        Self { path, elephant, hops: 1, ..Self::default() }
    }

    /// The same beside what the base notes in `before`.
    #[inline(always)]
    pub(super) fn beside(self, before: u64) -> u64 {
        Self { base: Self::unpack(before).base, ..self }.pack()
    }

    /// The same one link further.
    #[inline(always)]
    pub(super) fn further(self) -> Self {
        Self { hops: self.hops + u32::from(self.hops < MOST_HOPS), ..self }
    }

    /// The same with the link that it has taken last as the bottleneck, unless there is one already.
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
