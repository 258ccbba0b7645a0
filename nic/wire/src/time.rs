//! Timestamps: opaque to the peer, which echoes them.

use crate::declare::values;

values! {
    Time: u64, value => Self(value), value.0;
}

/// A point in time since an origin that the engine chooses, in eighths of a nanosecond: the range
/// is 73 years, and whole nanoseconds are exact. Durations are `u64` picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// Picoseconds per step.
    pub const STEP_PS: u64 = 125;
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// Later than any other time: no deadline.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the time `ps` after the origin, rounded down; `u64::MAX` is [`NEVER`](Self::NEVER).
    #[inline]
    pub const fn from_ps(ps: u64) -> Self {
        if ps == u64::MAX { Self::NEVER } else { Self(ps / Self::STEP_PS) }
    }

    /// Returns the time `ns` nanoseconds after the origin.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(1_000 / Self::STEP_PS))
    }

    /// Returns picoseconds since the origin, saturating at `u64::MAX` (213 days).
    #[inline]
    pub const fn ps(self) -> u64 {
        self.0.saturating_mul(Self::STEP_PS)
    }

    /// Returns the time `ps` later, rounded up; from `u64::MAX - 123` on [`NEVER`](Self::NEVER).
    #[inline]
    pub const fn after(self, ps: u64) -> Self {
        match ps.checked_add(Self::STEP_PS - 1) {
            Some(ps) => Self(self.0.saturating_add(ps / Self::STEP_PS)),
            None => Self::NEVER,
        }
    }

    /// Returns the time `ps` earlier, saturating at the origin.
    #[inline]
    pub const fn before(self, ps: u64) -> Self {
        Self(self.0.saturating_sub(ps / Self::STEP_PS))
    }

    /// Returns picoseconds since `earlier`: 0 if that is later, at most `u64::MAX` (213 days).
    #[inline]
    pub const fn since(self, earlier: Self) -> u64 {
        Self(self.0.saturating_sub(earlier.0)).ps()
    }

    /// Returns the number of intervals of 2^`shift` ps since the origin.
    #[inline]
    pub const fn intervals(self, shift: u32) -> u64 {
        ((self.0 as u128 * Self::STEP_PS as u128) >> shift) as u64
    }

    /// Returns the time one step later.
    #[inline]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_PS: u64 = 24 * 3_600 * 1_000_000_000_000;

    #[test]
    fn whole_steps_are_exact_and_others_rounded_away_from_now() {
        for ps in [0, 125, 1_000, 8_337_000, DAY_PS, (u64::MAX - 124) / 125 * 125] {
            let time = Time::from_ps(ps);
            assert_eq!(
                (time.ps(), Time::ZERO.after(ps), time.before(ps), time.since(Time::ZERO)),
                (ps, time, Time::ZERO, ps)
            );
            assert_eq!((time.next().since(time), time.next() > time), (125, true));
        }
        assert_eq!([0, 124, 125, 249, 250].map(|ps| Time::from_ps(ps).ps()), [0, 0, 125, 125, 250]);
        let time = Time::from_ps(1_000);
        assert_eq!(
            [0, 1, 125, 126, 250, 251].map(|ps| time.after(ps).ps()),
            [1_000, 1_125, 1_125, 1_250, 1_250, 1_375]
        );
        assert_eq!([0, 1, 124, 125, 249, 250].map(|ps| time.before(ps).ps()), [1_000, 1_000, 1_000, 875, 875, 750]);
        assert_eq!(Time::from_ns(8_337), Time::from_ps(8_337_000));
    }

    #[test]
    fn times_saturate_at_the_origin_and_at_never() {
        let time = Time::from_ns(1);
        assert_eq!((time.before(1_125), time.before(u64::MAX), Time::ZERO.since(time)), (Time::ZERO, Time::ZERO, 0));
        assert_eq!(Time::default(), Time::ZERO);
        assert_eq!(
            (Time::from_ps(u64::MAX), time.after(u64::MAX), Time::from_ns(u64::MAX)),
            (Time::NEVER, Time::NEVER, Time::NEVER)
        );
        assert_eq!((Time::NEVER.after(1), Time::NEVER.next(), Time::NEVER.ps()), (Time::NEVER, Time::NEVER, u64::MAX));
        let last = Time::NEVER.before(125);
        assert_eq!(
            (last < Time::NEVER, last.after(125), last.after(126), last.next()),
            (true, Time::NEVER, Time::NEVER, Time::NEVER)
        );
        // The latest time before `NEVER`.
        assert!(
            Time::from_ps(u64::MAX - 1) < Time::from_ps(u64::MAX) && Time::ZERO.after(u64::MAX - 124) < Time::NEVER
        );
    }

    #[test]
    fn a_time_after_70_years_is_like_any_other() {
        let time = Time::from_ns(70 * 365 * 24 * 3_600 * 1_000_000_000);
        assert!(time > Time::ZERO.after(u64::MAX - 124) && time < Time::NEVER);
        assert!(time < time.next() && time.next() < time.after(126) && time.before(125) < time);
        assert_eq!(
            (time.after(8_337_000).since(time), time.since(time.before(DAY_PS)), time.since(time)),
            (8_337_000, DAY_PS, 0)
        );
        assert_eq!(time.after(DAY_PS).before(DAY_PS), time);
        // Durations saturate at 213 days.
        let long = time.before(DAY_PS * 213);
        assert_eq!(time.since(long), DAY_PS * 213);
        assert_eq!(
            (time.since(long.before(DAY_PS)), time.since(Time::ZERO), time.ps()),
            (u64::MAX, u64::MAX, u64::MAX)
        );
        assert_eq!(Time::NEVER.since(time), u64::MAX);
    }

    #[test]
    fn intervals_are_counted_from_the_origin() {
        for (ps, shift, intervals) in
            [(0, 0, 0), (125, 0, 125), (1_048_500, 20, 0), (1_048_625, 20, 1), (DAY_PS, 20, DAY_PS >> 20)]
        {
            assert_eq!(Time::from_ps(ps).intervals(shift), intervals, "{ps} {shift}");
        }
        // Steps of 2^20 ps; 125 of them are 2^20 units of time.
        assert_eq!((Time::NEVER.intervals(20), Time(1 << 63).intervals(20)), ((125 << 44) - 1, 125 << 43));
    }
}
