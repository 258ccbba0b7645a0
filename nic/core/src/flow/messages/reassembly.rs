//! The receiver's reassembly: which packets form a message, and how much memory it may take.
//! Packet path: R5 of `docs/architecture.md`.

use spray_wire::Data;

use super::completed_numbers::CompletedNumbers;
use super::memory_limit::MemoryLimit;
use super::table::{Incoming, Table};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::flow) enum Placed {
    Rejected,
    NoRoom,
    Part(PayloadSlot),
    Complete(PayloadSlot),
}

/// The position of a packet's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadSlot {
    /// Number of the buffer of the packet's message: small, and unique among incomplete messages.
    pub buffer: u32,
    /// The packet's part of the message.
    pub part: Part,
}

/// A packet's part of its message, in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The whole message. It needs no buffer.
    Whole,
    /// The first. Create the buffer, empty, with memory for the whole message.
    First,
    /// The first, but only what is written may take memory.
    FirstOfMany,
    /// Neither the first nor the last.
    Next,
    /// The message is complete and takes its buffer along: its number's next one has another.
    Last,
}

#[derive(Clone, Debug)]
pub(in crate::flow) struct Reassembly {
    pub table: Table,
    pub numbers: CompletedNumbers,
    max_open: usize,
    pub open_bytes: u64,
    max_open_bytes: u64,
    max_message_bytes: u64,
    /// `None` if no payload is stored.
    pub room: Option<MemoryLimit>,
}

impl Reassembly {
    /// Creates a table for what a conforming sender can have open. Every incomplete message but the
    /// newest has a received and a missing packet inside the window: at most half a window of them
    /// and one more. Their bytes lie inside the window, except for the ends of the first and the
    /// last.
    pub fn new(window_packets: u32, payload_bytes: u32, max_message_bytes: u64) -> Self {
        let window_bytes = u64::from(window_packets) * u64::from(payload_bytes);
        Self {
            table: Table::new(),
            numbers: CompletedNumbers::default(),
            max_open: window_packets as usize / 2 + 1,
            open_bytes: 0,
            max_open_bytes: max_message_bytes.saturating_mul(2).saturating_add(window_bytes),
            max_message_bytes,
            room: Some(MemoryLimit::default()),
        }
    }

    /// Places the payload of a packet that arrives for the first time.
    #[inline]
    pub fn place(&mut self, data: &Data) -> Placed {
        let payload = u64::from(data.payload_bytes);
        let Some(end) = data.offset.checked_add(payload) else { return Placed::Rejected };
        let empty_part = payload == 0 && data.message_bytes != 0;
        //= docs/specs/transport.md#TRN-53 refused packets
        if end > data.message_bytes || data.message_bytes > self.max_message_bytes || empty_part {
            return Placed::Rejected;
        }
        let Some((buffer, incoming)) = self.table.find(data.message) else { return self.place_first(data, end) };
        if incoming.bytes != data.message_bytes {
            return Placed::Rejected;
        }
        let Some(layout) = incoming.layout_with(data, end) else { return Placed::Rejected };
        let received = incoming.received + payload;
        if let Some(room) = &mut self.room
            && !room.extend(&mut incoming.parts, incoming.bytes, received, (data.offset, end))
        {
            return Placed::NoRoom;
        }
        incoming.received = received;
        incoming.layout = layout;
        if received < incoming.bytes {
            return Placed::Part(PayloadSlot { buffer, part: Part::Next });
        }
        self.complete(data);
        Placed::Complete(PayloadSlot { buffer, part: Part::Last })
    }

    fn place_first(&mut self, data: &Data, end: u64) -> Placed {
        if !self.numbers.may_begin(data.message) {
            return Placed::Rejected;
        }
        if u64::from(data.payload_bytes) == data.message_bytes {
            self.numbers.complete(data.message);
            return Placed::Complete(PayloadSlot { buffer: 0, part: Part::Whole });
        }
        let mut incoming = Incoming::beginning_with(data, end == data.message_bytes);
        let open_bytes = self.open_bytes.saturating_add(incoming.bytes);
        if self.table.len() == self.max_open || open_bytes > self.max_open_bytes {
            return Placed::Rejected;
        }
        if let Some(room) = &mut self.room
            && !room.extend(&mut incoming.parts, incoming.bytes, incoming.received, (data.offset, end))
        {
            return Placed::NoRoom;
        }
        self.open_bytes = open_bytes;
        let part = if incoming.parts.are_all_of(incoming.bytes) { Part::First } else { Part::FirstOfMany };
        Placed::Part(PayloadSlot { buffer: self.table.insert(incoming), part })
    }

    /// Removes a message that has every byte. Its memory is then at most what has arrived of it.
    pub fn complete(&mut self, data: &Data) {
        self.open_bytes -= data.message_bytes;
        self.table.remove(data.message);
        self.numbers.complete(data.message);
    }
}
