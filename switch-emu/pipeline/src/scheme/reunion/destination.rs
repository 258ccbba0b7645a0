//! The destination switch: records collisions, and notifies sources (Reunion §3.3 to §3.5).

use super::hop::Hop;
use super::links::{self, Walk};
use super::memory::{Memory, PLACES, before};
use super::regions::{BOTTLENECKS, HIGH, MAX_BOTTLENECKS, MAX_HIGH, single};
use crate::packed::packed;
use crate::scheme::forwarding::Forwarding;
use crate::scheme::note::ReunionNote;
#[cfg(not(target_arch = "bpf"))]
use crate::scheme::notice::Notice;
use crate::scheme::path::PathEnds;
use crate::word::Word;

/// A notification, without its highly utilised links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Notification {
    /// The link where elephants collide.
    pub(super) link: u32,
    /// The flow to move.
    pub(super) flow: u64,
    /// As numbered at the destination.
    pub(super) interval: u64,
}

/// Processes a frame from another leaf, if it is of an elephant.
#[inline(always)]
pub(super) fn arrive<F: Forwarding>(hop: &Hop<'_, F>, note: ReunionNote) -> Option<()> {
    let Hop { tables, trail, ref memory, ref ends, .. } = *hop;
    let interval = memory.interval()?;
    if !note.elephant {
        return Some(());
    }
    let flow = trail.flow();
    let entry = memory.seen(interval).entry((flow >> 32) as u32);
    if let Some(entry) = entry
        && entry.value != Some(note.path)
    {
        entry.set(note.path);
        count(tables, memory, interval, ends, note.path)?;
    }
    if note.bottleneck != 0
        && let Some(link) = Walk::new(tables, ends, note.path).link(note.bottleneck)
    {
        record(memory, interval, link, flow, ends.from)?;
    }
    Some(())
}

/// Counts an elephant on its links (the Link Table); lists links that reach the tolerance.
//= docs/specs/reunion.md#REU-12 highly utilised links
#[inline(always)]
fn count<F: Forwarding>(tables: &F, memory: &Memory<'_, F>, interval: u64, ends: &PathEnds, path: u32) -> Option<()> {
    let tolerance = memory.load(single::TOLERANCE)?;
    links::count(tables, ends, &memory.arrived(interval), path, |link, elephants| {
        if u64::from(elephants) == tolerance {
            list(memory, interval, link);
        }
    });
    Some(())
}

packed! {
    /// The number of listed links of an interval.
    struct Listed {
        links: u32 in 32,
        interval: u64 in 32,
    }
}

impl Listed {
    #[inline(always)]
    fn of(word: u64, interval: u64) -> u32 {
        let listed = Self::unpack(word);
        if listed.interval == interval { listed.links } else { 0 }
    }
}

#[inline(always)]
fn list<F: Forwarding>(memory: &Memory<'_, F>, interval: u64, link: u32) {
    let Some(word) = memory.of_interval(HIGH, interval, 0) else { return };
    let listed = Listed::of(word.load(), interval);
    if listed < MAX_HIGH
        && let Some(entry) = memory.of_interval(HIGH, interval, 1 + listed)
    {
        entry.store(u64::from(link));
        word.store(Listed { links: listed + 1, interval }.pack());
    }
}

/// Calls `mark` with every highly utilised link of an interval, if that is still known.
#[inline(always)]
pub(super) fn for_high<F: Forwarding>(memory: &Memory<'_, F>, interval: u64, mark: impl Fn(u32)) {
    let listed = Listed::of(memory.of_interval(HIGH, interval, 0).map_or(0, Word::load), interval);
    for entry in 0..listed.min(MAX_HIGH) {
        if let Some(link) = memory.of_interval(HIGH, interval, 1 + entry) {
            mark(link.load() as u32);
        }
    }
}

packed! {
    struct Bottleneck {
        source: u32 in 16,
        interval: u64 in 16,
        link: u32 in 32,
    }
}

