//! The event queue: a calendar queue for keys that mostly increase.
//!
//! Events are appended unsorted to the cell of their time; a cell is sorted when its time comes.
//! Insertion thus writes to the end of a few arrays that are in the cache, sorting handles many
//! short integers at once, and the next events are known early enough to prefetch them. Events
//! beyond the calendar's range wait in a heap.
//!
//! Equal keys are ordered by their numbers, those of arrivals by a pseudo-random draw. A run is
//! thus reproducible regardless of the order of insertion.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use spray_fabric::TieBreaker;

use super::arena::is_arrival;

/// A priority queue of (key, number) pairs.
#[derive(Debug)]
pub(super) struct Calendar {
    /// The number of low bits of a key within a cell, at most 32, and their mask.
    shift: u32,
    low: u64,
    /// Mask from a cell's number to its index.
    mask: u64,
    /// An entry has the key's low bits in its upper half and the number in its lower half.
    cells: Box<[Vec<u64>]>,
    /// Buffers of emptied cells; the last one, which is still in the cache, is reused first.
    spare: Vec<Vec<u64>>,
    /// Number of the current cell; all earlier ones are empty.
    now: u64,
    /// The current cell's entries, sorted, and how many of them have been taken.
    due: Vec<u64>,
    taken: usize,
    /// Number of entries in cells.
    near: usize,
    far: BinaryHeap<Reverse<(u64, u32)>>,
    ties: TieBreaker,
}

impl Calendar {
    /// Creates `1 << cells` cells of width `1 << shift`; `ties` orders arrivals with equal keys.
    pub(super) fn new(shift: u32, cells: u32, ties: TieBreaker) -> Self {
        Self {
            shift: shift.min(32),
            low: (1 << shift.min(32)) - 1,
            mask: (1 << cells) - 1,
            cells: vec![Vec::new(); 1 << cells].into_boxed_slice(),
            spare: Vec::new(),
            now: 0,
            due: Vec::new(),
            taken: 0,
            near: 0,
            far: BinaryHeap::new(),
            ties,
        }
    }

    /// Inserts `number` under `key`, which must not be below the key taken last.
    #[inline]
    pub(super) fn insert(&mut self, key: u64, number: u32) {
        let cell = key >> self.shift;
        if cell.wrapping_sub(self.now + 1) < self.mask {
            self.insert_near(cell, key, number);
        } else if cell <= self.now {
            self.insert_due(key, number);
        } else {
            self.insert_far(key, number);
        }
    }

    /// Takes the entry with the least key, if below `end`; else later insertions may precede it.
    #[inline]
    pub(super) fn pop_before(&mut self, end: u64) -> Option<(u64, u32)> {
        if self.taken == self.due.len() && !self.advance(end) {
            return None;
        }
        let entry = self.due[self.taken];
        let key = self.now << self.shift | entry >> 32;
        if key >= end {
            return None;
        }
        self.taken += 1;
        Some((key, entry as u32))
    }

    /// Returns a lower bound of all keys; `None` if empty.
    pub(super) fn bound(&self) -> Option<u64> {
        if let Some(entry) = self.due.get(self.taken) {
            return Some(self.now << self.shift | entry >> 32);
        }
        let near = (self.near > 0).then(|| self.next_full() << self.shift);
        let far = self.far.peek().map(|Reverse((key, _))| *key);
        near.into_iter().chain(far).min()
    }

    /// Returns up to `count` of the next numbers, of the current cell only.
    #[inline]
    pub(super) fn upcoming(&self, count: usize) -> impl Iterator<Item = u32> + Clone {
        let end = self.due.len().min(self.taken + count);
        self.due[self.taken..end].iter().map(|entry| *entry as u32)
    }

    #[inline]
    fn entry(&self, key: u64, number: u32) -> u64 {
        (key & self.low) << 32 | u64::from(number)
    }

