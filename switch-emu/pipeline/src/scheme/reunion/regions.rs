//! The layout of a switch's memory.

pub(super) mod single {
    /// Length of an interval in ps: `s`.
    pub(crate) const LENGTH_PS: u32 = 0;
    /// Elephants per link without a collision: `t`.
    pub(crate) const TOLERANCE: u32 = 1;
    /// The pause after which a flow returns to the base, in ps.
    pub(crate) const TIMEOUT_PS: u32 = 2;
    /// Maximum number of elephants of a source switch.
    pub(crate) const MAX_ELEPHANTS: u32 = 3;
    /// Whether notifications are piggybacked.
    pub(crate) const PIGGYBACK: u32 = 4;
    /// 1 to [`INTERVALS`](super::super::memory::INTERVALS); 0 before the first.
    pub(crate) const INTERVAL: u32 = 5;
    pub(crate) const END_PS: u32 = 6;
    /// The lowest class of an elephant, at least 1.
    pub(crate) const THRESHOLD: u32 = 7;
    pub(crate) const ELEPHANTS: u32 = 8;
    /// The place of the next notification.
    pub(crate) const CURSOR: u32 = 9;
    pub(crate) const REROUTED: u32 = 10;
    pub(crate) const STUCK: u32 = 11;
    pub(crate) const NOTIFIED: u32 = 12;
    /// The last interval with all notifications sent.
    #[cfg(not(target_arch = "bpf"))]
    pub(crate) const SENT: u32 = 13;
    pub(crate) const COUNT: u32 = 16;
}

/// Hash functions, the paper's `a`: 7 with the example of §3.2.
pub(super) const HASHES: u32 = 7;
/// Entries per hash function, the paper's `k`: 2000 with its example; a power of two.
pub(super) const ENTRIES: u32 = 2_048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) first: u32,
    pub(super) words: u32,
}

impl Region {
    pub(super) const fn first(words: u32) -> Self {
        Self { first: 0, words }
    }

    pub(super) const fn after(before: Self, words: u32) -> Self {
        Self { first: before.first + before.words, words }
    }

    /// The place of an entry from the memory's start; numbers beyond the end wrap.
    #[inline(always)]
    pub(super) const fn place(self, entry: u32) -> u32 {
        self.first + entry % self.words
    }

    /// The half of the region for an interval: they alternate.
    #[inline(always)]
    pub(super) const fn half(self, interval: u64) -> Self {
        let words = self.words / 2;
        Self { first: self.first + (interval as u32 & 1) * words, words }
    }
}

const SINGLE: Region = Region::first(single::COUNT);
/// The port of each uplink, plus 1; uplink 0 does not exist.
pub(super) const UPLINKS: Region = Region::after(SINGLE, 256);
/// Elephants by link, of this and the last interval.
pub(super) const LINKS: Region = Region::after(UPLINKS, 2 * 1_024);
/// Elephants that pass or arrive.
pub(super) const SEEN: Region = Region::after(LINKS, 2_048);
/// Number of flows of this interval by frame count, in powers of two.
pub(super) const CLASSES: Region = Region::after(SEEN, 32);
/// The Flow Path Table, of two words for each flow.
pub(super) const FLOWS: Region = Region::after(CLASSES, 4_096);
pub(super) const SKETCH: Region = Region::after(FLOWS, HASHES * ENTRIES);
/// Elephants that arrive, by link.
pub(super) const ARRIVED: Region = Region::after(SKETCH, 1_024);
/// Highly utilised links of this and the last interval: their number, then the links.
pub(super) const HIGH: Region = Region::after(ARRIVED, 2 * (1 + MAX_HIGH));
/// Bottlenecks of this and the last interval, of two words each.
pub(super) const BOTTLENECKS: Region = Region::after(HIGH, 2 * 2 * MAX_BOTTLENECKS);
const END: Region = Region::after(BOTTLENECKS, 0);

pub(super) const MAX_HIGH: u32 = 64;
pub(super) const MAX_BOTTLENECKS: u32 = 128;

/// Words of a switch, without the base's.
pub(crate) const WORDS: u32 = END.first;
