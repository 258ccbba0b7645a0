//! Messages: the sender segments them into packets, the receiver reassembles them.
//! Packet path: T3 and R5 of `docs/architecture.md`.

mod completed_numbers;
#[cfg(any(test, feature = "lab"))]
mod erasure;
mod memory_limit;
mod reassembly;
mod table;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

pub(super) use self::completed_numbers::CompletedNumbers;
#[cfg(test)]
pub(super) use self::completed_numbers::MOST_MISSING;
#[cfg(any(test, feature = "lab"))]
pub(super) use self::erasure::Coded;
pub use self::reassembly::{Part, PayloadSlot};
pub(super) use self::reassembly::{Placed, Reassembly};
pub use self::table::HashKey;
#[cfg(test)]
pub(super) use self::{
    memory_limit::SLACK_BYTES,
    table::{Incoming, Table},
};
use super::config::MESSAGE_SLOTS;
use crate::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub slot: u16,
    pub message: u32,
    pub offset: u64,
    pub message_bytes: u64,
    pub payload_bytes: u16,
}

impl Segment {
    #[inline]
    pub(super) fn is_last(&self) -> bool {
        self.offset + u64::from(self.payload_bytes) == self.message_bytes
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Outgoing {
    message: u32,
    /// Whether the delivery was reported, or the slot was never used.
    free: bool,
    bytes: u64,
    cut: u64,
    first_psn: u64,
    /// Packets not acknowledged yet, sent or not.
    unacked_packets: u64,
    delivered_at: Time,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Segmenter {
    /// At most [`MESSAGE_SLOTS`]; grows on demand.
    slots: Vec<Outgoing>,
    /// Running numbers of the oldest, the present and the next message. The low bits are the slot.
    oldest: u32,
    cutting: u32,
    newest: u32,
    delivered: VecDeque<u16>,
    payload_bytes: u16,
    pub unsent_bytes: u64,
}

impl Segmenter {
    pub(super) fn new(payload_bytes: u16) -> Self {
        Self { payload_bytes, ..Self::default() }
    }

    /// Queues a message; returns `false` if there is no room.
    pub(super) fn push(&mut self, message: u32, bytes: u64) -> bool {
        if self.newest.wrapping_sub(self.oldest) as usize == MESSAGE_SLOTS {
            return false;
        }
        //= docs/specs/transport.md#TRN-1 packets of a message
        let unacked_packets = bytes.div_ceil(u64::from(self.payload_bytes)).max(1);
        let outgoing = Outgoing { message, bytes, unacked_packets, ..Outgoing::default() };
        match self.slots.get_mut(slot_of(self.newest)) {
            Some(slot) => *slot = outgoing,
            // Numbers are consecutive, so the first missing slot is the next one.
            None => self.slots.push(outgoing),
        }
        self.newest = self.newest.wrapping_add(1);
        self.unsent_bytes = self.unsent_bytes.saturating_add(bytes);
        true
    }

    pub(super) fn wire_bytes(&self, bytes: u64, header_bytes: u32) -> u64 {
        let packets = bytes.div_ceil(u64::from(self.payload_bytes)).max(1);
        bytes.saturating_add(packets.saturating_mul(u64::from(header_bytes)))
    }

    #[inline]
    pub(super) fn next(&self) -> Option<Segment> {
        if self.cutting == self.newest {
            return None;
        }
        let slot = slot_of(self.cutting);
        let outgoing = &self.slots[slot];
        Some(Segment {
            slot: slot as u16,
            message: outgoing.message,
            offset: outgoing.cut,
            message_bytes: outgoing.bytes,
            payload_bytes: (outgoing.bytes - outgoing.cut).min(u64::from(self.payload_bytes)) as u16,
        })
    }

    #[inline]
    pub(super) fn on_sent(&mut self, segment: &Segment, psn: u64) {
        let outgoing = &mut self.slots[usize::from(segment.slot)];
        if segment.offset == 0 {
            outgoing.first_psn = psn;
        }
        outgoing.cut += u64::from(segment.payload_bytes);
        self.unsent_bytes = self.unsent_bytes.saturating_sub(u64::from(segment.payload_bytes));
        if segment.is_last() {
            self.cutting = self.cutting.wrapping_add(1);
        }
    }

    #[inline]
    pub(super) fn resegment(&self, slot: u16, psn: u64, payload_bytes: u16) -> Segment {
        let outgoing = &self.slots[usize::from(slot)];
        Segment {
            slot,
            message: outgoing.message,
            offset: (psn - outgoing.first_psn) * u64::from(self.payload_bytes),
            message_bytes: outgoing.bytes,
            payload_bytes,
        }
    }

    /// Records an acknowledged packet of the message in `slot`. Returns whether it was the last.
    #[inline]
    pub(super) fn settle(&mut self, slot: u16, now: Time) -> bool {
        let outgoing = &mut self.slots[usize::from(slot)];
        outgoing.unacked_packets -= 1;
        if outgoing.unacked_packets > 0 {
            return false;
        }
        outgoing.delivered_at = now;
        // Bounded by the slots: each is in the queue at most once before it is free again.
        self.delivered.push_back(slot);
        true
    }

    /// Returns a delivered message and the time of its last acknowledgement, and frees its slot.
    pub(super) fn poll_delivered(&mut self) -> Option<(u32, Time)> {
        let slot = self.delivered.pop_front()?;
        let outgoing = &mut self.slots[usize::from(slot)];
        outgoing.free = true;
        let delivered = (outgoing.message, outgoing.delivered_at);
        while self.oldest != self.cutting && self.slots[slot_of(self.oldest)].free {
            self.oldest = self.oldest.wrapping_add(1);
        }
        Some(delivered)
    }

    #[cfg(any(test, feature = "lab"))]
    pub(super) fn unsegmented_packets(&self) -> u64 {
        let waiting = self.newest.wrapping_sub(self.cutting);
        let packets = |ahead| {
            let outgoing = &self.slots[slot_of(self.cutting.wrapping_add(ahead))];
            (outgoing.bytes - outgoing.cut).div_ceil(u64::from(self.payload_bytes)).max(1)
        };
        (0..waiting).map(packets).fold(0, u64::saturating_add)
    }

    #[inline]
    pub(super) fn is_cut(&self) -> bool {
        self.cutting == self.newest
    }
}

#[cfg(test)]
impl Segmenter {
    /// Begins as if this number of messages had been delivered and every slot been used.
    pub(super) fn start_at(&mut self, messages: u32) {
        self.slots.resize(MESSAGE_SLOTS, Outgoing { free: true, ..Outgoing::default() });
        (self.oldest, self.cutting, self.newest) = (messages, messages, messages);
    }
}

#[inline]
fn slot_of(running: u32) -> usize {
    running as usize & (MESSAGE_SLOTS - 1)
}
