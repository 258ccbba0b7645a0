//! Telling losses from reordering at the receiver. Packets of one section go over one path in order, so a packet that
//! arrives proves that every missing one before it is lost. Clauses (ORC-n) are in `docs/specs/ordered-chaos.md`.

use spray_wire::Section;

use super::bits::{Bits, ones};

/// Remembers which missing packets were told, so that each is told once: a bit for each packet of the window.
#[derive(Clone, Debug)]
pub(crate) struct SectionWatch {
    /// Numbers that are missing and were told.
    told: Bits,
}

/// What has arrived, as a receiver knows it.
#[derive(Clone, Copy)]
pub(crate) struct Arrived<'a> {
    /// Bits of the numbers in `cumulative..highest`.
    pub received: &'a Bits,
    /// Every number below has arrived.
    pub cumulative: u64,
    /// One more than the highest number that has arrived.
    pub highest: u64,
}

/// A frame that tells which packets went before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    /// Its number, within the receiver's window: not so far above `cumulative` that bits would be shared.
    pub psn: u64,
    pub section: Section,
    /// It is a trailer. It tells again what was told before, since the earlier NACK may be lost.
    pub again: bool,
}

impl SectionWatch {
    /// Makes room for a window of `packets`.
    pub(crate) fn new(packets: u32) -> Self {
        Self { told: Bits::new(packets) }
    }

    /// Forgets a packet: it has arrived.
    #[inline]
    pub(crate) fn on_arrival(&mut self, psn: u64) {
        self.told.remove_word(psn & !63, 1 << (psn & 63));
    }

    /// Records that a packet's loss is told in another way.
    pub(crate) fn on_told(&mut self, psn: u64) {
        self.told.insert(psn);
    }

    /// Calls `tell` for each packet that a frame proves lost, lowest first, until it refuses one.
    ///
    /// A step looks at 64 numbers: a usual frame takes one or two steps, the most hostile one a 64th of the window.
    //= docs/specs/ordered-chaos.md#ORC-22 missing packets
    //= docs/specs/ordered-chaos.md#ORC-23 repeated reports
    pub(crate) fn check(&mut self, arrived: &Arrived<'_>, evidence: &Evidence, mut tell: impl FnMut(u64) -> bool) {
        let Some((subflows, behind)) = evidence.section.get() else { return };
        let stride = u64::from(subflows);
        let mut first = evidence.psn - stride * u64::from(behind).min(evidence.psn / stride);
        if first < arrived.cumulative {
            first += (arrived.cumulative - first).next_multiple_of(stride);
        }
        let members = pattern(subflows);
        while first <= evidence.psn {
            let known = arrived.received.load(first, arrived.highest);
            let told = if evidence.again { 0 } else { self.told.load(first, u64::MAX) };
            let mut missing = members & !known & !told & ones(evidence.psn - first + 1);
            while missing != 0 {
                let psn = first + u64::from(missing.trailing_zeros());
                missing &= missing - 1;
                if !tell(psn) {
                    return;
                }
                self.told.insert(psn);
            }
            first = first.saturating_add(64);
        }
    }
}

/// Every `subflows`-th bit, from the lowest on.
const fn pattern(subflows: u32) -> u64 {
    if subflows >= 64 { 1 } else { u64::MAX / ((1 << subflows) - 1) }
}
