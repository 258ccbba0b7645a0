//! A switch's memory, and its tables per interval.

use super::regions::{ARRIVED, LINKS, Region, SEEN, UPLINKS, single};
use crate::packed::packed;
use crate::routes::SwitchConfig;
#[cfg(not(target_arch = "bpf"))]
use crate::scheme::counter::CounterSource;
use crate::scheme::forwarding::Forwarding;
use crate::scheme::layout::Size;
use crate::scheme::list::Scheme;
use crate::word::Word;

/// Intervals are numbered from 1 on, modulo this, so that entries of [`IntervalTable`]s name
/// theirs. Even, since neighbouring intervals alternate between two tables.
pub(super) const INTERVALS: u64 = 65_534;

/// The index of a switch's memory, behind the base's; `None`: no Reunion.
#[inline(always)]
pub(super) fn first(switch: &SwitchConfig) -> Option<u32> {
    let base = Scheme::from_number(switch.scheme).reunion_base()?;
    let size = Size { leaves: switch.leaves, uplinks: switch.uplinks };
    Some(switch.memory.wrapping_add(base.words(&size)))
}

#[cfg(not(target_arch = "bpf"))]
pub(super) fn read(seen: &CounterSource<'_>, place: u32) -> u64 {
    first(seen.switch).map_or(0, |first| seen.word(first + place))
}

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
    /// `None`: no Reunion.
    #[inline(always)]
    pub(super) fn of(tables: &'a F, switch: &SwitchConfig) -> Option<Self> {
        Some(Self { tables, first: first(switch)? })
    }

    #[inline(always)]
    pub(super) fn word(&self, place: u32) -> Option<&'a F::Word> {
        self.tables.word(self.first.wrapping_add(place))
    }

    #[inline(always)]
    pub(super) fn load(&self, place: u32) -> Option<u64> {
        Some(self.word(place)?.load())
    }

    #[inline(always)]
    pub(super) fn uplink(&self, uplink: u32) -> Option<u32> {
        (self.load(UPLINKS.place(uplink))? as u32).checked_sub(1)
    }

    #[inline(always)]
    pub(super) fn interval(&self) -> Option<u64> {
        self.load(single::INTERVAL)
    }

    /// Elephants by link, of an interval.
    #[inline(always)]
    pub(super) fn links(&self, interval: u64) -> IntervalTable<'a, F> {
        IntervalTable { memory: *self, part: LINKS.half(interval), interval }
    }

    /// The path or port of each elephant seen in an interval.
    #[inline(always)]
    pub(super) fn seen(&self, interval: u64) -> IntervalTable<'a, F> {
        IntervalTable { memory: *self, part: SEEN, interval }
    }

    /// Elephants that arrived in an interval, by link.
    #[inline(always)]
    pub(super) fn arrived(&self, interval: u64) -> IntervalTable<'a, F> {
        IntervalTable { memory: *self, part: ARRIVED, interval }
    }

    /// Entry `entry` of a region with halves for alternating intervals.
    #[inline(always)]
    pub(super) fn of_interval(&self, part: Region, interval: u64, entry: u32) -> Option<&'a F::Word> {
        self.word(part.half(interval).place(entry))
    }
}

#[inline(always)]
pub(super) const fn before(interval: u64) -> u64 {
    if interval <= 1 { INTERVALS } else { interval - 1 }
}

/// Values by key, of one interval: empty in the next without being cleared. A key with no free one
/// of its four places is not counted.
pub(super) struct IntervalTable<'a, F> {
    memory: Memory<'a, F>,
    part: Region,
    interval: u64,
}

pub(super) const PLACES: u32 = 4;

packed! {
    struct EntryWord {
        value: u32 in 16,
        interval: u64 in 16,
        key: u32 in 32,
    }
}

pub(super) struct Entry<'a, W> {
    word: &'a W,
    head: EntryWord,
    /// `None`: the key is new.
    pub(super) value: Option<u32>,
}

impl<W: Word> Entry<'_, W> {
    /// At most 65,535.
    #[inline(always)]
    pub(super) fn set(&self, value: u32) {
        self.word.store(EntryWord { value, ..self.head }.pack());
    }
}

impl<'a, F: Forwarding> IntervalTable<'a, F> {
    /// The entry of a key: its own or a free one; `None`: none is free.
    //= docs/specs/reunion.md#REU-4 tables of an interval
    #[inline(always)]
    pub(super) fn entry(&self, key: u32) -> Option<Entry<'a, F::Word>> {
        let Memory { tables, first } = self.memory;
        let head = EntryWord { value: 0, interval: self.interval, key };
        let found = tables.look_up(first.wrapping_add(self.part.first), self.part.words, head.pack());
        let word = tables.word((found as u32).checked_sub(1)?)?;
        let value = if found & KNOWN != 0 { Some(EntryWord::unpack(word.load()).value) } else { None };
        Some(Entry { word, head, value })
    }

    #[inline(always)]
    pub(super) fn value(&self, key: u32) -> u32 {
        self.entry(key).and_then(|entry| entry.value).unwrap_or(0)
    }

    /// Increments and returns the count; a mark is kept.
    #[inline(always)]
    pub(super) fn count(&self, key: u32) -> u32 {
        let Some(entry) = self.entry(key) else { return 0 };
        let known = entry.value.unwrap_or(0);
        let next = if known & MAX_COUNT == MAX_COUNT { known } else { known + 1 };
        entry.set(next);
        next & MAX_COUNT
    }

    /// Excludes a link; its count is kept.
    #[inline(always)]
    pub(super) fn mark(&self, link: u32) {
        if let Some(entry) = self.entry(link) {
            entry.set(entry.value.unwrap_or(0) | MARKED);
        }
    }
}

/// Looks up a key in a table of `words` from `first` on; `head` is its entry with the value 0.
/// Returns 1 plus the index of its entry, with bit 32 set, or of a free one; 0: none is free.
#[inline(always)]
pub fn look_up<F: Forwarding>(tables: &F, first: u32, words: u32, head: u64) -> u64 {
    let set = EntryWord::unpack(head).key.wrapping_mul(0x9e37_79b1) >> 16;
    let mut free = 0;
    for place in 0..PLACES {
        let index = first.wrapping_add(set.wrapping_mul(PLACES).wrapping_add(place) % words.max(1));
        let Some(word) = tables.word(index) else { return 0 };
        let known = word.load();
        if known >> 16 == head >> 16 {
            return KNOWN | (u64::from(index) + 1);
        }
        if free == 0 && EntryWord::unpack(known).interval != EntryWord::unpack(head).interval {
            free = u64::from(index) + 1;
        }
    }
    free
}

const KNOWN: u64 = 1 << 32;

/// Set beside the count of an excluded link: the paper's infinity.
pub(super) const MARKED: u32 = 0x8000;
/// The maximum count of a table.
pub(super) const MAX_COUNT: u32 = MARKED - 1;
