//! Impairments of a link in a deployed fabric, as Linux's `netem` has: delay, jitter, reordering,
//! corruption, duplication. The XDP program draws, and the delaying process applies them.

use crate::deployment::{CORRUPTED, DELAYED, DUPLICATED};

/// The impairments of a link. All 0: none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairment {
    /// Additional delay of frames, in ns.
    pub delay_ns: u64,
    /// Uniform jitter to either side of the delay, in ns, below 2^31; the total is never negative.
    pub jitter_ns: u32,
    /// Share of frames that are not delayed, and thus overtake others, in millionths.
    pub reorder_ppm: u32,
    /// Share of frames with one flipped bit, in millionths.
    pub corrupt_ppm: u32,
    /// Share of duplicated frames, in millionths.
    pub duplicate_ppm: u32,
    /// Not 0 if any other field is not 0.
    pub is_any: u64,
}

/// The accumulated impairments of a frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impaired {
    /// Additional delay, in ns.
    pub late_ns: u64,
    /// As [`DelayHeader::flags`](crate::deployment::DelayHeader::flags).
    pub flags: u32,
    /// Padding, 0.
    pub unused: u32,
}

impl Impairment {
    /// Sets [`Impairment::is_any`].
    #[must_use]
    pub fn complete(mut self) -> Self {
        self.is_any = (Self { is_any: 0, ..self } != Self::default()).into();
        self
    }

    /// Draws and adds this link's impairments; `random` returns 32 random bits.
    #[inline(always)]
    pub fn add_to(&self, frame: &mut Impaired, random: impl Fn() -> u32) {
        let hits = |ppm: u32| random() % 1_000_000 < ppm;
        // Overtaking frames pass the delay queue too, without delay: one process sends all.
        frame.flags |= DELAYED;
        if !hits(self.reorder_ppm) {
            let jitter_ns = u64::from(self.jitter_ns);
            let varied_ns = self.delay_ns + u64::from(random()) * (2 * jitter_ns + 1) / (1 << 32);
            frame.late_ns += varied_ns.saturating_sub(jitter_ns);
        }
        frame.flags |= if hits(self.corrupt_ppm) { CORRUPTED } else { 0 };
        frame.flags |= if hits(self.duplicate_ppm) { DUPLICATED } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::cell::Cell;

    use super::*;
    use crate::hash;

    /// Returns the impairments of 100,000 frames.
    fn frames(link: Impairment) -> Vec<Impaired> {
        let state = Cell::new(1);
        let random = || {
            state.set(state.get() + 1);
            hash::mix(state.get()) as u32
        };
        let one = |_| {
            let mut frame = Impaired::default();
            link.add_to(&mut frame, random);
            frame
        };
        (0..100_000).map(one).collect()
    }

    //= docs/specs/switch.md#SW-29 impairments
    #[test]
    fn jitter_is_symmetric_and_delays_are_never_negative() {
        for (delay_ns, jitter_ns, least, most, mean) in
            [(5_000, 0, 5_000, 5_000, 5_000), (5_000, 2_000, 3_000, 7_000, 5_000), (0, 1_000, 0, 1_000, 250)]
        {
            let late =
                frames(Impairment { delay_ns, jitter_ns, ..Impairment::default() }).into_iter().map(|f| f.late_ns);
            let (low, high) = (late.clone().min().unwrap(), late.clone().max().unwrap());
            assert!(low >= least && low <= least + 10 && high <= most && high + 10 >= most, "{low} to {high}");
            assert!((late.sum::<u64>() / 100_000).abs_diff(mean) <= 20);
        }
    }

    //= docs/specs/switch.md#SW-29 impairments
    #[test]
    fn probabilities_are_independent_and_reordered_frames_are_not_delayed() {
        let link = Impairment {
            delay_ns: 1_000,
            reorder_ppm: 250_000,
            corrupt_ppm: 100_000,
            duplicate_ppm: 500_000,
            ..Impairment::default()
        };
        let frames = frames(link);
        let share = |is: &dyn Fn(&Impaired) -> bool| frames.iter().filter(|frame| is(frame)).count() as f64 / 1e5;
        assert!((share(&|frame| frame.late_ns == 0) - 0.25).abs() < 0.01);
        assert!((share(&|frame| frame.flags & CORRUPTED != 0) - 0.1).abs() < 0.01);
        assert!((share(&|frame| frame.flags & DUPLICATED != 0) - 0.5).abs() < 0.01);
        assert!((share(&|frame| frame.flags == CORRUPTED | DUPLICATED | DELAYED) - 0.05).abs() < 0.01);
        assert!(frames.iter().all(|frame| frame.flags & DELAYED != 0 && [0, 1_000].contains(&frame.late_ns)));
    }
}
