//! Messages: the sender's segmenter cuts them into packets, the receiver's reassembly puts them together again.

mod coded;
#[cfg(test)]
mod start;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use spray_wire::Data;

pub(super) use self::coded::Coded;
use super::config::MESSAGE_SLOTS;
use crate::Time;

/// The next new packet's place in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub slot: u16,
    pub message: u32,
    pub offset: u64,
    pub message_bytes: u64,
    pub payload_bytes: u16,
}

impl Segment {
    /// Whether the segment ends its message.
    #[inline]
    pub(super) fn is_last(&self) -> bool {
        self.offset + u64::from(self.payload_bytes) == self.message_bytes
    }
}

/// A message on its way out.
#[derive(Clone, Copy, Debug, Default)]
struct Outgoing {
    message: u32,
    /// The slot is free: the delivery was reported, or the slot was never used.
    free: bool,
    bytes: u64,
    /// Bytes cut into packets so far.
    cut: u64,
    first_psn: u64,
    /// Packets not acknowledged yet, sent or not.
    open_packets: u64,
    delivered_at: Time,
}

/// The sender's messages, in the order in which they were handed over.
#[derive(Clone, Debug)]
pub(super) struct Segmenter {
    /// At most [`MESSAGE_SLOTS`], as many as were ever needed.
    slots: Vec<Outgoing>,
    /// Running numbers of the oldest message kept, the one being cut, and the next to come. A slot is a number's low
    /// bits.
    oldest: u32,
    cutting: u32,
    newest: u32,
    delivered: VecDeque<u16>,
    payload_bytes: u16,
    /// Bytes handed over and not cut into packets yet.
    pub unsent_bytes: u64,
}

impl Segmenter {
    pub(super) fn new(payload_bytes: u16) -> Self {
        Self {
            slots: Vec::new(),
            oldest: 0,
            cutting: 0,
            newest: 0,
            delivered: VecDeque::new(),
            payload_bytes,
            unsent_bytes: 0,
        }
    }

    /// Takes a message; `false` when there is no room.
    pub(super) fn push(&mut self, message: u32, bytes: u64) -> bool {
        if self.newest.wrapping_sub(self.oldest) as usize == MESSAGE_SLOTS {
            return false;
        }
        //= docs/specs/transport.md#TRN-1 packets of a message
        let open_packets = bytes.div_ceil(u64::from(self.payload_bytes)).max(1);
        let outgoing = Outgoing { message, bytes, open_packets, ..Outgoing::default() };
        match self.slots.get_mut(slot_of(self.newest)) {
            Some(slot) => *slot = outgoing,
            // Numbers come one by one, so that the first slot that is missing is the next one.
            None => self.slots.push(outgoing),
        }
        self.newest = self.newest.wrapping_add(1);
        self.unsent_bytes = self.unsent_bytes.saturating_add(bytes);
        true
    }

    /// Wire bytes of a message of `bytes`, in packets with headers of `header_bytes`.
    pub(super) fn wire_bytes(&self, bytes: u64, header_bytes: u32) -> u64 {
        let packets = bytes.div_ceil(u64::from(self.payload_bytes)).max(1);
        bytes.saturating_add(packets.saturating_mul(u64::from(header_bytes)))
    }

    /// The next packet to cut.
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

