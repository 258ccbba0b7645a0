//! Time series in bins of equal length.

use spray_pipeline::bins::{Bin, BinScale, Cells};
use spray_pipeline::word::Word;

/// Time series of a port while it counts: at most 86,072 bytes, see [`BinScale::new`].
#[derive(Debug)]
pub struct PortBins<W> {
    scale: BinScale,
    cells: Vec<Bin<W>>,
}

impl<W: Word + Default> PortBins<W> {
    /// Creates all cells, for counting from several threads.
    pub fn new(scale: BinScale) -> Self {
        let mut bins = Self::empty(scale);
        bins.grow(scale.cells());
        bins
    }

    /// Creates no cells; [`PortBins::reach`] adds them.
    pub fn empty(scale: BinScale) -> Self {
        Self { scale, cells: Vec::new() }
    }

    /// Creates the cells up to that of `t_ps`.
    pub fn reach(&mut self, t_ps: u64) {
        let cell = self.scale.cell(t_ps) as usize;
        if cell >= self.cells.len() {
            self.grow(2 * (cell + 1));
        }
    }

    #[cold]
    fn grow(&mut self, cells: usize) {
        self.cells.resize_with(cells.min(self.scale.cells()), Bin::default);
    }

    /// Returns the counts of a run that ends at `end_ps`.
    pub fn samples(&self, port: usize, end_ps: u64) -> PortSamples {
        PortSamples::of(port, &self.scale, self.cells.iter().map(Bin::read), end_ps)
    }
}

impl<W: Word> Cells for PortBins<W> {
    type Word = W;

    fn scale(&self) -> &BinScale {
        &self.scale
    }

    fn bin(&self, cell: u32) -> Option<&Bin<W>> {
        self.cells.get(cell as usize)
    }
}

/// Time series of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortSamples {
    /// Index of the port among the outcomes.
    pub port: usize,
    /// Length of a bin in ps.
    pub bin_ps: u64,
    /// Counts before scenario time 0, during connection setup.
    pub before: Bin,
    /// Counts by bin, from time 0 to the end of the run or of the last departure.
    pub bins: Vec<Bin>,
}

impl PortSamples {
    /// Creates the series of a port from its cells, in a run that ends at `end_ps`.
    pub fn of(port: usize, scale: &BinScale, counted: impl Iterator<Item = Bin>, end_ps: u64) -> Self {
        let (bin_ps, before, bins) = even(scale, counted, end_ps, Bin::add, |bin| *bin == Bin::default());
        Self { port, bin_ps, before, bins }
    }

    /// Returns the end of each bin in ps, from time 0, with the bytes sent by then.
    //= docs/specs/switch.md#SW-24 in the bin in which its last bit leaves
    pub fn sent(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        so_far(self.bin_ps, self.before.sent_bytes, self.bins.iter().map(|bin| bin.sent_bytes))
    }

    /// Returns the longest queue.
    pub fn peak_bytes(&self) -> u64 {
        self.bins.iter().map(|bin| bin.queue_max).max().unwrap_or(0)
    }
}

/// Delivered payload while it is counted: 12,296 bytes.
#[derive(Debug)]
pub struct DeliverySeries<W> {
    scale: BinScale,
    bytes: Vec<W>,
}

impl<W: Word + Default> DeliverySeries<W> {
    /// Creates empty cells.
    pub fn new(scale: BinScale) -> Self {
        Self { scale, bytes: (0..scale.cells()).map(|_| W::default()).collect() }
    }

    /// Counts `bytes` delivered at `t_ps`.
    pub fn add(&self, t_ps: u64, bytes: u64) {
        if self.scale.is_on()
            && let Some(sum) = self.bytes.get(self.scale.cell(t_ps) as usize)
        {
            sum.add(bytes);
        }
    }

    /// Returns the count of each cell.
    pub fn counted(&self) -> impl Iterator<Item = u64> + '_ {
        self.bytes.iter().map(Word::load)
    }
}

/// Returns the end of each bin in ps, from time 0, with the bytes delivered by then.
pub fn delivered(scale: &BinScale, counted: impl Iterator<Item = u64>, end_ps: u64) -> Vec<(u64, u64)> {
    if !scale.is_on() {
        return Vec::new();
    }
    let (bin_ps, before, bins) = even(scale, counted, end_ps, |sum, more| *sum += more, |bytes| *bytes == 0);
    so_far(bin_ps, before, bins.into_iter()).collect()
}

