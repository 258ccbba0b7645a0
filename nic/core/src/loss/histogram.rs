//! A histogram of round-trip times.

use super::MAX_SAMPLE_PS;

/// A histogram with buckets of 0.26 us, or a sixteenth of their octave if wider. When one is full,
/// all counts are halved: shares stay, and later samples weigh more.
#[derive(Clone, Debug)]
pub struct RttHistogram {
    counts: [u32; BUCKETS],
    samples: u64,
}

/// The narrowest bucket: 2^18 ps.
const UNIT_SHIFT: u32 = 18;
/// Sixteen buckets per octave.
const PART_SHIFT: u32 = 4;
const BUCKETS: usize = bucket(MAX_SAMPLE_PS) + 1;

impl RttHistogram {
    /// Takes a round-trip time in picoseconds, at most 36 hours.
    #[inline]
    pub fn on_sample(&mut self, rtt_ps: u64) {
        let count = &mut self.counts[bucket(rtt_ps.min(MAX_SAMPLE_PS))];
        *count += 1;
        self.samples += 1;
        if *count == u32::MAX {
            self.halve();
        }
    }

    /// Returns the `permille` quantile in picoseconds (the middle of its bucket), 0 if empty.
    pub fn permille_ps(&self, permille: u16) -> u64 {
        let rank = (self.samples * u64::from(permille)).div_ceil(1000).max(1);
        let mut seen = 0;
        let found = self.counts.iter().position(|&count| {
            seen += u64::from(count);
            seen >= rank
        });
        found.map_or(0, |found| u64::midpoint(least_ps(found), least_ps(found + 1)))
    }

    /// Adds the samples of `other`.
    pub fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count = count.saturating_add(*more));
        self.samples = self.counts.iter().copied().map(u64::from).sum();
    }

    /// Returns the samples by octave as an upper bound in ps, and the number between the previous
    /// bound and it. The first is `first_ps`, a power of two from 2^22; the last is `u64::MAX`.
    pub fn octaves(&self, first_ps: u64, octaves: usize) -> impl Iterator<Item = (u64, u64)> {
        (0..=octaves).map(move |octave| {
            let least = if octave == 0 { 0 } else { first_ps << octave >> 1 };
            let most = if octave == octaves { u64::MAX } else { first_ps << octave };
            let within = |place: &usize| (least..most).contains(&least_ps(*place));
            (most, (0..BUCKETS).filter(within).map(|place| u64::from(self.counts[place])).sum())
        })
    }

    /// The sum of all samples in ps, each as the middle of its bucket.
    pub fn sum_ps(&self) -> f64 {
        let middle = |place| u64::midpoint(least_ps(place), least_ps(place + 1)) as f64;
        self.counts.iter().enumerate().map(|(place, count)| middle(place) * f64::from(*count)).sum()
    }

    #[cold]
    fn halve(&mut self) {
        self.counts.iter_mut().for_each(|count| *count /= 2);
        self.samples = self.counts.iter().copied().map(u64::from).sum();
    }
}

impl Default for RttHistogram {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], samples: 0 }
    }
}

#[inline]
const fn bucket(ps: u64) -> usize {
    let units = ps >> UNIT_SHIFT;
    let octave = (units | 1).ilog2().saturating_sub(PART_SHIFT);
    ((octave << PART_SHIFT) as u64 + (units >> octave)) as usize
}

const fn least_ps(bucket: usize) -> u64 {
    let octave = (bucket >> PART_SHIFT).saturating_sub(1);
    ((bucket - (octave << PART_SHIFT)) as u64) << octave << UNIT_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000_000;

    #[test]
    fn buckets_are_contiguous_and_contain_their_times() {
        for at in 0..BUCKETS {
            let (from_ps, to_ps) = (least_ps(at), least_ps(at + 1));
            assert_eq!((bucket(from_ps), bucket(to_ps - 1)), (at, at));
            assert!(to_ps - from_ps <= (from_ps / 16).max(1 << UNIT_SHIFT), "{at}");
        }
    }

    #[test]
    fn quantiles_are_exact_to_a_bucket() {
        let mut histogram = RttHistogram::default();
        assert_eq!(histogram.permille_ps(500), 0);
        (1..=1000).for_each(|n| histogram.on_sample(n * US));
        for (permille, exact_us) in [(0, 1), (1, 1), (500, 500), (990, 990), (1000, 1000)] {
            let (found, exact) = (histogram.permille_ps(permille), exact_us * US);
            assert!(found.abs_diff(exact) <= (exact / 16).max(1 << UNIT_SHIFT), "{permille}: {found}");
        }
        histogram.on_sample(u64::MAX);
        assert!(histogram.permille_ps(1000) >= MAX_SAMPLE_PS);
    }

    /// An hour and a quarter at a million acknowledgements per second.
    #[test]
    fn quantiles_stay_when_a_bucket_is_full() {
        let mut histogram = RttHistogram::default();
        let (usual, rare) = (bucket(100 * US), bucket(900 * US));
        (histogram.counts[usual], histogram.counts[rare]) = (u32::MAX - 10, u32::MAX / 50);
        histogram.samples = histogram.counts.iter().copied().map(u64::from).sum();
        let shares = |histogram: &RttHistogram| [1, 500, 990].map(|permille| bucket(histogram.permille_ps(permille)));
        let before = shares(&histogram);
        assert_eq!(before, [usual, usual, rare]);
        for more in 0..1_000 {
            histogram.on_sample(100 * US);
            assert_eq!(shares(&histogram), before, "{more} more");
        }
        assert_eq!(histogram.samples, histogram.counts.iter().copied().map(u64::from).sum::<u64>());
    }

    #[test]
    fn octaves_count_each_sample_once_and_histograms_add_up() {
        let (mut all, mut one) = (RttHistogram::default(), RttHistogram::default());
        (0..1000).for_each(|n| one.on_sample(n * US));
        one.on_sample(u64::MAX);
        all.add(&one);
        all.add(&one);
        let first = 1 << 22;
        let mut counts = [0; 6];
        all.octaves(first, 5).zip(&mut counts).for_each(|((_, found), count)| *count = found);
        let expected =
            |least: u64, most: u64| 2 * (0..1000).filter(|n| (least..most).contains(&(n * US))).count() as u64;
        for (octave, count) in counts.iter().enumerate().take(5).skip(1) {
            assert_eq!(*count, expected(first << (octave - 1), first << octave), "{octave}");
        }
        assert_eq!((counts[0], counts.iter().sum::<u64>()), (expected(0, first), 2002));
        assert_eq!(all.octaves(first, 5).last(), Some((u64::MAX, counts[5])));
        let mut mean = RttHistogram::default();
        (0..1000).for_each(|n| mean.on_sample(n * US));
        assert!((mean.sum_ps() / (999.0 * 500.0 * US as f64) - 1.0).abs() < 0.01);
    }
}
