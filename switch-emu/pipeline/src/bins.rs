//! What happens at a port over virtual time, counted where it happens into bins.
//!
//! There are as many cells as a [`Scale`] says, whatever the run's length: first a cell for everything before time 0, then `2^first_log2`
//! bins of the width that is asked for, then half as many of twice the width, and so on, [`LEVELS`] times. Nothing is ever moved: a cell's
//! number follows from the time. A reader adds up shorter bins to the width of the longest: see [`Scale::place`].

use crate::counters::counter_words;
use crate::word::Word;

/// How often the width doubles: a run may last `2^LEVELS` times as long as the first bins.
pub const LEVELS: u32 = 10;
/// Fewest and most bins of the first width, as powers of two. A plot shows no more.
const FEWEST_LOG2: u32 = 4;
const MOST_LOG2: u32 = 8;

counter_words! {
    /// What happened at a port during a bin: 56 bytes.
    Bin, pub add {
        /// Bytes of frames whose last bit left the port, after trimming.
        sent_bytes: sum,
        /// Most bytes of both classes at the port when a frame came, with that frame.
        queue_max: most,
        /// These bytes, summed over the frames that came.
        queue_sum: sum,
        /// Frames that came and found room.
        queued: sum,
        /// Those of them that the port marked.
        marks: sum,
        /// Frames that the port cut to their header.
        trims: sum,
        /// Frames that came and went no further, whatever the cause.
        drops: sum,
    }
}

impl Bin {
    /// Bytes at the port, as the frames that came found it with themselves: the mean over them.
    pub fn queue_mean(&self) -> f64 {
        if self.queued == 0 { 0.0 } else { self.queue_sum as f64 / self.queued as f64 }
    }
}

/// What a port did with a frame, or a part of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crossing {
    /// When the frame came.
    pub came_ps: u64,
    /// When its last bit has left, behind both classes: a link does not care which bytes it sends.
    pub left_ps: u64,
    /// Bytes of both classes at the port, its own included; 0 if it was not queued.
    pub waiting: u32,
    /// Bytes of it that leave; 0 if none do, or if that is counted by [`Cells::left`] later.
    pub bytes: u32,
    /// Of [`MARKED`], [`TRIMMED`] and [`LOST`].
    pub became: u32,
}

/// The port set the frame's mark.
pub const MARKED: u32 = 1;
/// The port cut it.
pub const TRIMMED: u32 = 2;
/// It goes no further.
pub const LOST: u32 = 4;

impl Crossing {
    /// Of a frame that came at `t_ps`; nothing has become of it.
    pub const fn at(t_ps: u64) -> Self {
        Self { came_ps: t_ps, left_ps: 0, waiting: 0, bytes: 0, became: 0 }
    }
}

/// Which bins there are.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scale {
    /// When the first bin begins.
    pub begin_ps: u64,
    /// How long bins are at first; 0: nothing is counted.
    pub bin_ps: u64,
    /// How many there are of that width, as a power of two.
    pub first_log2: u64,
}

impl Scale {
    /// Bins of `asked_ps`, or of a power of two times that, such that `span_ps` from `begin_ps` on has a place; the cells of `series` take
    /// at most `bytes`, unless the least number of them takes more: 5,432 bytes each. The most are 86,072 each.
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

    /// The bins of something of which there is one.
    pub fn single(begin_ps: u64, asked_ps: u64, span_ps: u64) -> Self {
        Self::new(begin_ps, asked_ps, span_ps, 1, usize::MAX)
    }

    /// Whether anything is counted.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.bin_ps != 0
    }

    /// How many cells there are.
    #[inline(always)]
    pub fn cells(&self) -> usize {
        if self.is_on() { Self::cells_of(self.first_log2) } else { 0 }
    }

    #[inline(always)]
    const fn cells_of(first_log2: u64) -> usize {
        1 + (1 << first_log2) + ((LEVELS as usize) << first_log2) / 2
    }

    /// The cell of `t_ps`; what is later than all of them belongs to the last.
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

    /// How often the width has doubled at a cell, and its bin's number among all bins of that width from `begin_ps` on; `None` for the cell
    /// before these.
    pub fn place(&self, cell: u32) -> Option<(u32, u64)> {
        let bin = u64::from(cell.checked_sub(1)?);
        let half = (1 << self.first_log2) / 2;
        let level = (bin / half).saturating_sub(1);
        Some((level as u32, bin - level * half))
    }
}

/// The cells of a port.
pub trait Cells {
    /// What they are made of.
    type Word: Word;
    /// Which there are.
    fn scale(&self) -> &Scale;
    /// One of them.
    fn bin(&self, cell: u32) -> Option<&Bin<Self::Word>>;

    /// Counts what the port did with a frame: what it found in the bin in which it came, and its bytes in that in which it left.
    #[inline(always)]
    fn crossed(&self, crossing: &Crossing) {
        if let Some(bin) = self.bin(self.scale().cell(crossing.came_ps)) {
            bin.count(crossing);
        }
        if crossing.bytes > 0 {
            self.left(crossing.left_ps, crossing.bytes);
        }
    }

    /// Counts bytes that have left at `t_ps`.
    #[inline(always)]
    fn left(&self, t_ps: u64, bytes: u32) {
        if let Some(bin) = self.bin(self.scale().cell(t_ps)) {
            bin.sent_bytes.add(u64::from(bytes));
        }
    }
}

impl<W: Word> Bin<W> {
    #[inline(always)]
    fn count(&self, crossing: &Crossing) {
        if crossing.waiting > 0 {
            let waiting = u64::from(crossing.waiting);
            if self.queue_max.load() < waiting {
                self.queue_max.store(waiting);
            }
            self.queue_sum.add(waiting);
            self.queued.add(1);
        }
        for (what, count) in [(MARKED, &self.marks), (TRIMMED, &self.trims), (LOST, &self.drops)] {
            if crossing.became & what != 0 {
                count.add(1);
            }
        }
    }
}

#[cfg(test)]
mod tests;
