//! The event queue: a calendar for keys that nearly only grow.
//!
//! Events are appended to the cell of their time, unsorted; a cell is sorted when its time comes. So inserting writes to
//! the end of one of a few arrays that the cache holds, sorting is done on many short integers at once, and what comes next
//! is known some events ahead, early enough to fetch it. What lies beyond the calendar waits in a heap.
//!
//! Equal keys come out in the order of the numbers inserted with them, those of arrivals in one that is drawn: whatever the order of
//! insertion, a run repeats.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use spray_fabric::Ties;

use super::arena::is_arrival;

/// A queue of (key, number) pairs.
#[derive(Debug)]
pub(super) struct Calendar {
    /// How many low bits of a key are below the number of its cell, at most 32, and a mask of them.
    shift: u32,
    low: u64,
    /// A mask that makes a cell's index of its number.
    mask: u64,
    /// A cell's entries: the key's low bits, then the number.
    cells: Box<[Vec<u64>]>,
    /// Memory of cells that were emptied; the latest, which the cache still holds, goes to the next cell that fills.
    spare: Vec<Vec<u64>>,
    /// Number of the present cell: all before it are empty.
    now: u64,
    /// The present cell's entries, sorted, and how many of them were taken.
    due: Vec<u64>,
    taken: usize,
    /// Entries in cells.
    near: usize,
    far: BinaryHeap<Reverse<(u64, u32)>>,
    ties: Ties,
}

impl Calendar {
    /// An empty calendar of `1 << cells` cells, each `1 << shift` wide; `ties` draws which of the arrivals of one key comes first.
    pub(super) fn new(shift: u32, cells: u32, ties: Ties) -> Self {
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

    /// Inserts `number` under `key`, which must not be below the one last taken.
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

    /// Takes the entry with the least key, if that is below `end`. Later ones may then come before it, but none below `end`.
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

    /// A key that no entry is below; `None` without entries.
    pub(super) fn bound(&self) -> Option<u64> {
        if let Some(entry) = self.due.get(self.taken) {
            return Some(self.now << self.shift | entry >> 32);
        }
        let near = (self.near > 0).then(|| self.next_full() << self.shift);
        let far = self.far.peek().map(|Reverse((key, _))| *key);
        near.into_iter().chain(far).min()
    }

    /// The numbers of up to `count` entries that come next, as far as they are known.
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

    /// Puts the arrivals of one key, among the entries that are due, in the order that is drawn.
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
            // They share the upper half, which has room for what is drawn until they are sorted.
            let draw = |entry: &mut u64| *entry = u64::from(ties.draw(base | low, *entry & LOW)) << 32 | *entry & LOW;
            tied.iter_mut().for_each(draw);
            tied.sort_unstable();
            tied.iter_mut().for_each(|entry| *entry = low << 32 | *entry & LOW);
            from += ahead + count;
        }
    }

    /// Goes to the next cell with anything in it, if that begins below `end`.
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

    /// Number of the first cell after the present one with anything in it; there is one.
    fn next_full(&self) -> u64 {
        let mut cell = self.now + 1;
        while self.cells[(cell & self.mask) as usize].is_empty() {
            cell += 1;
        }
        cell
    }
}

/// The lower half of an entry: its number.
const LOW: u64 = 0xffff_ffff;

/// Gives a cell that is full more memory: that of one emptied before, if it has none yet.
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