    /// Records that [`Segmenter::next`] was sent as `psn`.
    #[inline]
    pub(super) fn cut(&mut self, segment: &Segment, psn: u64) {
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

    /// The segment that was sent before as `psn`.
    #[inline]
    pub(super) fn again(&self, slot: u16, psn: u64, payload_bytes: u16) -> Segment {
        let outgoing = &self.slots[usize::from(slot)];
        Segment {
            slot,
            message: outgoing.message,
            offset: (psn - outgoing.first_psn) * u64::from(self.payload_bytes),
            message_bytes: outgoing.bytes,
            payload_bytes,
        }
    }

    /// Records that a packet of the message in `slot` is acknowledged. Returns whether it was the message's last one.
    #[inline]
    pub(super) fn settle(&mut self, slot: u16, now: Time) -> bool {
        let outgoing = &mut self.slots[usize::from(slot)];
        outgoing.open_packets -= 1;
        if outgoing.open_packets > 0 {
            return false;
        }
        outgoing.delivered_at = now;
        // No more than there are slots: each is in the queue at most once before it is free again.
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

    /// Packets handed over and not cut yet.
    pub(super) fn uncut_packets(&self) -> u64 {
        let waiting = self.newest.wrapping_sub(self.cutting);
        let packets = |ahead| {
            let outgoing = &self.slots[slot_of(self.cutting.wrapping_add(ahead))];
            (outgoing.bytes - outgoing.cut).div_ceil(u64::from(self.payload_bytes)).max(1)
        };
        (0..waiting).map(packets).fold(0, u64::saturating_add)
    }

    /// Whether everything handed over was cut into packets.
    #[inline]
    pub(super) fn is_cut(&self) -> bool {
        self.cutting == self.newest
    }
}

#[inline]
fn slot_of(running: u32) -> usize {
    running as usize & (MESSAGE_SLOTS - 1)
}

/// What became of a packet's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placed {
    /// It contradicts itself, the message so far, or a limit.
    Rejected,
    /// It belongs to a message that still lacks something.
    Part,
    /// Its message has every byte now.
    Complete,
}

/// A message of which some packets have arrived.
///
/// Packets of a message are consecutive, and all but the last have one size. So `psn * unit - offset`, the key, is
/// the same for all of them. Packets with distinct numbers and equal keys share no byte.
#[derive(Clone, Copy, Debug, Default)]
struct Incoming {
    message: u32,
    /// Payload of every packet but the last; 0 while only the last has arrived.
    unit: u16,
    used: bool,
    bytes: u64,
    received: u64,
    /// `psn * unit - offset`, or the last packet's number while `unit` is 0.
    key: u64,
}

/// Slots for incomplete messages that a connection begins with.
const FIRST_INCOMING: usize = 8;

/// The receiver's incomplete messages: a hash table with linear probing, never more than half full. It doubles with the messages that are
/// open.
#[derive(Clone, Debug)]
pub(super) struct Reassembly {
    slots: Box<[Incoming]>,
    shift: u32,
    /// Secret, so that nobody can choose numbers that meet in one slot.
    key: HashKey,
    open: usize,
    max_open: usize,
    open_bytes: u64,
    max_open_bytes: u64,
    max_message_bytes: u64,
}

impl Reassembly {
    /// Makes room for what an honest sender can have open.
    ///
    /// Every incomplete message but the newest has a packet received and a packet missing inside the window, so there
    /// are at most half a window of them and one more. Their bytes lie inside the window, but for the beginning of
    /// the first and the end of the last.
    pub(super) fn new(window_packets: u32, payload_bytes: u32, max_message_bytes: u64) -> Self {
        let max_open = window_packets as usize / 2 + 1;
        let window_bytes = u64::from(window_packets) * u64::from(payload_bytes);
        Self {
            slots: vec![Incoming::default(); FIRST_INCOMING].into_boxed_slice(),
            shift: 64 - FIRST_INCOMING.trailing_zeros(),
            key: HashKey::default(),
            open: 0,
            max_open,
            open_bytes: 0,
            max_open_bytes: max_message_bytes.saturating_mul(2).saturating_add(window_bytes),
            max_message_bytes,
        }
    }

    /// Hashes with `key`. Nothing was placed yet.
    pub(super) fn set_key(&mut self, key: HashKey) {
        self.key = key;
    }

    /// Takes the payload of a packet whose number arrives for the first time.
    pub(super) fn place(&mut self, data: &Data) -> Placed {
        let payload = u64::from(data.payload_bytes);
        let Some(end) = data.offset.checked_add(payload) else { return Placed::Rejected };
        let empty_part = payload == 0 && data.message_bytes != 0;
        //= docs/specs/transport.md#TRN-53 refused packets
        if end > data.message_bytes || data.message_bytes > self.max_message_bytes || empty_part {
            return Placed::Rejected;
        }
        let (slot, known) = self.find(data.message);
        if known {
            return self.place_more(slot, data, end);
        }
        if payload == data.message_bytes {
            return Placed::Complete;
        }
        self.place_first(slot, data, end)
    }

