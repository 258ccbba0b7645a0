//! A window of bits that slides over sequence numbers, in words of 64.

use alloc::boxed::Box;
use alloc::vec;

/// One bit for each of `capacity` consecutive sequence numbers. Numbers `n` and `n + capacity`
/// share a bit: the owner clears a number before the other is used.
#[derive(Clone, Debug)]
pub(crate) struct Bits {
    words: Box<[u64]>,
    mask: u64,
}

impl Bits {
    /// Creates a window for `numbers`, rounded up to a power of two of at least one word.
    pub(crate) fn new(numbers: u32) -> Self {
        let capacity = numbers.clamp(64, 1 << 20).next_power_of_two() as usize;
        Self { words: vec![0; capacity / 64].into_boxed_slice(), mask: capacity as u64 - 1 }
    }

    #[inline]
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.words[self.word(number)] >> (number & 63) & 1 != 0
    }

    #[inline]
    pub(crate) fn insert(&mut self, number: u64) {
        self.words[self.word(number)] |= 1 << (number & 63);
    }

    /// Clears `bits` of the word from `first`, a multiple of 64. Returns those that were clear.
    #[inline]
    pub(crate) fn remove_word(&mut self, first: u64, bits: u64) -> u64 {
        let word = self.word(first);
        let fresh = bits & !self.words[word];
        self.words[word] &= !bits;
        fresh
    }

    /// Clears the run of set bits from `first` up to `end`. Returns the number after the run.
    #[inline]
    pub(crate) fn remove_run(&mut self, first: u64, end: u64) -> u64 {
        let mut at = first;
        while at < end {
            let bit = at & 63;
            let word = self.word(at);
            let run = u64::from((self.words[word] >> bit).trailing_ones()).min(end - at);
            self.words[word] &= !(ones(run) << bit);
            at += run;
            if run < 64 - bit {
                break;
            }
        }
        at
    }

    /// Returns the bits of `first` to `first + 63`; those from `end` are 0.
    #[inline]
    pub(crate) fn load(&self, first: u64, end: u64) -> u64 {
        if first >= end {
            return 0;
        }
        let shift = first & 63;
        let mut bits = self.words[self.word(first)] >> shift;
        if shift != 0 {
            bits |= self.words[self.word(first.wrapping_add(63))] << (64 - shift);
        }
        bits & ones(end - first)
    }

    #[inline]
    fn word(&self, number: u64) -> usize {
        ((number & self.mask) / 64) as usize
    }
}

/// The lowest `count` bits; all of them from 64.
#[inline]
pub(crate) const fn ones(count: u64) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}
