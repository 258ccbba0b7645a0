//! The Flow Path Table of a source switch: its elephants, and where those go that it has moved (Reunion §3.6).

use super::memory::{FLOWS, Memory};
use crate::scheme::Forwarding;
use crate::word::Word;

/// Places of a flow.
const PLACES: u32 = 4;

/// Times are kept in units of 2^20 ps, 31 bits of them, above the rest of a state.
const TIME_UNIT: u32 = 20;
const TIME_BITS: u32 = 31;
const TIME_SHIFT: u32 = 64 - TIME_BITS;
/// The interval of a state is that in which the flow was moved.
const MOVED: u64 = 1 << 32;
const INTERVAL_SHIFT: u32 = 16;

/// A flow of the table.
pub(super) struct Known<'a, W> {
    /// Its key, the interval in which it was last counted as an elephant, and on which path.
    counted: &'a W,
    /// When its last frame came, the interval in which it was moved or notified, and the path that it has been given.
    state: &'a W,
    key: u32,
    now: u64,
}

/// The key of a flow; 0 is none.
#[inline(always)]
fn key(flow: u64) -> u32 {
    (flow >> 32) as u32 | 1
}

#[inline(always)]
fn places<'a, F: Forwarding>(memory: &Memory<'a, F>, key: u32, place: u32) -> Option<(&'a F::Word, &'a F::Word)> {
    let entry = (key >> 1).wrapping_mul(PLACES).wrapping_add(place).wrapping_mul(2);
    Some((memory.word(FLOWS.place(entry))?, memory.word(FLOWS.place(entry.wrapping_add(1)))?))
}

/// A flow, if it is in the table.
//= docs/specs/reunion.md#REU-7 the flow path table
#[inline(always)]
pub(super) fn find<'a, F: Forwarding>(memory: &Memory<'a, F>, flow: u64, t_ps: u64) -> Option<Known<'a, F::Word>> {
    let key = key(flow);
    for place in 0..PLACES {
        let (counted, state) = places(memory, key, place)?;
        if counted.load() >> 32 == u64::from(key) {
            return Some(Known { counted, state, key, now: now(t_ps) });
        }
    }
    None
}

/// Enters a flow, in place of none or of one that has paused for longer than `timeout_ps`.
//= docs/specs/reunion.md#REU-7 the flow path table
#[inline(always)]
pub(super) fn enter<'a, F: Forwarding>(
    memory: &Memory<'a, F>,
    flow: u64,
    t_ps: u64,
    timeout_ps: u64,
) -> Option<Known<'a, F::Word>> {
    let key = key(flow);
    for place in 0..PLACES {
        let (counted, state) = places(memory, key, place)?;
        let known = Known { counted, state, key, now: now(t_ps) };
        if counted.load() == 0 || known.has_paused(timeout_ps) {
            counted.store(u64::from(key) << 32);
            state.store(known.now << TIME_SHIFT);
            return Some(known);
        }
    }
    None
}

#[inline(always)]
fn now(t_ps: u64) -> u64 {
    t_ps >> TIME_UNIT & ((1 << TIME_BITS) - 1)
}

impl<W: Word> Known<'_, W> {
    /// Units of time since its last frame came; below 0 where that was of a later time.
    #[inline(always)]
    fn since(&self) -> i64 {
        (self.now.wrapping_sub(self.state.load() >> TIME_SHIFT) << TIME_SHIFT) as i64 >> TIME_SHIFT
    }

    /// Whether its last frame came longer ago than this.
    #[inline(always)]
    pub(super) fn has_paused(&self, timeout_ps: u64) -> bool {
        self.since() > (timeout_ps >> TIME_UNIT) as i64
    }

    /// A frame of it comes.
    #[inline(always)]
    pub(super) fn comes(&self) {
        if self.since() > 0 {
            self.state.store(self.now << TIME_SHIFT | self.state.load() & ((1 << TIME_SHIFT) - 1));
        }
    }

    /// The path that it has been given; 0: none.
    #[inline(always)]
    pub(super) fn path(&self) -> u32 {
        self.state.load() as u32 & 0xffff
    }

    /// Gives it a path, and forgets the notification.
    #[inline(always)]
    pub(super) fn give(&self, path: u32) {
        self.state.store(self.state.load() >> TIME_SHIFT << TIME_SHIFT | u64::from(path & 0xffff));
    }

    /// Gives it another path in this interval.
    #[inline(always)]
    pub(super) fn moves(&self, interval: u64, path: u32) {
        self.give(path);
        self.state.store(self.state.load() | MOVED | interval << INTERVAL_SHIFT);
    }

    /// The interval in which it was notified; 0: it was not.
    #[inline(always)]
    pub(super) fn notified(&self) -> u64 {
        let state = self.state.load();
        if state & MOVED == 0 { state >> INTERVAL_SHIFT & 0xffff } else { 0 }
    }

    /// It is to be moved when this interval is over. A notification of the interval before comes first: it is carried out with the flow's
    /// next frame. A flow that has been moved in this interval stays: what the notification tells is from before that.
    //= docs/specs/reunion.md#REU-15 rerouting
    #[inline(always)]
    pub(super) fn notify(&self, interval: u64) {
        let state = self.state.load();
        let known = state >> INTERVAL_SHIFT & 0xffff;
        let waits = state & MOVED == 0 && known == super::memory::before(interval);
        let stays = state & MOVED != 0 && known == interval;
        if !waits && !stays {
            self.state.store(state & !(MOVED | 0xffff << INTERVAL_SHIFT) | (interval & 0xffff) << INTERVAL_SHIFT);
        }
    }

    /// Whether it is an elephant of this interval.
    #[inline(always)]
    pub(super) fn is_elephant(&self, interval: u64) -> bool {
        self.counted.load() >> 16 & 0xffff == interval
    }

    /// Notes that it is counted in this interval on this path; whether that is new.
    #[inline(always)]
    pub(super) fn counts(&self, interval: u64, path: u32) -> bool {
        let counted = u64::from(self.key) << 32 | interval << 16 | u64::from(path & 0xffff);
        let is_new = self.counted.load() != counted;
        self.counted.store(counted);
        is_new
    }
}
