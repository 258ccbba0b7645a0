//! Loss detection on subflows, at the receiver: packets of one section go over one path in order,
//! so an arrival proves missing earlier ones lost (`docs/specs/ordered-chaos.md`).

use spray_wire::Section;

use super::bits::{Bits, ones};

/// The missing packets that were reported, so that each is reported once.
#[derive(Clone, Debug)]
pub(crate) struct GapDetector {
    reported: Bits,
}

#[derive(Clone, Copy)]
pub(crate) struct Received<'a> {
    /// Bits of the numbers in `cumulative..highest`.
    pub received: &'a Bits,
    /// Every number below has arrived.
    pub cumulative: u64,
    /// One more than the highest number that has arrived.
    pub highest: u64,
}

/// A frame that shows which packets preceded it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    /// Its number, within the receiver's window, so that no bits are shared.
    pub psn: u64,
    pub section: Section,
    /// Whether to report again, as for trailers, since the earlier NACK may be lost.
    pub again: bool,
}

impl GapDetector {
    pub(crate) fn new(packets: u32) -> Self {
        Self { reported: Bits::new(packets) }
    }

    #[inline]
    pub(crate) fn on_arrival(&mut self, psn: u64) {
        self.reported.remove_word(psn & !63, 1 << (psn & 63));
    }

    /// Records that a packet's loss was reported in another way.
    pub(crate) fn on_reported(&mut self, psn: u64) {
        self.reported.insert(psn);
    }

    /// Calls `report` for each packet that a frame proves lost, lowest first, until it refuses one.
    /// A step covers 64 numbers: one or two for a usual frame, at most a 64th of the window.
    //= docs/specs/ordered-chaos.md#ORC-22 missing packets
    //= docs/specs/ordered-chaos.md#ORC-23 repeated reports
    pub(crate) fn check(&mut self, arrived: &Received<'_>, evidence: &Evidence, mut report: impl FnMut(u64) -> bool) {
        let Some((subflows, behind)) = evidence.section.get() else { return };
        let stride = u64::from(subflows);
        let mut first = evidence.psn - stride * u64::from(behind).min(evidence.psn / stride);
        if first < arrived.cumulative {
            first += (arrived.cumulative - first).next_multiple_of(stride);
        }
        let members = pattern(subflows);
        while first <= evidence.psn {
            let known = arrived.received.load(first, arrived.highest);
            let reported = if evidence.again { 0 } else { self.reported.load(first, u64::MAX) };
            let mut missing = members & !known & !reported & ones(evidence.psn - first + 1);
            while missing != 0 {
                let psn = first + u64::from(missing.trailing_zeros());
                missing &= missing - 1;
                if !report(psn) {
                    return;
                }
                self.reported.insert(psn);
            }
            first = first.saturating_add(64);
        }
    }
}

/// Every `subflows`-th bit from the lowest.
const fn pattern(subflows: u32) -> u64 {
    if subflows >= 64 { 1 } else { u64::MAX / ((1 << subflows) - 1) }
}
