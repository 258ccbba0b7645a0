use crate::Time;
use spray_wire::{Echoes, EvPort};

/// What the next ACK reports of the packets since the last one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pending {
    pub due: bool,
    pub deadline: Option<Time>,
    pub packets: u8,
    pub marked_packets: u8,
    pub port: EvPort,
    pub hops: u8,
    pub marked: bool,
    pub misrouted: bool,
    pub trimmed: bool,
    pub timestamp: Time,
    /// Further packets to echo: those before the one that triggers the ACK.
    pub echoes: Echoes,
    /// Numbers that arrived since the last ACK lie in `lowest..end`, which may be empty.
    pub lowest: u64,
    pub end: u64,
}

impl Pending {
    /// Includes a packet in the next ACK, due at once if one bitmap does not cover all of them.
    //= docs/specs/transport.md#TRN-55 one bitmap does not cover
    #[inline]
    pub(super) fn cover(&mut self, psn: u64) {
        if self.lowest == self.end {
            (self.lowest, self.end) = (psn, psn + 1);
        } else {
            self.lowest = self.lowest.min(psn);
            self.end = self.end.max(psn + 1);
            self.due |= self.end - self.lowest > BITMAP_PACKETS;
        }
    }

    #[inline]
    pub(super) fn is_covered(&self, base: u64) -> bool {
        self.lowest == self.end || self.end.saturating_sub(base) <= BITMAP_PACKETS
    }
}

pub(super) const BITMAP_PACKETS: u64 = spray_wire::BITMAP_BITS as u64;
