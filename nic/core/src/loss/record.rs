//! The record of one packet in flight, and lists through records.

use super::Backoff;
use crate::Time;
use crate::feedback::{Ev, LossCause};

/// The state of a packet that is sent and not acknowledged, within one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub struct Record {
    pub sent_at: Time,
    /// The connection's transmissions before the packet's last one.
    pub(super) order: u64,
    pub(super) previous: u32,
    pub(super) next: u32,
    pub ev: Ev,
    /// Slot of its message at the sender.
    pub message: u16,
    pub payload_bytes: u16,
    pub backoff: Backoff,
    pub(super) state: PacketState,
}

const _: () = assert!(size_of::<Record>() == 32);

impl Record {
    /// The cause of the loss, if the packet waits for retransmission.
    #[inline]
    pub fn lost(&self) -> Option<LossCause> {
        self.state.cause(PacketState::LOST)
    }

    /// The cause of the last retransmission, if it is in flight.
    #[inline]
    pub fn resent(&self) -> Option<LossCause> {
        self.state.cause(PacketState::RESENT)
    }

    #[inline]
    pub fn was_lost(&self) -> bool {
        self.state.0 >= PacketState::RESENT
    }

    /// Whether the packet is in flight: neither acknowledged nor declared lost.
    #[inline]
    pub fn is_outstanding(&self) -> bool {
        self.state != PacketState::FREE && self.state.0 < PacketState::LOST
    }

    /// Whether a NACK with this timestamp refers to the packet's present transmission.
    //= docs/specs/transport.md#TRN-36 trimmed packets
    #[inline]
    pub fn is_current(&self, timestamp_echo: Time) -> bool {
        self.is_outstanding() && self.sent_at == timestamp_echo
    }
}

/// The state of a packet in one byte, with the cause if it was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PacketState(u8);

impl PacketState {
    /// Not in flight: acknowledged, or never used.
    pub(super) const FREE: Self = Self(0);
    pub(super) const OUTSTANDING: Self = Self(1);
    /// In flight again; this bit and the following include a cause.
    const RESENT: u8 = 8;
    /// Declared lost, and not retransmitted yet.
    const LOST: u8 = 16;
    const CAUSES: [LossCause; 6] = [
        LossCause::Timeout,
        LossCause::SackGap,
        LossCause::Trimmed,
        LossCause::TrimmedLast,
        LossCause::Missing,
        LossCause::GoBackN,
    ];

    pub(super) const fn lost_for(cause: LossCause) -> Self {
        Self(Self::LOST | cause as u8)
    }

    pub(super) const fn resent_for(cause: LossCause) -> Self {
        Self(Self::RESENT | cause as u8)
    }

    #[inline]
    fn cause(self, state: u8) -> Option<LossCause> {
        (self.0 & !7 == state).then(|| Self::CAUSES[usize::from(self.0 & 7)])
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) head: u32,
    tail: u32,
    pub(super) len: u32,
}

impl List {
    pub(super) const EMPTY: Self = Self { head: NONE, tail: NONE, len: 0 };

    #[inline]
    pub(super) fn push_back(&mut self, records: &mut [Record], slot: u32) {
        records[slot as usize].previous = self.tail;
        records[slot as usize].next = NONE;
        match self.tail {
            NONE => self.head = slot,
            tail => records[tail as usize].next = slot,
        }
        self.tail = slot;
        self.len += 1;
    }

    #[inline]
    pub(super) fn push_front(&mut self, records: &mut [Record], slot: u32) {
        records[slot as usize].previous = NONE;
        records[slot as usize].next = self.head;
        match self.head {
            NONE => self.tail = slot,
            head => records[head as usize].previous = slot,
        }
        self.head = slot;
        self.len += 1;
    }

    #[inline]
    pub(super) fn remove(&mut self, records: &mut [Record], slot: u32) {
        let Record { previous, next, .. } = records[slot as usize];
        match previous {
            NONE => self.head = next,
            previous => records[previous as usize].next = next,
        }
        match next {
            NONE => self.tail = previous,
            next => records[next as usize].previous = previous,
        }
        self.len -= 1;
    }
}

const NONE: u32 = u32::MAX;
