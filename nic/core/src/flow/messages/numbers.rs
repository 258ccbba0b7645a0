//! Which numbers of messages were used.

use alloc::vec::Vec;

/// The numbers of the messages that are complete. Numbers begin again after 2^32.
///
/// Complete are all numbers before `next` but those in a gap. Messages complete in about the order of their numbers, so that there are few
/// gaps; a peer that leaves them on purpose has at most [`MOST_MISSING`].
#[derive(Clone, Debug, Default)]
pub(in crate::flow) struct Numbers {
    next: u32,
    /// Each from a number, before another, oldest first.
    gaps: Vec<(u32, u32)>,
    /// Numbers in the gaps.
    missing: u32,
}

/// Lower numbers that may be incomplete when a message begins: messages that a sender holds back while later ones go. Their gaps take
/// 128 KiB at most.
pub(in crate::flow) const MOST_MISSING: u32 = 1 << 14;

impl Numbers {
    /// As if all numbers before `next` had been used.
    pub fn starting_at(next: u32) -> Self {
        Self { next, ..Self::default() }
    }

    /// Whether a message may begin that has this number.
    //= docs/specs/transport.md#TRN-53 has the number of one that is complete
    #[inline]
    pub fn may_begin(&self, number: u32) -> bool {
        // What becomes missing when it completes only gets less until then.
        let ahead = number.wrapping_sub(self.next);
        if ahead <= MOST_MISSING { ahead + self.missing <= MOST_MISSING } else { self.gap_of(number).is_some() }
    }

    /// Notes that the message of a number that was free is complete.
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

    /// Takes a number out of its gap.
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

    /// The gap that a number before `next` is in.
    fn gap_of(&self, number: u32) -> Option<usize> {
        let behind = |number: u32| self.next.wrapping_sub(number);
        let gap = self.gaps.partition_point(|(_, until)| behind(*until) >= behind(number));
        self.gaps.get(gap).filter(|(from, _)| behind(*from) >= behind(number)).map(|_| gap)
    }
}
