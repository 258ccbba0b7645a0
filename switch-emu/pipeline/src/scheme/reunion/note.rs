//! What a frame carries from switch to switch (Reunion §3.1, figure 7).
//!
//! The low 33 bits of a trail's note are the base's.

/// Bits of the base.
const BASE: u64 = (1 << 33) - 1;
const PATH_SHIFT: u32 = 33;
const ELEPHANT: u64 = 1 << 49;
const HOPS_SHIFT: u32 = 50;
const BOTTLENECK_SHIFT: u32 = 53;
const HOP_MASK: u64 = 7;
const NOTIFICATION: u64 = 1 << 56;

/// What a data frame says of itself. A notification says where it is written down, instead.
//= docs/specs/reunion.md#REU-1 what a frame carries
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::scheme) struct Note(u64);

impl Note {
    /// Reunion's part of a trail's note.
    #[inline(always)]
    pub(in crate::scheme) const fn of(note: u64) -> Self {
        Self(note & !BASE)
    }

    /// A trail's note with this as Reunion's part.
    #[inline(always)]
    pub(in crate::scheme) const fn into(self, note: u64) -> u64 {
        note & BASE | self.0
    }

    /// A notification at this place of its sender's table.
    #[inline(always)]
    pub(in crate::scheme) const fn notification(place: u32, interval: u64) -> Self {
        Self(NOTIFICATION | (place as u64 & 0xff | (interval & 0xff) << 8) << PATH_SHIFT)
    }

    /// Where a notification is written down, and the low bits of its interval.
    #[inline(always)]
    pub(in crate::scheme) const fn notified(self) -> Option<(u32, u64)> {
        let bits = self.0 >> PATH_SHIFT;
        if self.0 & NOTIFICATION == 0 { None } else { Some((bits as u32 & 0xff, bits >> 8 & 0xff)) }
    }

    /// A frame of an elephant, or not, that has left its first switch by this path.
    #[inline(always)]
    pub(in crate::scheme) const fn data(path: u32, elephant: bool) -> Self {
        Self((path as u64 & 0xffff) << PATH_SHIFT | if elephant { ELEPHANT } else { 0 } | 1 << HOPS_SHIFT)
    }

    /// Its PathID.
    #[inline(always)]
    pub(in crate::scheme) const fn path(self) -> u32 {
        (self.0 >> PATH_SHIFT) as u32 & 0xffff
    }

    /// With another PathID.
    #[inline(always)]
    pub(in crate::scheme) const fn with_path(self, path: u32) -> Self {
        Self(self.0 & !(0xffff << PATH_SHIFT) | (path as u64 & 0xffff) << PATH_SHIFT)
    }

    /// Whether its flow is an elephant.
    #[inline(always)]
    pub(in crate::scheme) const fn is_elephant(self) -> bool {
        self.0 & ELEPHANT != 0
    }

    /// Links between switches that it has taken.
    #[inline(always)]
    pub(in crate::scheme) const fn hops(self) -> u32 {
        (self.0 >> HOPS_SHIFT & HOP_MASK) as u32
    }

    /// The same one link further; at most seven are told apart.
    #[inline(always)]
    pub(in crate::scheme) const fn further(self) -> Self {
        if self.hops() as u64 == HOP_MASK { self } else { Self(self.0 + (1 << HOPS_SHIFT)) }
    }

    /// Which of its links is the first where elephants collide, from 1 on; 0: none.
    #[inline(always)]
    pub(in crate::scheme) const fn bottleneck(self) -> u32 {
        (self.0 >> BOTTLENECK_SHIFT & HOP_MASK) as u32
    }

    /// The same with the link that it has taken last as the bottleneck, unless there is one already.
    //= docs/specs/reunion.md#REU-11 the first bottleneck
    #[inline(always)]
    pub(in crate::scheme) const fn collided(self) -> Self {
        if self.bottleneck() != 0 { self } else { Self(self.0 | (self.hops() as u64) << BOTTLENECK_SHIFT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::assert_eq;

    #[test]
    fn fields_do_not_touch_each_other_or_the_base() {
        let note = Note::data(0xbeef, true).further().collided().with_path(0x12ff).further().collided();
        assert_eq!((note.path(), note.is_elephant(), note.hops(), note.bottleneck()), (0x12ff, true, 3, 2));
        assert_eq!(note.notified(), None);
        assert_eq!(Note::of(note.into(u64::MAX >> 31)), note);
        assert_eq!(note.into(u64::MAX) & BASE, BASE);
        let notification = Note::notification(77, 0x1234);
        assert_eq!((notification.notified(), notification.is_elephant()), (Some((77, 0x34)), false));
    }

    #[test]
    fn hops_end_at_seven() {
        let far = (0..20).fold(Note::data(1, false), |note, _| note.further());
        assert_eq!((far.hops(), far.bottleneck(), far.path()), (7, 0, 1));
    }
}
