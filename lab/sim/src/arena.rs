//! Storage of events: one cache line each, reused through a free list.

use spray_wire::{DSCP_TRIMMED_LAST, Data, EvPort, Section, Time};

use super::control_body::ControlBody;
use super::messages::Message;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    AtSwitch,
    /// A frame that arrives at a switch and leaves by port `place`: see
    /// [`Switches::choose_early`](super::switches::Switches::choose_early).
    AtPort,
    AtHost,
    Transmit,
    SenderTimer,
    ReceiverTimer,
    Grant,
    Start,
    Signal,
    FlowEnd,
    Leaves,
    Pause,
    Resume,
    /// Check for deadlocks.
    DeadlockCheck,
    /// Reordering queue `connection` of switch `place` may have expired.
    ReorderTimeout,
}

/// Order of the events of one moment: arrivals may change what timers do, and both what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Phase {
    Start,
    Arrival,
    Timer,
    Transmit,
}

#[inline]
pub(super) const fn key(at_ps: u64, turn: Phase) -> u64 {
    at_ps << 2 | turn as u64
}

#[inline]
pub(super) const fn is_arrival(key: u64) -> bool {
    key & 3 == Phase::Arrival as u64
}

#[inline]
pub(super) const fn time_ps(key: u64) -> u64 {
    key >> 2
}

/// An event. Of a frame, it has the fields that switches and receivers read.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Slot {
    pub key: u64,
    /// Digest of the five-tuple.
    pub flow: u64,
    pub sent_at: Time,
    /// Sequence number of a data frame, or index of a control frame's body.
    pub psn: u64,
    /// Number of the frame, from which random decisions are drawn.
    pub random: u32,
    /// Switch, port or host of the event.
    pub place: u32,
    pub connection: u32,
    /// Destination host.
    pub to: u32,
    pub len: u32,
    pub payload_bytes: u16,
    pub port: EvPort,
    /// [`Section`] of a data frame.
    pub section: u16,
    pub ttl: u8,
    pub ecn: u8,
    pub control: bool,
    pub flags: u8,
    /// Detour of a dragonfly.
    pub detour: u8,
    pub kind: Kind,
}

const _: () = assert!(size_of::<Slot>() == 64);

impl Slot {
    pub(super) const EMPTY: Self = Self {
        key: 0,
        flow: 0,
        sent_at: Time::ZERO,
        psn: 0,
        random: 0,
        place: 0,
        connection: 0,
        to: 0,
        len: 0,
        payload_bytes: 0,
        port: EvPort::new(0),
        section: 0,
        ttl: 0,
        ecn: 0,
        control: false,
        flags: 0,
        detour: 0,
        kind: Kind::Start,
    };

    pub(super) fn is_frame(&self) -> bool {
        matches!(self.kind, Kind::AtSwitch | Kind::AtPort | Kind::AtHost)
    }

    #[inline]
    pub(super) fn is_trimmed(&self) -> bool {
        self.flags & TRIMMED != 0
    }

    /// Whether the last port of the path trimmed the frame.
    #[inline]
    pub(super) fn is_trimmed_last(&self) -> bool {
        self.flags & TRIMMED_LAST != 0
    }

    #[inline]
    pub(super) fn set_trimmed(&mut self, dscp: u8) {
        self.flags |= TRIMMED | if dscp == DSCP_TRIMMED_LAST { TRIMMED_LAST } else { 0 };
    }

    /// Whether a switch sent it to another switch.
    #[inline]
    pub(super) fn is_notice(&self) -> bool {
        self.flags & NOTICE != 0
    }

    /// Whether its body is in [`Arena::controls`].
    #[inline]
    pub(super) fn has_body(&self) -> bool {
        // A trimmed data frame has the priority of control, but no body.
        self.control && !self.is_trimmed() && !self.is_notice()
    }

    #[inline]
    pub(super) fn is_trimmable(&self) -> bool {
        !self.control && self.payload_bytes > 0
    }