    #[inline]
    fn insert_near(&mut self, cell: u64, key: u64, number: u32) {
        let entry = self.entry(key, number);
        let cell = &mut self.cells[(cell & self.mask) as usize];
        self.near += 1;
        if cell.len() == cell.capacity() {
            make_room(cell, &mut self.spare);
        }
        cell.push(entry);
    }

    #[cold]
    #[inline(never)]
    fn insert_far(&mut self, key: u64, number: u32) {
        self.far.push(Reverse((key, number)));
    }

    #[cold]
    #[inline(never)]
    fn insert_due(&mut self, key: u64, number: u32) {
        let entry = self.entry(key, number);
        let place = |entry: u64| (is_arrival(key).then(|| self.ties.draw(key, entry & LOW)), entry);
        let is_before = |other: &u64| match (*other ^ entry) >> 32 {
            0 => place(*other) < place(entry),
            _ => *other < entry,
        };
        let at = self.due[self.taken..].partition_point(is_before);
        self.due.insert(self.taken + at, entry);
    }

    /// Orders the due arrivals of equal keys by the draw of `ties`.
    //= docs/specs/emulation.md#EMU-9 ties
    fn draw_ties(&mut self) {
        let Self { due, ties, now, shift, .. } = self;
        let base = *now << *shift;
        let is_tie = |pair: &[u64]| (pair[0] ^ pair[1]) >> 32 == 0 && is_arrival(base | pair[0] >> 32);
        let mut from = 0;
        while let Some(ahead) = due[from..].windows(2).position(is_tie) {
            let low = due[from + ahead] >> 32;
            let tied = &mut due[from + ahead..];
            let count = tied.iter().take_while(|entry| **entry >> 32 == low).count();
            let tied = &mut tied[..count];
            // Their upper halves are equal, and hold the draw while they are sorted.
            let draw = |entry: &mut u64| *entry = u64::from(ties.draw(base | low, *entry & LOW)) << 32 | *entry & LOW;
            tied.iter_mut().for_each(draw);
            tied.sort_unstable();
            tied.iter_mut().for_each(|entry| *entry = low << 32 | *entry & LOW);
            from += ahead + count;
        }
    }

    /// Advances to the next non-empty cell, if that begins below `end`.
    #[cold]
    #[inline(never)]
    fn advance(&mut self, end: u64) -> bool {
        let far = self.far.peek().map(|Reverse((key, _))| key >> self.shift);
        let next = match (self.near, far) {
            (0, None) => return false,
            (0, Some(far)) => far,
            (_, far) => self.next_full().min(far.unwrap_or(u64::MAX)),
        };
        if next << self.shift >= end {
            return false;
        }
        self.now = next;
        while let Some(Reverse((key, number))) = self.far.peek().copied() {
            if (key >> self.shift) - self.now >= self.cells.len() as u64 {
                break;
            }
            self.far.pop();
            self.insert_near(key >> self.shift, key, number);
        }
        let cell = std::mem::take(&mut self.cells[(self.now & self.mask) as usize]);
        self.near -= cell.len();
        let mut emptied = std::mem::replace(&mut self.due, cell);
        emptied.clear();
        self.spare.push(emptied);
        self.due.sort_unstable();
        self.draw_ties();
        self.taken = 0;
        true
    }

    /// Returns the number of the next non-empty cell; there must be one.
    fn next_full(&self) -> u64 {
        let mut cell = self.now + 1;
        while self.cells[(cell & self.mask) as usize].is_empty() {
            cell += 1;
        }
        cell
    }
}

const LOW: u64 = 0xffff_ffff;

/// Grows a full cell; one without memory gets a spare buffer.
#[cold]
#[inline(never)]
fn make_room(cell: &mut Vec<u64>, spare: &mut Vec<Vec<u64>>) {
    if cell.capacity() == 0 {
        *cell = spare.pop().unwrap_or_default();
    }
    if cell.len() == cell.capacity() {
        cell.reserve(64);
    }
}

#[cfg(test)]
mod tests;