/// A place of the Bottleneck Link Table: [`Bottleneck`], and the flow with [`UNSENT`].
#[inline(always)]
fn bottleneck<'a, F: Forwarding>(
    memory: &Memory<'a, F>,
    interval: u64,
    place: u32,
) -> Option<(&'a F::Word, &'a F::Word)> {
    let entry = 2 * (place % MAX_BOTTLENECKS);
    Some((memory.of_interval(BOTTLENECKS, interval, entry)?, memory.of_interval(BOTTLENECKS, interval, entry + 1)?))
}

const UNSENT: u64 = 1;

/// Stores the last flow over a bottleneck, and its source, in the link's first own or free place.
//= docs/specs/reunion.md#REU-13 the flow to move
#[inline(always)]
pub(super) fn record<F: Forwarding>(
    memory: &Memory<'_, F>,
    interval: u64,
    link: u32,
    flow: u64,
    source: u32,
) -> Option<()> {
    for step in 0..PLACES {
        let (head, name) = bottleneck(memory, interval, link.wrapping_add(step))?;
        let there = Bottleneck::unpack(head.load());
        if there.interval != interval || there.link == link {
            head.store(Bottleneck { source, interval, link }.pack());
            name.store(flow | UNSENT);
            break;
        }
    }
    Some(())
}

/// Reads the notification at this place, if it is of the interval with these low bits.
#[inline(always)]
pub(super) fn read<F: Forwarding>(memory: &Memory<'_, F>, place: u32, low: u64) -> Option<Notification> {
    // The lowest bit selects the half of the table.
    let (head, name) = bottleneck(memory, low, place)?;
    let (Bottleneck { link, interval, .. }, flow) = (Bottleneck::unpack(head.load()), name.load() | UNSENT);
    if interval & 0xff == low { Some(Notification { link, flow, interval }) } else { None }
}

/// A notification to piggyback on a frame to a leaf: each call tries the next place of the table.
//= docs/specs/reunion.md#REU-18 piggybacked notifications
#[inline(always)]
pub(super) fn piggyback<F: Forwarding>(
    tables: &F,
    memory: &Memory<'_, F>,
    interval: u64,
    target: u32,
) -> Option<ReunionNote> {
    if memory.load(single::PIGGYBACK)? == 0 {
        return None;
    }
    let place = memory.word(single::CURSOR)?.next() as u32 % MAX_BOTTLENECKS;
    let is_there = |source: u32| tables.switch(source).is_some_and(|switch| switch.leaf == target);
    take(memory, before(interval), place, is_there).map(|_| ReunionNote::notify(place, before(interval)))
}

/// Takes the unsent notification at a place if its source `fits`; returns the source.
#[inline(always)]
fn take<F: Forwarding>(
    memory: &Memory<'_, F>,
    interval: u64,
    place: u32,
    fits: impl FnOnce(u32) -> bool,
) -> Option<u32> {
    let (head, name) = bottleneck(memory, interval, place)?;
    let (head, flow) = (Bottleneck::unpack(head.load()), name.load());
    if head.interval != interval || flow & UNSENT == 0 || !fits(head.source) {
        return None;
    }
    name.store(flow & !UNSENT);
    memory.word(single::NOTIFIED)?.add(1);
    Some(head.source)
}

/// The next notification of the last interval, to be sent as a control frame; `None`: all are sent.
//= docs/specs/reunion.md#REU-17 notification frames
#[cfg(not(target_arch = "bpf"))]
pub(super) fn poll<F: Forwarding>(memory: &Memory<'_, F>) -> Option<Notice> {
    let over = before(memory.load(single::INTERVAL)?);
    let sent = memory.word(single::SENT)?;
    if memory.load(single::PIGGYBACK)? != 0 || sent.load() == over {
        return None;
    }
    let cursor = memory.word(single::CURSOR)?;
    while cursor.load() < u64::from(MAX_BOTTLENECKS) {
        let place = cursor.next() as u32;
        if let Some(to) = take(memory, over, place, |_| true) {
            let links = core::cell::Cell::new(1);
            for_high(memory, over, |_| links.set(links.get() + 1));
            let note = ReunionNote::notify(place, over).pack();
            return Some(Notice { to, note, links: links.get(), ..Notice::default() });
        }
    }
    sent.store(over);
    None
}