fn so_far(bin_ps: u64, before: u64, bins: impl Iterator<Item = u64>) -> impl Iterator<Item = (u64, u64)> {
    let mut sum = before;
    let ends = bins.zip(1..).map(move |(bytes, bin)| {
        sum += bytes;
        (bin * bin_ps, sum)
    });
    std::iter::once((0, before)).chain(ends)
}

/// Merges cells into bins of the length in use at the end of the run. Returns their length, the
/// counts before time 0, and the bins up to the end or to the last non-empty one.
fn even<T: Clone + Default>(
    scale: &BinScale,
    cells: impl Iterator<Item = T>,
    end_ps: u64,
    add: impl Fn(&mut T, &T),
    is_empty: impl Fn(&T) -> bool,
) -> (u64, T, Vec<T>) {
    let end = scale.cell(end_ps.max(scale.begin_ps + 1) - 1);
    let (level, last) = scale.place(end).unwrap_or_default();
    let (mut before, mut bins) = (T::default(), vec![T::default(); last as usize + 1]);
    for (cell, counted) in (0..).zip(cells).filter(|(_, counted)| !is_empty(counted)) {
        let Some((own, bin)) = scale.place(cell) else {
            before = counted;
            continue;
        };
        // Departures after the end may be in longer bins.
        let bin = if own <= level { bin >> (level - own) } else { bin << (own - level) } as usize;
        if bin >= bins.len() {
            bins.resize(bin + 1, T::default());
        }
        add(&mut bins[bin], &counted);
    }
    (scale.bin_ps << level, before, bins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use spray_pipeline::bins::Transit;
    use std::cell::Cell;

    /// 16 bins of 1 ns from 5 ns on, then 8 of 2 ns.
    fn scale() -> BinScale {
        BinScale { begin_ps: 5_000, bin_ps: 1_000, first_log2: 4 }
    }

    fn arrivals(ns: &[(u64, u64)]) -> DeliverySeries<Cell<u64>> {
        let arrivals = DeliverySeries::new(scale());
        ns.iter().for_each(|(ns, bytes)| arrivals.add(ns * 1_000, *bytes));
        arrivals
    }

    #[test]
    fn a_short_run_has_the_configured_bins_up_to_its_end() {
        let arrivals = arrivals(&[(5, 10), (6, 5), (7, 1)]);
        let found = delivered(&scale(), arrivals.counted(), 9_500);
        assert_eq!(found, [(0, 0), (1_000, 10), (2_000, 15), (3_000, 16), (4_000, 16), (5_000, 16)]);
        assert_eq!(delivered(&scale(), arrivals.counted(), 9_000).last(), Some(&(4_000, 16)));
    }

    #[test]
    fn a_long_run_has_longer_bins_and_every_byte() {
        let arrivals = arrivals(&[(5, 10), (6, 5), (8, 1), (22, 7), (25, 2)]);
        let found = delivered(&scale(), arrivals.counted(), 26_000);
        assert_eq!((found.len(), &found[..4]), (12, &[(0, 0), (2_000, 15), (4_000, 16), (6_000, 16)][..]));
        assert_eq!(found[8..], [(16_000, 16), (18_000, 23), (20_000, 23), (22_000, 25)]);
    }

    #[test]
    fn bytes_that_leave_before_the_start_or_after_the_end_are_included() {
        let mut bins = PortBins::<Cell<u64>>::empty(scale());
        for (arrived_ps, departed_ps, bytes) in [(1_000, 4_000, 3), (6_000, 7_500, 5), (20_000, 28_000, 7)] {
            let transit = Transit { departed_ps, waiting: bytes, bytes, ..Transit::at(arrived_ps) };
            bins.reach(departed_ps);
            bins.record(&transit);
        }
        let samples = bins.samples(4, 20_500);
        assert_eq!((samples.port, samples.bin_ps, samples.before.sent_bytes), (4, 1_000, 3));
        let sent: Vec<_> = samples.sent().collect();
        assert_eq!((sent[0], sent[2], sent[3], sent.last()), ((0, 3), (2_000, 3), (3_000, 8), Some(&(23_000, 15))));
        assert_eq!((samples.peak_bytes(), samples.bins[1].queued), (7, 1));
    }
}
