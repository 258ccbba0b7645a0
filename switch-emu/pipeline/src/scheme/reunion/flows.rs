//! The Flow Path Table: a source's elephants, and paths of rerouted flows (Reunion §3.6).

use super::memory::{Memory, before};
use super::regions::FLOWS;
use crate::packed::packed;
use crate::scheme::forwarding::Forwarding;
use crate::word::Word;

const PLACES: u32 = 4;

packed! {
    /// The first word of a flow.
    struct SchemeCounters {
        /// The path and the interval in which it was last counted as an elephant.
        path: u32 in 16,
        interval: u64 in 16,
        key: u32 in 32,
    }
}

packed! {
    /// The second word of a flow.
    struct State {
        /// The given path; 0: none.
        path: u32 in 16,
        /// When it was notified or moved.
        interval: u64 in 16,
        /// Moved, not notified.
        moved: bool in 1,
        /// Time of its last frame, in units of 2^20 ps.
        time: u32 in 31,
    }
}

const TIME_SHIFT: u32 = 20;
/// Maximum lateness of a frame in units of time: 137 ms.
const LATE: u32 = 1 << 17;

pub(super) struct Entry<'a, W> {
    /// [`SchemeCounters`].
    counted: &'a W,
    /// [`State`].
    state: &'a W,
    key: u32,
    now: u32,
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

//= docs/specs/reunion.md#REU-7 the flow path table
#[inline(always)]
pub(super) fn find<'a, F: Forwarding>(memory: &Memory<'a, F>, flow: u64, t_ps: u64) -> Option<Entry<'a, F::Word>> {
    let key = key(flow);
    for place in 0..PLACES {
        let (counted, state) = places(memory, key, place)?;
        if SchemeCounters::unpack(counted.load()).key == key {
            return Some(Entry { counted, state, key, now: now(t_ps) });
        }
    }
    None
}

/// Inserts a flow, in a free place or that of one that has paused for longer than `timeout_ps`.
//= docs/specs/reunion.md#REU-7 the flow path table
#[inline(always)]
pub(super) fn enter<'a, F: Forwarding>(
    memory: &Memory<'a, F>,
    flow: u64,
    t_ps: u64,
    timeout_ps: u64,
) -> Option<Entry<'a, F::Word>> {
    let key = key(flow);
    for place in 0..PLACES {
        let (counted, state) = places(memory, key, place)?;
        let known = Entry { counted, state, key, now: now(t_ps) };
        if counted.load() == 0 || known.has_paused(timeout_ps) {
            counted.store(SchemeCounters { key, path: 0, interval: 0 }.pack());
            state.store(State { time: known.now, path: 0, interval: 0, moved: false }.pack());
            return Some(known);
        }
    }
    None
}

#[inline(always)]
fn now(t_ps: u64) -> u32 {
    (t_ps >> TIME_SHIFT) as u32
}

impl<W: Word> Entry<'_, W> {
    /// Units of time since its last frame; negative for a late frame.
    #[inline(always)]
    fn since(&self) -> i64 {
        // Times have 31 bits, and wrap after 38 minutes.
        i64::from(self.now.wrapping_sub(self.state().time).wrapping_add(LATE) & (u32::MAX >> 1)) - i64::from(LATE)
    }

    #[inline(always)]
    fn state(&self) -> State {
        State::unpack(self.state.load())
    }

    #[inline(always)]
    pub(super) fn has_paused(&self, timeout_ps: u64) -> bool {
        self.since() > (timeout_ps >> TIME_SHIFT) as i64
    }

    /// Updates the time of its last frame.
    #[inline(always)]
    pub(super) fn comes(&self) {
        if self.since() > 0 {
            self.state.store(State { time: self.now, ..self.state() }.pack());
        }
    }

    #[inline(always)]
    pub(super) fn path(&self) -> u32 {
        self.state().path
    }

    /// Sets its path, and clears the notification.
    #[inline(always)]
    pub(super) fn give(&self, path: u32) {
        self.state.store(State { path, interval: 0, moved: false, ..self.state() }.pack());
    }

    #[inline(always)]
    pub(super) fn moves(&self, interval: u64, path: u32) {
        self.state.store(State { path, interval, moved: true, ..self.state() }.pack());
    }

    /// The interval in which it was notified; 0: none.
    #[inline(always)]
    pub(super) fn notified(&self) -> u64 {
        let State { interval, moved, .. } = self.state();
        if moved { 0 } else { interval }
    }

    /// Schedules a move after this interval. One of the previous interval has priority, with the
    /// flow's next frame. A flow moved in this interval stays: the notification predates that.
    //= docs/specs/reunion.md#REU-15 rerouting
    #[inline(always)]
    pub(super) fn notify(&self, interval: u64) {
        let state = self.state();
        let waits = !state.moved && state.interval == before(interval);
        let stays = state.moved && state.interval == interval;
        if !waits && !stays {
            self.state.store(State { interval, moved: false, ..state }.pack());
        }
    }

    #[inline(always)]
    pub(super) fn is_elephant(&self, interval: u64) -> bool {
        SchemeCounters::unpack(self.counted.load()).interval == interval
    }

    /// Records that it was counted in this interval on this path; returns whether that is new.
    #[inline(always)]
    pub(super) fn counts(&self, interval: u64, path: u32) -> bool {
        let counted = SchemeCounters { path, interval, key: self.key }.pack();
        let is_new = self.counted.load() != counted;
        self.counted.store(counted);
        is_new
    }
}