    fn place_first(&mut self, mut slot: usize, data: &Data, end: u64) -> Placed {
        let open_bytes = self.open_bytes.saturating_add(data.message_bytes);
        if self.open == self.max_open || open_bytes > self.max_open_bytes {
            return Placed::Rejected;
        }
        if 2 * (self.open + 1) > self.slots.len() {
            self.grow();
            (slot, _) = self.find(data.message);
        }
        let last = end == data.message_bytes;
        self.slots[slot] = Incoming {
            message: data.message,
            unit: if last { 0 } else { data.payload_bytes },
            used: true,
            bytes: data.message_bytes,
            received: u64::from(data.payload_bytes),
            key: if last { data.psn } else { key(data.psn, data.payload_bytes, data.offset) },
        };
        self.open += 1;
        self.open_bytes = open_bytes;
        Placed::Part
    }

    fn place_more(&mut self, slot: usize, data: &Data, end: u64) -> Placed {
        let incoming = &mut self.slots[slot];
        if incoming.bytes != data.message_bytes || !incoming.fits(data, end) {
            return Placed::Rejected;
        }
        incoming.received += u64::from(data.payload_bytes);
        if incoming.received < incoming.bytes {
            return Placed::Part;
        }
        self.open -= 1;
        self.open_bytes -= data.message_bytes;
        self.remove(slot);
        Placed::Complete
    }

    #[cold]
    fn grow(&mut self) {
        let slots = vec![Incoming::default(); 2 * self.slots.len()].into_boxed_slice();
        self.shift -= 1;
        for incoming in core::mem::replace(&mut self.slots, slots).into_iter().filter(|incoming| incoming.used) {
            let (slot, _) = self.find(incoming.message);
            self.slots[slot] = incoming;
        }
    }

    /// The slot of `message` and true, or the free slot where it would go and false.
    #[inline]
    fn find(&self, message: u32) -> (usize, bool) {
        let mut slot = self.home(message);
        loop {
            let incoming = &self.slots[slot];
            if !incoming.used {
                return (slot, false);
            }
            if incoming.message == message {
                return (slot, true);
            }
            slot = self.after(slot);
        }
    }

    /// Empties `slot` and moves later entries back where their search passed it, so that a search still ends at the
    /// first free slot.
    fn remove(&mut self, mut slot: usize) {
        let mut next = self.after(slot);
        while self.slots[next].used {
            let home = self.home(self.slots[next].message);
            let mask = self.slots.len() - 1;
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(slot) & mask {
                self.slots[slot] = self.slots[next];
                slot = next;
            }
            next = self.after(next);
        }
        self.slots[slot].used = false;
    }

    //= docs/specs/transport.md#TRN-62 numbers that collide
    #[inline]
    fn home(&self, message: u32) -> usize {
        (self.key.hash(message) >> self.shift) as usize
    }

    /// Slots that a search for `message` looks at.
    #[cfg(test)]
    pub(super) fn steps(&self, message: u32) -> usize {
        (self.find(message).0.wrapping_sub(self.home(message)) & (self.slots.len() - 1)) + 1
    }

    #[inline]
    fn after(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }
}

/// What a table hashes message numbers with: a secret where the peer is not trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashKey(pub [u64; 2]);

impl HashKey {
    /// Two folded products, the second of which hides what the first leaves of the number's structure.
    #[inline]
    fn hash(self, message: u32) -> u64 {
        let Self([first, second]) = self;
        fold(fold(u64::from(message) ^ first, 0x9e37_79b9_7f4a_7c15) ^ second, 0xd1b5_4a32_d192_ed03)
    }
}

/// Both halves of a product, added without carry.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

impl Incoming {
    /// Whether a packet that ends at `end` agrees with the packets before it. Learns the unit from the first packet
    /// that is not the last one.
    #[inline]
    fn fits(&mut self, data: &Data, end: u64) -> bool {
        let last = end == self.bytes;
        if self.unit == 0 {
            // Only the last packet has arrived: `received` is its length, `key` its number.
            let offset = self.bytes - self.received;
            let key_of_last = key(self.key, data.payload_bytes, offset);
            let fits = !last
                && self.received <= u64::from(data.payload_bytes)
                && key_of_last == key(data.psn, data.payload_bytes, data.offset);
            if fits {
                (self.unit, self.key) = (data.payload_bytes, key_of_last);
            }
            return fits;
        }
        let sized = if last { data.payload_bytes <= self.unit } else { data.payload_bytes == self.unit };
        sized && key(data.psn, self.unit, data.offset) == self.key
    }
}

#[inline]
fn key(psn: u64, unit: u16, offset: u64) -> u64 {
    psn.wrapping_mul(u64::from(unit)).wrapping_sub(offset)
}