    /// Returns the header of a data frame of `message`, whose packets have `full_bytes` each.
    #[inline]
    pub(super) fn data(&self, message: &Message, full_bytes: u64) -> Data {
        // A credit request or a trailer, which belongs to no message.
        let asks = self.payload_bytes == 0 && message.bytes > 0;
        Data {
            psn: self.psn,
            timestamp: self.sent_at,
            message: if asks { 0 } else { message.number },
            offset: if asks { 0 } else { (self.psn - message.first_psn) * full_bytes },
            message_bytes: if asks { 0 } else { message.bytes },
            payload_bytes: self.payload_bytes,
            ack_now: self.flags & ACK_NOW != 0,
            retransmit: self.flags & RETRANSMIT != 0,
            trailer: self.flags & TRAILER != 0,
            section: Section::from_bits(self.section),
        }
    }
}

#[inline]
pub(super) const fn flags(data: &Data) -> u8 {
    (if data.ack_now { ACK_NOW } else { 0 })
        | (if data.retransmit { RETRANSMIT } else { 0 })
        | (if data.trailer { TRAILER } else { 0 })
}

const ACK_NOW: u8 = 1;
const RETRANSMIT: u8 = 2;
const TRAILER: u8 = 4;
const TRIMMED: u8 = 8;
const TRIMMED_LAST: u8 = 16;
/// A frame between switches, which has no body.
pub(super) const NOTICE: u8 = 32;

#[derive(Debug, Default)]
pub(super) struct Arena {
    pub slots: Vec<Slot>,
    /// The slot freed last is on top, since it is still in the cache. A separate list, so that
    /// taking a slot does not wait for memory.
    free: Vec<u32>,
    pub controls: Vec<ControlBody>,
    pub free_controls: Vec<u32>,
}

impl Arena {
    #[inline]
    pub(super) fn take(&mut self, slot: &Slot) -> u32 {
        let Some(index) = self.free.pop() else { return self.grow(slot) };
        self.slots[index as usize] = *slot;
        index
    }

    #[inline]
    pub(super) fn free(&mut self, index: u32) {
        self.free.push(index);
    }

    /// Stores a control frame's body; returns its index, for [`Slot::psn`].
    #[inline]
    pub(super) fn store_control(&mut self, said: ControlBody) -> u64 {
        let index = match self.free_controls.pop() {
            Some(index) => {
                self.controls[index as usize] = said;
                index
            }
            None => {
                make_room(&mut self.controls, LEAST);
                self.controls.push(said);
                self.controls.len() as u32 - 1
            }
        };
        u64::from(index)
    }

    /// Removes and returns a control frame's body.
    #[inline]
    pub(super) fn drop_control(&mut self, slot: &Slot) -> ControlBody {
        self.free_controls.push(slot.psn as u32);
        std::mem::take(&mut self.controls[slot.psn as usize])
    }

    /// Frees a lost frame and its body.
    pub(super) fn free_lost(&mut self, index: u32) {
        let slot = self.slots[index as usize];
        if slot.has_body() {
            self.drop_control(&slot);
        }
        self.free(index);
    }

    #[cold]
    fn grow(&mut self, slot: &Slot) -> u32 {
        make_room(&mut self.slots, LEAST);
        self.slots.push(*slot);
        self.slots.len() as u32 - 1
    }
}

const LEAST: usize = 64;

/// Sets the entry of an event in a list, which grows where necessary.
#[inline]
pub(super) fn set<T: Clone + Default>(list: &mut Vec<T>, event: u32, value: T) {
    let event = event as usize;
    list.resize(list.len().max(event + 1), T::default());
    list[event] = value;
}

/// Grows by a quarter, at least by `least`: doubling would leave more memory unused.
#[inline]
pub(super) fn make_room<T>(list: &mut Vec<T>, least: usize) {
    if list.len() == list.capacity() {
        list.reserve_exact(least.max(list.len() / 4));
    }
}
