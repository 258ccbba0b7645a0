//! The order of arrivals: two measures of reordering, and its degree.

/// Reordered packets by their distance to the highest number seen: entry `i` counts distances from
/// `2^i` to `2^(i+1) - 1`. The window bounds the distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReorderDegrees([u64; DEGREES]);

/// A window of 2^16 packets has numbers up to 2^16 - 1 apart.
const DEGREES: usize = super::super::MAX_WINDOW_PACKETS.ilog2() as usize;

impl ReorderDegrees {
    /// Returns the counts without the trailing zeros.
    pub fn counts(&self) -> &[u64] {
        let end = self.0.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        &self.0[..end]
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }

    /// Counts a packet at a distance of `places`, at least 1.
    #[inline]
    pub fn count(&mut self, places: u64) {
        self.0[(places.max(1).ilog2() as usize).min(DEGREES - 1)] += 1;
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    highest: u64,
    /// One more than the number of the previous packet, retransmissions excluded.
    expected: u64,
}

#[cfg(test)]
impl Order {
    pub(super) fn starting_at(psn: u64) -> Self {
        Self { highest: psn, expected: psn }
    }
}

/// Measures of the order of arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderStats {
    /// First transmissions with a lower number than an earlier arrival: the network reordered them.
    pub reordered: u64,
    /// First transmissions with a number other than one more than the previous one's.
    pub unexpected: u64,
    /// How far reordered packets were behind the highest number seen.
    pub degrees: ReorderDegrees,
}

impl OrderStats {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.reordered += other.reordered;
        self.unexpected += other.unexpected;
        self.degrees.0.iter_mut().zip(other.degrees.0).for_each(|(count, more)| *count += more);
    }

    /// Returns the difference from these counts to `later` ones of the same receiver.
    #[must_use]
    pub fn delta_to(&self, later: &Self) -> Self {
        let mut degrees = later.degrees;
        degrees.0.iter_mut().zip(self.degrees.0).for_each(|(count, before)| *count -= before);
        Self { reordered: later.reordered - self.reordered, unexpected: later.unexpected - self.unexpected, degrees }
    }
}

impl Order {
    #[inline]
    pub(super) fn on_arrival(&mut self, psn: u64, retransmit: bool, stats: &mut OrderStats) {
        if !retransmit {
            //= docs/specs/transport.md#TRN-58 reordering
            if psn + 1 < self.highest {
                stats.reordered += 1;
                //= docs/specs/transport.md#TRN-61 degree of reordering
                stats.degrees.count(self.highest - 1 - psn);
            }
            //= docs/specs/transport.md#TRN-60 expected against received
            stats.unexpected += u64::from(psn != self.expected);
            self.expected = psn + 1;
        }
        self.highest = self.highest.max(psn + 1);
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn count(arrivals: &[(u64, bool)]) -> OrderStats {
        let (mut order, mut stats) = (Order::default(), OrderStats::default());
        arrivals.iter().for_each(|&(psn, again)| order.on_arrival(psn, again, &mut stats));
        stats
    }

    /// Computes the statistics literally from their definitions over the whole list of arrivals.
    fn literal(arrivals: &[(u64, bool)]) -> (u64, u64, Vec<u64>) {
        let (mut reordered, mut unexpected, mut degrees) = (0, 0, vec![0; DEGREES]);
        for (at, &(psn, again)) in arrivals.iter().enumerate() {
            if again {
                continue;
            }
            let highest = arrivals[..at].iter().map(|&(earlier, _)| earlier).max();
            if let Some(highest) = highest.filter(|&highest| psn < highest) {
                reordered += 1;
                let power = (0..DEGREES).rfind(|&power| highest - psn >= 1 << power);
                degrees[power.unwrap()] += 1;
            }
            let before = arrivals[..at].iter().rfind(|&&(_, again)| !again);
            unexpected += u64::from(before.map_or(0, |&(before, _)| before + 1) != psn);
        }
        while degrees.last() == Some(&0) {
            degrees.pop();
        }
        (reordered, unexpected, degrees)
    }

    //= docs/specs/transport.md#TRN-58 reordering
    //= docs/specs/transport.md#TRN-60 expected against received
    //= docs/specs/transport.md#TRN-61 degree of reordering
    #[test]
    fn statistics_of_typical_orders_of_arrival() {
        let cases: [(&[u64], u64, u64, &[u64]); 6] = [
            (&[0, 1, 2, 3], 0, 0, &[]),
            // One late packet is reordered; it, the packet before and the one after are unexpected.
            (&[0, 2, 1, 3], 1, 3, &[1]),
            (&[1, 2, 3, 0, 4], 1, 3, &[0, 1]),
            // A lost packet: nothing is reordered.
            (&[0, 1, 3, 4], 0, 1, &[]),
            (&[3, 2, 1, 0], 3, 4, &[1, 2]),
            (&[8, 0, 1, 2, 3, 4, 5, 6, 7], 8, 2, &[1, 2, 4, 1]),
        ];
        for (psns, reordered, unexpected, degrees) in cases {
            let arrivals: Vec<_> = psns.iter().map(|&psn| (psn, false)).collect();
            let stats = count(&arrivals);
            assert_eq!(
                (stats.reordered, stats.unexpected, stats.degrees.counts()),
                (reordered, unexpected, degrees),
                "{psns:?}"
            );
        }
    }

    #[test]
    fn the_widest_window_fits() {
        let widest = u64::from(super::super::super::MAX_WINDOW_PACKETS) - 1;
        let stats = count(&[(widest, false), (0, false)]);
        assert_eq!((stats.degrees.counts().len(), stats.degrees.counts()[DEGREES - 1]), (DEGREES, 1));
    }

    proptest! {
        #[test]
        fn counts_agree_with_the_definitions(arrivals in prop::collection::vec((0_u64..5_000, prop::bool::weighted(0.2)), 0..300)) {
            let stats = count(&arrivals);
            let (reordered, unexpected, degrees) = literal(&arrivals);
            prop_assert_eq!((stats.reordered, stats.unexpected), (reordered, unexpected));
            prop_assert_eq!(stats.degrees.counts(), &degrees[..]);
            prop_assert_eq!(degrees.iter().sum::<u64>(), reordered);
        }

        #[test]
        fn sums_of_two_connections_count_all_packets(one in prop::collection::vec(0_u64..500, 0..60), two in prop::collection::vec(0_u64..500, 0..60)) {
            let stats = [one, two].map(|psns| count(&psns.into_iter().map(|psn| (psn, false)).collect::<Vec<_>>()));
            let mut sum = stats[0].degrees;
            sum.add(&stats[1].degrees);
            prop_assert_eq!(sum.counts().iter().sum::<u64>(), stats[0].reordered + stats[1].reordered);
            let mut all = stats[0];
            all.add(&stats[1]);
            prop_assert_eq!(all.degrees, sum);
            prop_assert_eq!(all.reordered - stats[0].reordered, stats[1].reordered);
            prop_assert_eq!(all.unexpected - stats[0].unexpected, stats[1].unexpected);
            prop_assert_eq!(stats[0].delta_to(&all), stats[1]);
        }
    }
}
