//! A switch's memory: where its parts lie, and the intervals in which it counts.

use super::sketch;
use crate::packed::packed;
use crate::routes::SwitchConfig;
#[cfg(not(target_arch = "bpf"))]
use crate::scheme::counted::Seen;
use crate::scheme::{Forwarding, Scheme, Size};
use crate::word::Word;

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
    /// The present interval, 1 to [`INTERVALS`](super::INTERVALS); 0 before the first.
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

/// Intervals are numbered from 1 on, and then again, so that entries of [`IntervalTable`]s name theirs. The number is even, since neighbours use
/// two tables in turn.
pub(super) const INTERVALS: u64 = 65_534;

/// A part of a switch's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scheme) struct Region {
    first: u32,
    words: u32,
}

impl Region {
    /// The first part of a memory.
    pub(in crate::scheme) const fn first(words: u32) -> Self {
        Self { first: 0, words }
    }

    /// The part behind another one.
    pub(in crate::scheme) const fn after(before: Self, words: u32) -> Self {
        Self { first: before.first + before.words, words }
    }

    /// Where the entry with this number is, counted from the memory's first word; those that do not exist fall together with others.
    #[inline(always)]
    pub(in crate::scheme) const fn place(self, entry: u32) -> u32 {
        self.first + entry % self.words
    }

    /// The first or the second half of it: neighbouring intervals have one each.
    #[inline(always)]
    const fn half(self, interval: u64) -> Self {
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
pub(super) const SKETCH: Region = Region::after(FLOWS, sketch::HASHES * sketch::ENTRIES);
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

/// Where a switch's memory begins, behind what the base keeps; `None`: it has no Reunion.
#[inline(always)]
pub(super) fn first(switch: &SwitchConfig) -> Option<u32> {
    let base = Scheme::from_number(switch.scheme).reunion_base()?;
    let size = Size { leaves: switch.leaves, uplinks: switch.uplinks };
    Some(switch.memory.wrapping_add(base.words(&size)))
}

/// The word at this place of a switch whose counters are read.
#[cfg(not(target_arch = "bpf"))]
pub(super) fn read(seen: &Seen<'_>, place: u32) -> u64 {
    first(seen.switch).map_or(0, |first| seen.word(first + place))
}

/// The memory of one switch.
pub(super) struct Memory<'a, F> {
    tables: &'a F,
    first: u32,
}

impl<F> Clone for Memory<'_, F> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Memory<'_, F> {}

impl<'a, F: Forwarding> Memory<'a, F> {
    /// That of a switch, behind what the base keeps; `None`: it has no Reunion.
    #[inline(always)]
    pub(super) fn of(tables: &'a F, switch: &SwitchConfig) -> Option<Self> {
        Some(Self { tables, first: first(switch)? })
    }

    /// The word at this place.
    #[inline(always)]
    pub(super) fn word(&self, place: u32) -> Option<&'a F::Word> {
        self.tables.word(self.first.wrapping_add(place))
    }

    /// The value of the word at this place.
    #[inline(always)]
    pub(super) fn load(&self, place: u32) -> Option<u64> {
        Some(self.word(place)?.load())
    }

    /// The port of a way up.
    #[inline(always)]
    pub(super) fn way(&self, way: u32) -> Option<u32> {
        (self.load(WAYS.place(way))? as u32).checked_sub(1)
    }

    /// The present interval.
    #[inline(always)]
    pub(super) fn interval(&self) -> Option<u64> {
        self.load(single::INTERVAL)
    }

    /// The interval at `t_ps`; ends the one before if it is over. A frame that comes late is of the present one.
    //= docs/specs/reunion.md#REU-3 intervals end with a frame
    #[inline(always)]
    pub(super) fn enter(&self, t_ps: u64) -> Option<u64> {
        let (end, number) = (self.word(single::END_PS)?, self.word(single::INTERVAL)?);
        if t_ps < end.load() {
            return Some(number.load());
        }
        let length_ps = self.load(single::LENGTH_PS)?.max(1);
        end.store((t_ps / length_ps + 1) * length_ps);
        let next = number.load() % INTERVALS + 1;
        number.store(next);
        self.word(single::CURSOR)?.store(0);
        sketch::begin(self, next)?;
        Some(next)
    }

