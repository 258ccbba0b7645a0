//! Where the parts of a switch's memory lie.

/// Single words, in their order.
pub(super) mod single {
    /// Length of an interval in ps: `s`.
    pub(crate) const LENGTH_PS: u32 = 0;
    /// Elephants that a link may have without a collision: `t`.
    pub(crate) const TOLERANCE: u32 = 1;
    /// A pause after which a flow goes by the base again, in ps.
    pub(crate) const TIMEOUT_PS: u32 = 2;
    /// Most elephants of a source switch.
    pub(crate) const HOT: u32 = 3;
    /// Whether notifications ride on frames that go back; else they are frames of their own.
    pub(crate) const RIDE: u32 = 4;
    /// The present interval, 1 to [`INTERVALS`](super::super::memory::INTERVALS); 0 before the first.
    pub(crate) const INTERVAL: u32 = 5;
    /// When it ends.
    pub(crate) const END_PS: u32 = 6;
    /// The class from which on a flow is an elephant, at least 1.
    pub(crate) const THRESHOLD: u32 = 7;
    /// Elephants of the present interval.
    pub(crate) const ELEPHANTS: u32 = 8;
    /// Where to look for the next notification.
    pub(crate) const CURSOR: u32 = 9;
    /// Flows given another path.
    pub(crate) const REROUTED: u32 = 10;
    /// Flows that were to be, and for which there was no path.
    pub(crate) const STUCK: u32 = 11;
    /// Notifications sent.
    pub(crate) const NOTIFIED: u32 = 12;
    /// The interval whose notifications are all sent.
    #[cfg(not(target_arch = "bpf"))]
    pub(crate) const SENT: u32 = 13;
    /// How many there are.
    pub(crate) const COUNT: u32 = 16;
}

/// Hash functions, the paper's `a`: 7 with the example of §3.2.
pub(super) const HASHES: u32 = 7;
/// Entries of each, the paper's `k`: 2000 with its example; a power of two.
pub(super) const ENTRIES: u32 = 2_048;

/// A part of a switch's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) first: u32,
    pub(super) words: u32,
}

impl Region {
    /// The first part of a memory.
    pub(super) const fn first(words: u32) -> Self {
        Self { first: 0, words }
    }

    /// The part behind another one.
    pub(super) const fn after(before: Self, words: u32) -> Self {
        Self { first: before.first + before.words, words }
    }

    /// Where the entry with this number is, counted from the memory's first word; those that do not exist fall together with others.
    #[inline(always)]
    pub(super) const fn place(self, entry: u32) -> u32 {
        self.first + entry % self.words
    }

    /// The first or the second half of it: neighbouring intervals have one each.
    #[inline(always)]
    pub(super) const fn half(self, interval: u64) -> Self {
        let words = self.words / 2;
        Self { first: self.first + (interval as u32 & 1) * words, words }
    }
}

const SINGLE: Region = Region::first(single::COUNT);
/// The port of each way up, plus 1; way 0 does not exist.
pub(super) const WAYS: Region = Region::after(SINGLE, 256);
/// Elephants by link, of this and the last interval.
pub(super) const LINKS: Region = Region::after(WAYS, 2 * 1_024);
/// Elephants that go through, or come here.
pub(super) const SEEN: Region = Region::after(LINKS, 2_048);
/// How many flows of this interval have so many frames, by the power of two.
pub(super) const CLASSES: Region = Region::after(SEEN, 32);
/// The Flow Path Table, of two words for each flow.
pub(super) const FLOWS: Region = Region::after(CLASSES, 4_096);
/// The Count-Min Sketch.
pub(super) const SKETCH: Region = Region::after(FLOWS, HASHES * ENTRIES);
/// Elephants that come here, by link.
pub(super) const ARRIVED: Region = Region::after(SKETCH, 1_024);
/// Highly utilised links of this and the last interval: how many, and which.
pub(super) const HIGH: Region = Region::after(ARRIVED, 2 * (1 + MOST_HIGH));
/// Bottlenecks of this and the last interval, of two words each.
pub(super) const BOTTLENECKS: Region = Region::after(HIGH, 2 * 2 * MOST_BOTTLENECKS);
const END: Region = Region::after(BOTTLENECKS, 0);

/// Highly utilised links that a notification lists.
pub(super) const MOST_HIGH: u32 = 64;
/// Bottlenecks that a switch tells apart.
pub(super) const MOST_BOTTLENECKS: u32 = 128;

/// Words of a switch, beside those of the base.
pub(crate) const WORDS: u32 = END.first;
