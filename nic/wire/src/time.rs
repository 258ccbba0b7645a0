//! Time: a count that does not run out. Frames carry it as it is; to everybody but its author a timestamp is a number that comes back.

use crate::declare::values;

values! {
    Time: u64, value => Self(value), value.0;
}

/// A point in time, since an origin of the engine's choice. It counts eighths of a nanosecond, which last for 73 years; times that are
/// whole nanoseconds are exact. How long something takes is a `u64` of picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// Picoseconds of the least step: an eighth of a nanosecond.
    pub const STEP_PS: u64 = 125;
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// Later than any other: no deadline.
    pub const NEVER: Self = Self(u64::MAX);

    /// The time `ps` picoseconds after the origin, rounded down to an eighth of a nanosecond. `u64::MAX` is [`NEVER`](Self::NEVER).
    #[inline]
    pub const fn from_ps(ps: u64) -> Self {
        if ps == u64::MAX { Self::NEVER } else { Self(ps / Self::STEP_PS) }
    }

    /// The time `ns` nanoseconds after the origin.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(1_000 / Self::STEP_PS))
    }

    /// Picoseconds since the origin; `u64::MAX`, which is 213 days, for everything later.
    #[inline]
    pub const fn ps(self) -> u64 {
        self.0.saturating_mul(Self::STEP_PS)
    }

    /// The time `ps` picoseconds later, rounded up to an eighth of a nanosecond; [`NEVER`](Self::NEVER) for `u64::MAX`.
    #[inline]
    pub const fn after(self, ps: u64) -> Self {
        if ps == u64::MAX { Self::NEVER } else { Self(self.0.saturating_add(ps.div_ceil(Self::STEP_PS))) }
    }

    /// The time `ps` picoseconds earlier, not before the origin.
    #[inline]
    pub const fn before(self, ps: u64) -> Self {
        Self(self.0.saturating_sub(ps / Self::STEP_PS))
    }

    /// Picoseconds since `earlier`: 0 for what is to come, and `u64::MAX` for more than 213 days.
    #[inline]
    pub const fn since(self, earlier: Self) -> u64 {
        Self(self.0.saturating_sub(earlier.0)).ps()
    }

    /// How many times 2^`shift` picoseconds have passed since the origin.
    #[inline]
    pub const fn intervals(self, shift: u32) -> u64 {
        ((self.0 as u128 * Self::STEP_PS as u128) >> shift) as u64
    }

    /// The next time that can be told from this one.
    #[inline]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}
