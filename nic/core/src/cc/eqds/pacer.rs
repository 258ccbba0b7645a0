//! The receiving host's part of EQDS: which connection gets the next pull, and when.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use spray_wire::Pull;

use crate::Time;
use crate::cc::fixed_point::{Gaps, after_gap};
use crate::units::Ratio;

/// Shares a host's link among the connections that request credit, one pull each in turn, spaced so
/// that packets arrive slightly slower than the link's rate. Memory is one entry and one place in
/// the queue per open connection, allocated in [`PullPacer::open`]. Each call is O(1).
#[derive(Clone, Debug)]
pub struct PullPacer {
    entries: Vec<Entry>,
    free: Vec<u32>,
    queue: VecDeque<u32>,
    next_at: Time,
    gaps: Gaps,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    owner: u32,
    phase: Phase,
    /// The next pull repeats its total, even if nothing more is granted.
    repeat: bool,
    pull_bytes: u64,
    granted: u64,
    target: u64,
    /// Bytes that may be granted before anything arrives; at most `bound.bytes`.
    room: u64,
    bound: CreditBound,
    /// When a request may next get credit beyond the room.
    beyond: Time,
}

/// The limit of credit granted to a connection that has not come back as arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditBound {
    /// Wire bytes granted and not come back.
    pub bytes: u64,
    /// Time between two pulls beyond that, in picoseconds.
    pub retry_ps: u64,
}

impl CreditBound {
    /// No limit.
    pub const NONE: Self = Self { bytes: u64::MAX, retry_ps: 0 };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Free,
    Content,
    Waiting,
    /// Closed, and still in the queue.
    Leaving,
}

impl PullPacer {
    /// Creates a pacer that grants the share `rate` of a link of `link_bps`.
    pub fn new(link_bps: u64, rate: Ratio) -> Self {
        let gaps = Gaps::new(rate.of(link_bps));
        Self { entries: Vec::new(), free: Vec::new(), queue: VecDeque::new(), next_at: Time::ZERO, gaps }
    }

    /// Adds a connection and returns its entry. The bound is at least one pull of `pull_bytes`.
    pub fn open(&mut self, owner: u32, pull_bytes: u64, bound: CreditBound) -> u32 {
        let pull_bytes = pull_bytes.max(1);
        let bound = CreditBound { bytes: bound.bytes.max(pull_bytes), ..bound };
        let entry = Entry {
            owner,
            phase: Phase::Content,
            repeat: false,
            pull_bytes,
            granted: 0,
            target: 0,
            room: bound.bytes,
            bound,
            beyond: Time::ZERO,
        };
        if let Some(index) = self.free.pop() {
            self.entries[index as usize] = entry;
            return index;
        }
        self.entries.push(entry);
        self.queue.reserve(self.entries.len() - self.queue.len());
        self.entries.len() as u32 - 1
    }

    /// Removes an entry, which must not be used again.
    pub fn close(&mut self, index: u32) {
        let Some(entry) = self.entries.get_mut(index as usize) else { return };
        match entry.phase {
            Phase::Content => self.release(index),
            Phase::Waiting => entry.phase = Phase::Leaving,
            Phase::Free | Phase::Leaving => {}
        }
    }

    /// Takes the total that a connection may be granted by now. It never shrinks.
    //= docs/specs/eqds.md#EQDS-10 the target
    pub fn on_target(&mut self, now: Time, index: u32, target_bytes: u64) {
        let Some(entry) = self.entries.get_mut(index as usize) else { return };
        entry.target = entry.target.max(target_bytes);
        if entry.can_grant() {
            self.enqueue(now, index);
        }
    }

    /// Takes a request of a sender that had received `pulled_bytes`. If more was granted, the total
    /// is repeated; if not, and the room is used up, there may be room for one more pull.
    //= docs/specs/eqds.md#EQDS-13 repeated totals
    //= docs/specs/eqds.md#EQDS-17 requests without room
    pub fn on_request(&mut self, now: Time, index: u32, pulled_bytes: u64) {
        let Some(entry) = self.entries.get_mut(index as usize) else { return };
        if pulled_bytes < entry.granted {
            entry.repeat = true;
            self.enqueue(now, index);
        } else if entry.room == 0 && entry.beyond <= now {
            entry.room = entry.pull_bytes;
            entry.beyond = now.after(entry.bound.retry_ps);
            if entry.can_grant() {
                self.enqueue(now, index);
            }
        }
    }

    /// Adds room after an arrival. Returns whether a connection that had none waits now.
    //= docs/specs/eqds.md#EQDS-16 limit of unused credit
    pub fn on_arrival(&mut self, now: Time, index: u32, bytes: u64) -> bool {
        let Some(entry) = self.entries.get_mut(index as usize) else { return false };
        let had_room = entry.room > 0;
        entry.room = entry.room.saturating_add(bytes).min(entry.bound.bytes);
        let wakes = !had_room && entry.can_grant();
        if wakes {
            self.enqueue(now, index);
        }
        wakes
    }

    /// Returns when [`PullPacer::poll_pull`] next returns a pull; `None` while no connection waits.
    pub fn poll_timeout(&self) -> Option<Time> {
        (!self.queue.is_empty()).then_some(self.next_at)
    }

    /// Returns the next pull and its owner, if it is due.
    //= docs/specs/eqds.md#EQDS-11 one queue
    //= docs/specs/eqds.md#EQDS-12 spacing of pulls
    pub fn poll_pull(&mut self, now: Time) -> Option<(u32, Pull)> {
        while self.next_at <= now {
            let index = self.queue.pop_front()?;
            let entry = &mut self.entries[index as usize];
            if entry.phase != Phase::Waiting {
                self.release(index);
                continue;
            }
            let bytes = entry.pull_bytes.min(entry.target - entry.granted).min(entry.room);
            entry.granted += bytes;
            entry.room -= bytes;
            entry.phase = Phase::Content;
            entry.repeat = false;
            let (owner, credit_bytes, more) = (entry.owner, entry.granted, entry.can_grant());
            if more {
                self.append(index);
            }
            self.advance(now, bytes.max(LEAST_PULL_BYTES));
            return Some((owner, Pull { credit_bytes }));
        }
        None
    }

    fn enqueue(&mut self, now: Time, index: u32) {
        if self.entries[index as usize].phase != Phase::Content {
            return;
        }
        if self.queue.is_empty() && self.next_at < now {
            // Unused time is lost.
            self.next_at = now;
            self.gaps.restart();
        }
        self.append(index);
    }

    fn append(&mut self, index: u32) {
        self.entries[index as usize].phase = Phase::Waiting;
        self.queue.push_back(index);
    }

    fn release(&mut self, index: u32) {
        self.entries[index as usize].phase = Phase::Free;
        self.free.push(index);
    }

    /// Advances the next pull's time by that of `bytes`. A late caller catches up within bounds.
    //= docs/specs/eqds.md#EQDS-12 spacing of pulls
    fn advance(&mut self, now: Time, bytes: u64) {
        let gap_ps = self.gaps.gap_ps(bytes);
        self.next_at = after_gap(self.next_at, now, gap_ps, CATCH_UP_PULLS);
    }
}

impl Entry {
    fn can_grant(&self) -> bool {
        self.target > self.granted && self.room > 0
    }
}

/// Bytes that a pull without credit counts for: about one frame on the wire.
const LEAST_PULL_BYTES: u64 = 64;
/// Maximum catch-up of a late caller, in pulls: some microseconds at 100 Gb/s.
const CATCH_UP_PULLS: u64 = 16;
