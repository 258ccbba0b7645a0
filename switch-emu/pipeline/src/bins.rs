//! Time series of a port over virtual time.
//!
//! The number of cells does not depend on the run: a cell for the time before 0, then
//! `2^first_log2` bins, then half as many of twice the width, and so on, [`LEVELS`] times. A cell's
//! number follows from the time. Readers merge shorter bins to the longest: [`BinScale::place`].

use crate::counters::counter_words;
use crate::word::Word;

/// How often the width doubles: a run may last `2^LEVELS` times as long as the first bins.
pub const LEVELS: u32 = 10;
/// Limits of the number of bins of the first width, as powers of two. A plot shows no more.
const FEWEST_LOG2: u32 = 4;
const MOST_LOG2: u32 = 8;

counter_words! {
    /// Counts of a port during a bin: 56 bytes.
    Bin, pub add {
        /// Bytes of frames that left the port completely, after trimming.
        sent_bytes: sum,
        /// Maximum queue in bytes, of both classes, found by an arriving frame, with that frame.
        queue_max: most,
        /// Sum of the queues in bytes found by arriving frames.
        queue_sum: sum,
        /// Frames queued.
        queued: sum,
        /// Frames marked.
        marks: sum,
        /// Frames trimmed to their header.
        trims: sum,
        /// Frames dropped, for any cause.
        drops: sum,
    }
}

impl Bin {
    /// Returns the mean queue in bytes found by arriving frames, each with itself.
    pub fn queue_mean(&self) -> f64 {
        if self.queued == 0 { 0.0 } else { self.queue_sum as f64 / self.queued as f64 }
    }
}

/// What a port did with a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transit {
    /// Arrival of the frame.
    pub arrived_ps: u64,
    /// Departure of its last bit, behind both classes.
    pub departed_ps: u64,
    /// Queued bytes of both classes, its own included; 0 if it was not queued.
    pub waiting: u32,
    /// Bytes sent; 0 if none, or if [`Cells::left`] counts them later.
    pub bytes: u32,
    /// Flags: [`MARKED`], [`TRIMMED`], [`LOST`].
    pub flags: u32,
}

/// The port marked the frame.
pub const MARKED: u32 = 1;
/// The port trimmed it.
pub const TRIMMED: u32 = 2;
/// It was dropped.
pub const LOST: u32 = 4;

impl Transit {
    /// A frame that arrived at `t_ps`, without flags.
    pub const fn at(t_ps: u64) -> Self {
        Self { arrived_ps: t_ps, departed_ps: 0, waiting: 0, bytes: 0, flags: 0 }
    }
}

/// The bins' start, width and number.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BinScale {
    /// Start of the first bin.
    pub begin_ps: u64,
    /// Width of the first bins; 0: the series is off.
    pub bin_ps: u64,
    /// Number of bins of that width, as a power of two.
    pub first_log2: u64,
}

impl BinScale {
    /// Creates bins of `asked_ps`, or a power of two times that, that cover `span_ps`. All `series`
    /// take at most `bytes`, but at least 5,432 and at most 86,072 bytes each.
    pub fn new(begin_ps: u64, asked_ps: u64, span_ps: u64, series: usize, bytes: usize) -> Self {
        if asked_ps == 0 {
            return Self::default();
        }
        let fits = |log2: &u32| Self::cells_of(u64::from(*log2)).saturating_mul(size_of::<Bin>() * series) <= bytes;
        let first_log2 = (FEWEST_LOG2..=MOST_LOG2).rev().find(fits).unwrap_or(FEWEST_LOG2);
        let mut bin_ps = asked_ps;
        while bin_ps.saturating_mul(1 << (first_log2 + LEVELS)) < span_ps {
            bin_ps = bin_ps.saturating_mul(2);
        }
        Self { begin_ps, bin_ps, first_log2: first_log2.into() }
    }

    /// Creates the bins of one series, without a limit of memory.
    pub fn single(begin_ps: u64, asked_ps: u64, span_ps: u64) -> Self {
        Self::new(begin_ps, asked_ps, span_ps, 1, usize::MAX)
    }

    /// Returns whether the series is on.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.bin_ps != 0
    }

    /// Returns the number of cells.
    #[inline(always)]
    pub fn cells(&self) -> usize {
        if self.is_on() { Self::cells_of(self.first_log2) } else { 0 }
    }

    #[inline(always)]
    const fn cells_of(first_log2: u64) -> usize {
        1 + (1 << first_log2) + ((LEVELS as usize) << first_log2) / 2
    }

    /// Returns the cell of `t_ps`; later times than all cells belong to the last.
    #[inline(always)]
    pub fn cell(&self, t_ps: u64) -> u32 {
        if t_ps < self.begin_ps {
            return 0;
        }
        let bin = (t_ps - self.begin_ps).checked_div(self.bin_ps).unwrap_or(0);
        let level = u64::from(64 - (bin >> self.first_log2).leading_zeros());
        let last = (1 << self.first_log2) + (u64::from(LEVELS) << self.first_log2) / 2;
        let cell = 1 + ((level << self.first_log2) >> 1) + (bin >> level);
        (if level > u64::from(LEVELS) { last } else { cell }) as u32
    }

    /// Returns how often the width has doubled at a cell, and its number among bins of that width
    /// since `begin_ps`; `None` for the cell before these.
    pub fn place(&self, cell: u32) -> Option<(u32, u64)> {
        let bin = u64::from(cell.checked_sub(1)?);
        let half = (1 << self.first_log2) / 2;
        let level = (bin / half).saturating_sub(1);
        Some((level as u32, bin - level * half))
    }
}

/// The cells of a port.
pub trait Cells {
    /// The counters' type.
    type Word: Word;
    /// The bins.
    fn scale(&self) -> &BinScale;
    /// Returns a cell.
    fn bin(&self, cell: u32) -> Option<&Bin<Self::Word>>;

    /// Counts a frame: its queue in the bin of its arrival, its bytes in that of its departure.
    #[inline(always)]
    fn record(&self, transit: &Transit) {
        if let Some(bin) = self.bin(self.scale().cell(transit.arrived_ps)) {
            bin.count(transit);
        }
        if transit.bytes > 0 {
            self.left(transit.departed_ps, transit.bytes);
        }
    }

    /// Counts bytes that left at `t_ps`.
    #[inline(always)]
    fn left(&self, t_ps: u64, bytes: u32) {
        if let Some(bin) = self.bin(self.scale().cell(t_ps)) {
            bin.sent_bytes.add(u64::from(bytes));
        }
    }
}

impl<W: Word> Bin<W> {
    #[inline(always)]
    fn count(&self, transit: &Transit) {
        if transit.waiting > 0 {
            let waiting = u64::from(transit.waiting);
            if self.queue_max.load() < waiting {
                self.queue_max.store(waiting);
            }
            self.queue_sum.add(waiting);
            self.queued.add(1);
        }
        for (what, count) in [(MARKED, &self.marks), (TRIMMED, &self.trims), (LOST, &self.drops)] {
            if transit.flags & what != 0 {
                count.add(1);
            }
        }
    }
}

#[cfg(test)]
mod tests;
