//! The event queue: a timing wheel for keys that nearly only grow.
//!
//! Events lie in slots of an arena that the caller owns; the wheel links them into buckets of a power of two of time, so
//! that neither inserting nor taking compares with more than the few events of one bucket. What lies beyond the wheel's
//! reach waits in a heap. Equal keys come out in the order in which they went in.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A slot that can lie in a [`Wheel`].
pub(super) trait Linked {
    /// What the slot is ordered by.
    fn key(&self) -> u64;
    /// The slot after this one in its bucket.
    fn next(&self) -> u32;
    /// Links the slot.
    fn link(&mut self, next: u32);
}

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Wheel {
    /// Bits of a key below its bucket's number.
    shift: u32,
    /// First slot of every bucket, the latest inserted; a bucket holds one turn's keys only.
    heads: Box<[u32]>,
    /// A bit for each bucket that holds something, and one for each word of those.
    full: Box<[u64]>,
    full_words: Box<[u64]>,
    /// Number of the bucket whose slots are in `due`: all before it are empty.
    now: u64,
    /// The present bucket's slots, the next one last.
    due: Vec<(u64, u32)>,
    /// What is a turn ahead or more: (key, order of insertion, slot).
    far: BinaryHeap<Reverse<(u64, u64, u32)>>,
    far_inserted: u64,
    len: usize,
}

impl Wheel {
    /// An empty wheel of `1 << buckets` buckets, each `1 << shift` wide; at least 4,096 buckets.
    pub(super) fn new(shift: u32, buckets: u32) -> Self {
        let buckets = 1usize << buckets.max(12);
        Self {
            shift,
            heads: vec![NONE; buckets].into_boxed_slice(),
            full: vec![0; buckets / 64].into_boxed_slice(),
            full_words: vec![0; buckets / 4096].into_boxed_slice(),
            now: 0,
            due: Vec::with_capacity(64),
            far: BinaryHeap::new(),
            far_inserted: 0,
            len: 0,
        }
    }

    /// How many slots are in it.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Inserts a slot. Its key must not be below the one last taken.
    #[inline]
    pub(super) fn insert<S: Linked>(&mut self, slots: &mut [S], slot: u32) {
        let key = slots[slot as usize].key();
        let bucket = key >> self.shift;
        self.len += 1;
        if bucket <= self.now {
            self.insert_due(key, slot);
        } else if bucket - self.now < self.heads.len() as u64 {
            self.insert_near(slots, bucket, slot);
        } else {
            self.far.push(Reverse((key, self.far_inserted, slot)));
            self.far_inserted += 1;
        }
    }

    /// Takes the slot with the least key.
    #[inline]
    pub(super) fn pop<S: Linked>(&mut self, slots: &mut [S]) -> Option<(u64, u32)> {
        if self.due.is_empty() && !self.advance(slots) {
            return None;
        }
        self.len -= 1;
        self.due.pop()
    }

    #[inline]
    fn insert_near<S: Linked>(&mut self, slots: &mut [S], bucket: u64, slot: u32) {
        let index = bucket as usize & (self.heads.len() - 1);
        slots[slot as usize].link(self.heads[index]);
        self.heads[index] = slot;
        self.full[index / 64] |= 1 << (index % 64);
        self.full_words[index / 4096] |= 1 << (index / 64 % 64);
    }

    #[cold]
    fn insert_due(&mut self, key: u64, slot: u32) {
        // Behind its equals, which came before: they are at the end of the vector.
        let at = self.due.partition_point(|(other, _)| *other > key);
        self.due.insert(at, (key, slot));
    }

    /// Goes to the next bucket with anything in it.
    #[inline]
    fn advance<S: Linked>(&mut self, slots: &mut [S]) -> bool {
        let near = self.next_full();
        let far = self.far.peek().map(|Reverse((key, ..))| key >> self.shift);
        let Some(bucket) = near.into_iter().chain(far).min() else { return false };
        self.now = bucket;
        if far.is_some() {
            self.bring_near(slots);
        }
        self.collect(slots);
        true
    }

    /// Moves what has come into reach onto the wheel, before anything inserted later can take its place.
    fn bring_near<S: Linked>(&mut self, slots: &mut [S]) {
        while let Some(Reverse((key, _, slot))) = self.far.peek().copied() {
            let bucket = key >> self.shift;
            if bucket - self.now >= self.heads.len() as u64 {
                return;
            }
            self.far.pop();
            self.insert_near(slots, bucket, slot);
        }
    }

    /// Takes the present bucket's slots, sorted.
    #[inline]
    fn collect<S: Linked>(&mut self, slots: &mut [S]) {
        let index = self.now as usize & (self.heads.len() - 1);
        let mut slot = std::mem::replace(&mut self.heads[index], NONE);
        self.full[index / 64] &= !(1 << (index % 64));
        if self.full[index / 64] == 0 {
            self.full_words[index / 4096] &= !(1 << (index / 64 % 64));
        }
        while slot != NONE {
            let entry = &slots[slot as usize];
            let key = entry.key();
            self.due.push((key, slot));
            // Insertion sort: a bucket holds few. Of equals, those inserted later come first, as they do in the bucket.
            let mut at = self.due.len() - 1;
            while at > 0 && self.due[at - 1].0 < key {
                self.due.swap(at - 1, at);
                at -= 1;
            }
            slot = entry.next();
        }
    }

    /// Number of the first full bucket from the present one on.
    #[inline]
    fn next_full(&self) -> Option<u64> {
        let start = self.now as usize & (self.heads.len() - 1);
        let word = start / 64;
        let rest = self.full[word] >> (start % 64);
        if rest != 0 {
            return Some(self.now + u64::from(rest.trailing_zeros()));
        }
        let index = self.next_full_word(word + 1).or_else(|| self.next_full_word(0))?;
        let index = index * 64 + self.full[index].trailing_zeros() as usize;
        let ahead = index.wrapping_sub(start) & (self.heads.len() - 1);
        Some(self.now + ahead as u64)
    }

    /// Index of the first word at `from` or later with a bit set.
    fn next_full_word(&self, from: usize) -> Option<usize> {
        let mut group = from / 64;
        let mut bits = self.full_words.get(group)? & (u64::MAX << (from % 64));
        while bits == 0 {
            group += 1;
            bits = *self.full_words.get(group)?;
        }
        Some(group * 64 + bits.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests;
