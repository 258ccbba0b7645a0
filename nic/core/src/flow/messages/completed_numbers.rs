//! The message numbers in use.

use alloc::vec::Vec;

/// The numbers of complete messages, which wrap after 2^32: all before `next` except those in a
/// gap. Messages complete almost in order, so gaps are few; an adversary has at most
/// [`MOST_MISSING`].
#[derive(Clone, Debug, Default)]
pub(in crate::flow) struct CompletedNumbers {
    next: u32,
    /// Each from a number (inclusive) to another (exclusive), oldest first.
    gaps: Vec<(u32, u32)>,
    missing: u32,
}

/// Maximum lower numbers that are incomplete when a message begins: messages that a sender delays
/// while later ones go. Their gaps take at most 128 KiB.
pub(in crate::flow) const MOST_MISSING: u32 = 1 << 14;

impl CompletedNumbers {
    /// Treats all numbers before `next` as used.
    pub fn starting_at(next: u32) -> Self {
        Self { next, ..Self::default() }
    }

    /// Whether a message with this number may begin.
    //= docs/specs/transport.md#TRN-53 has the number of one that is complete
    #[inline]
    pub fn may_begin(&self, number: u32) -> bool {
        // The number of gaps that its completion adds only falls until then.
        let ahead = number.wrapping_sub(self.next);
        if ahead <= MOST_MISSING { ahead + self.missing <= MOST_MISSING } else { self.gap_of(number).is_some() }
    }

    /// Records that the message with this number, free before, is complete.
    #[inline]
    pub fn complete(&mut self, number: u32) {
        let ahead = number.wrapping_sub(self.next);
        if ahead > MOST_MISSING {
            return self.fill(number);
        }
        if ahead > 0 {
            self.gaps.push((self.next, number));
            self.missing += ahead;
        }
        self.next = number.wrapping_add(1);
    }

    fn fill(&mut self, number: u32) {
        let Some(gap) = self.gap_of(number) else { return };
        let (from, until) = self.gaps[gap];
        let after = number.wrapping_add(1);
        self.missing -= 1;
        match (from == number, after == until) {
            (true, true) => drop(self.gaps.remove(gap)),
            (true, false) => self.gaps[gap].0 = after,
            (false, true) => self.gaps[gap].1 = number,
            (false, false) => {
                self.gaps[gap].1 = number;
                self.gaps.insert(gap + 1, (after, until));
            }
        }
    }

    /// Returns the index of the gap that contains a number before `next`.
    fn gap_of(&self, number: u32) -> Option<usize> {
        let behind = |number: u32| self.next.wrapping_sub(number);
        let gap = self.gaps.partition_point(|(_, until)| behind(*until) >= behind(number));
        self.gaps.get(gap).filter(|(from, _)| behind(*from) >= behind(number)).map(|_| gap)
    }
}
