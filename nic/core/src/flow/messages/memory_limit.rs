//! The memory limit of incomplete messages.

use alloc::vec::Vec;

/// Memory of a connection's messages beyond twice what has arrived. Two pieces of a file fit.
pub(in crate::flow) const SLACK_BYTES: u64 = 2 << 20;
/// Units of memory if not all of a message fits: steps, or pages if no step fits.
const STEP_BYTES: u64 = 64 << 10;
const PAGE_BYTES: u64 = 4 << 10;

/// First byte (inclusive), last (exclusive).
type Range = (u64, u64);

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::flow) struct MemoryLimit {
    /// Bytes beyond twice what has arrived of each.
    excess: u64,
}

#[derive(Clone, Debug, Default)]
pub(in crate::flow) struct Parts {
    latest: Range,
    /// All of them, sorted and disjoint; empty if `latest` is the whole message.
    all: Vec<Range>,
    pub bytes: u64,
    /// Bytes beyond twice what has arrived.
    excess: u64,
}

impl MemoryLimit {
    /// Extends the memory of a message of `whole` bytes, with `received` so far, to include
    /// `packet`. Returns `false`, and changes nothing, if that exceeds the limit.
    //= docs/specs/transport.md#TRN-67 twice what has arrived
    #[inline]
    pub fn extend(&mut self, parts: &mut Parts, whole: u64, received: u64, packet: Range) -> bool {
        if (packet.0 < parts.latest.0 || packet.1 > parts.latest.1)
            && !self.find_or_grow(parts, packet, whole, received)
        {
            return false;
        }
        if parts.excess > 0 {
            self.account(parts, received);
        }
        true
    }

    /// Finds the part that contains a packet, or adds one if there is room.
    #[cold]
    fn find_or_grow(&mut self, parts: &mut Parts, packet: Range, whole: u64, received: u64) -> bool {
        if parts.find(packet) {
            return true;
        }
        let has_grown = parts.grow(packet, whole, received, self.excess - parts.excess);
        if has_grown {
            self.account(parts, received);
        }
        has_grown
    }

    #[inline]
    fn account(&mut self, parts: &mut Parts, received: u64) {
        let excess = excess(parts.bytes, received);
        self.excess = self.excess - parts.excess + excess;
        parts.excess = excess;
    }
}

#[inline]
fn excess(bytes: u64, received: u64) -> u64 {
    bytes.saturating_sub(received.saturating_mul(2))
}

impl Parts {
    /// Finds the part that contains a packet and makes it the latest.
    fn find(&mut self, (from, until): Range) -> bool {
        let at = self.all.partition_point(|part| part.1 < until);
        let found = self.all.get(at).filter(|part| part.0 <= from);
        found.inspect(|part| self.latest = **part).is_some()
    }

    /// Adds the largest that fits of the message, and the steps and pages around a packet.
    fn grow(&mut self, (from, until): Range, whole: u64, received: u64, others: u64) -> bool {
        let around = |unit: u64| {
            let until = until.checked_next_multiple_of(unit).unwrap_or(u64::MAX);
            (from - from % unit, until.min(whole))
        };
        [(0, whole), around(STEP_BYTES), around(PAGE_BYTES)].into_iter().any(|part| {
            let first = self.all.partition_point(|other| other.1 < part.0);
            let end = self.all.partition_point(|other| other.0 <= part.1);
            let merged = self.all.get(first..end).unwrap_or_default();
            let from = merged.first().map_or(part.0, |other| other.0.min(part.0));
            let until = merged.last().map_or(part.1, |other| other.1.max(part.1));
            let bytes = self.bytes + (until - from) - merged.iter().map(|other| other.1 - other.0).sum::<u64>();
            if others.saturating_add(excess(bytes, received)) > SLACK_BYTES {
                return false;
            }
            (self.latest, self.bytes) = ((from, until), bytes);
            match self.latest == (0, whole) {
                true => self.all = Vec::new(),
                false => drop(self.all.splice(first..end, [(from, until)])),
            }
            true
        })
    }

    /// Whether the whole message may take memory.
    #[inline]
    pub fn are_all_of(&self, whole: u64) -> bool {
        self.latest == (0, whole)
    }
}