    /// Elephants by link of an interval.
    #[inline(always)]
    pub(super) fn links(&self, interval: u64) -> IntervalTable<'a, F> {
        IntervalTable { memory: *self, part: LINKS.half(interval), interval }
    }

    /// The path or port of each elephant that went through or came in an interval.
    #[inline(always)]
    pub(super) fn seen(&self, interval: u64) -> IntervalTable<'a, F> {
        IntervalTable { memory: *self, part: SEEN, interval }
    }

    /// Elephants that came in an interval, by link.
    #[inline(always)]
    pub(super) fn arrived(&self, interval: u64) -> IntervalTable<'a, F> {
        IntervalTable { memory: *self, part: ARRIVED, interval }
    }

    /// Entry `entry` of one of the parts that neighbouring intervals have two of.
    #[inline(always)]
    pub(super) fn of_interval(&self, part: Region, interval: u64, entry: u32) -> Option<&'a F::Word> {
        self.word(part.half(interval).place(entry))
    }
}

/// The interval before.
#[inline(always)]
pub(super) const fn before(interval: u64) -> u64 {
    if interval <= 1 { INTERVALS } else { interval - 1 }
}

/// Values by key, of one interval: in the next it is empty, without having been cleared.
///
/// Each key has four places. A key for which there is none left is not counted.
pub(super) struct IntervalTable<'a, F> {
    memory: Memory<'a, F>,
    part: Region,
    interval: u64,
}

/// Places of a key.
pub(super) const PLACES: u32 = 4;

packed! {
    /// The word of an entry.
    struct Kept {
        value: u32 in 16,
        interval: u64 in 16,
        key: u32 in 32,
    }
}

/// An entry of a table.
pub(super) struct Entry<'a, W> {
    word: &'a W,
    head: Kept,
    /// What it holds; `None`: the key is new.
    pub(super) value: Option<u32>,
}

impl<W: Word> Entry<'_, W> {
    /// Sets the value, at most 65,535.
    #[inline(always)]
    pub(super) fn set(&self, value: u32) {
        self.word.store(Kept { value, ..self.head }.pack());
    }
}

impl<'a, F: Forwarding> IntervalTable<'a, F> {
    /// The entry of a key: its own, or one that this interval does not use. `None`: there is none left.
    //= docs/specs/reunion.md#REU-4 tables of an interval
    #[inline(always)]
    pub(super) fn entry(&self, key: u32) -> Option<Entry<'a, F::Word>> {
        let Memory { tables, first } = self.memory;
        let head = Kept { value: 0, interval: self.interval, key };
        let found = tables.look_up(first.wrapping_add(self.part.first), self.part.words, head.pack());
        let word = tables.word((found as u32).checked_sub(1)?)?;
        let value = if found & KNOWN != 0 { Some(Kept::unpack(word.load()).value) } else { None };
        Some(Entry { word, head, value })
    }

    /// The value of a key; 0 if it is new.
    #[inline(always)]
    pub(super) fn value(&self, key: u32) -> u32 {
        self.entry(key).and_then(|entry| entry.value).unwrap_or(0)
    }

    /// Counts one more; returns how many there are. A mark stays.
    #[inline(always)]
    pub(super) fn count(&self, key: u32) -> u32 {
        let Some(entry) = self.entry(key) else { return 0 };
        let known = entry.value.unwrap_or(0);
        let next = if known & MOST == MOST { known } else { known + 1 };
        entry.set(next);
        next & MOST
    }

    /// Marks a link as not to be chosen; what is counted stays.
    #[inline(always)]
    pub(super) fn mark(&self, link: u32) {
        if let Some(entry) = self.entry(link) {
            entry.set(entry.value.unwrap_or(0) | MARKED);
        }
    }
}

/// Looks a key up in a table of `words` from `first` on; `head` is its entry with the value 0. Gives 1 plus the word of its entry or of a free one,
/// with bit 32 set if it is its own; 0: there is none left.
#[inline(always)]
pub fn look_up<F: Forwarding>(tables: &F, first: u32, words: u32, head: u64) -> u64 {
    let set = Kept::unpack(head).key.wrapping_mul(0x9e37_79b1) >> 16;
    let mut free = 0;
    for place in 0..PLACES {
        let index = first.wrapping_add(set.wrapping_mul(PLACES).wrapping_add(place) % words.max(1));
        let Some(word) = tables.word(index) else { return 0 };
        let known = word.load();
        if known >> 16 == head >> 16 {
            return KNOWN | (u64::from(index) + 1);
        }
        if free == 0 && Kept::unpack(known).interval != Kept::unpack(head).interval {
            free = u64::from(index) + 1;
        }
    }
    free
}

/// The entry that [`look_up`] has found is the key's own.
const KNOWN: u64 = 1 << 32;

/// A bit beside the count of a link that is not to be chosen: the paper's infinity.
pub(super) const MARKED: u32 = 0x8000;
/// Most that a table counts.
pub(super) const MOST: u32 = MARKED - 1;
