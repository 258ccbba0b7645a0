//! Where events live: one cache line each, taken from and given back to a list of free ones.

use spray_wire::{DSCP_TRIMMED_LAST, Data, EvPort, Section, Time};

use super::messages::Message;
use super::said::Said;

/// What a slot of the arena is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A frame that arrives at switch `place`.
    AtSwitch,
    /// A frame that arrives at the switch of port `place`, by which it will leave: see
    /// [`Switches::look_ahead`](super::tables::Switches::look_ahead).
    AtPort,
    /// A frame that arrives at host `place`.
    AtHost,
    /// Host `place` may put data on its link.
    Transmit,
    /// Connection `connection`'s sender is due.
    SenderTimer,
    /// Connection `connection`'s receiver is due.
    ReceiverTimer,
    /// Host `place` may grant credit.
    Grant,
    /// The next flow of connection `connection` starts.
    Start,
    /// Trigger `connection` gets a signal.
    Signal,
    /// The flow of connection `connection` is over at the other end.
    Over,
    /// The first frame of data at port `place` may leave.
    Leaves,
    /// The sender of port `place`'s link pauses.
    Pause,
    /// The sender of port `place`'s link goes on.
    Resume,
    /// Time to look for deadlocks.
    Watch,
    /// What waits in reordering queue `connection` of switch `place` may have waited long enough.
    LetGo,
}

/// Which of the events of one moment comes first: what arrives may change what a timer does, and both what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Turn {
    Start,
    Arrival,
    Timer,
    Transmit,
}

/// Key of an event: its time, then its turn.
#[inline]
pub(super) const fn key(at_ps: u64, turn: Turn) -> u64 {
    at_ps << 2 | turn as u64
}

/// Whether events of this key arrive.
#[inline]
pub(super) const fn is_arrival(key: u64) -> bool {
    key & 3 == Turn::Arrival as u64
}

#[inline]
pub(super) const fn time_ps(key: u64) -> u64 {
    key >> 2
}

/// An event; most are frames, and hold what switches look at and, of data, what the receiver cannot know otherwise.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Slot {
    pub key: u64,
    /// Digest of the frame's five-tuple.
    pub flow: u64,
    /// When a data frame was sent.
    pub sent_at: Time,
    /// Sequence number of a data frame, index of a control frame's body.
    pub psn: u64,
    /// The frame's share of random decisions: its number.
    pub random: u32,
    /// Switch, port or host that the event is at.
    pub place: u32,
    pub connection: u32,
    /// Host that the frame goes to.
    pub to: u32,
    pub len: u32,
    pub payload_bytes: u16,
    pub port: EvPort,
    /// What a data frame says of those before it on its path.
    pub section: u16,
    pub ttl: u8,
    pub ecn: u8,
    pub control: bool,
    /// A data frame's flags, and whether a switch has trimmed it.
    pub flags: u8,
    /// How the frame goes through a dragonfly.
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

    /// Whether the last port of the path says that it trimmed the frame.
    #[inline]
    pub(super) fn is_trimmed_last(&self) -> bool {
        self.flags & TRIMMED_LAST != 0
    }

    /// A switch has trimmed it with this DSCP.
    #[inline]
    pub(super) fn set_trimmed(&mut self, dscp: u8) {
        self.flags |= TRIMMED | if dscp == DSCP_TRIMMED_LAST { TRIMMED_LAST } else { 0 };
    }

    /// Whether it goes from one switch to another.
    #[inline]
    pub(super) fn is_notice(&self) -> bool {
        self.flags & NOTICE != 0
    }

    /// It is a frame that says something beyond its slot: see [`Arena::keep`].
    #[inline]
    pub(super) fn has_body(&self) -> bool {
        // A data frame stays one when it is cut.
        self.control && !self.is_trimmed() && !self.is_notice()
    }

    /// A switch may cut it: data with a payload that it still has.
    #[inline]
    pub(super) fn is_trimmable(&self) -> bool {
        !self.control && self.payload_bytes > 0
    }

    /// A data frame's header. The slot holds what differs between the frames of `message`, which is in packets of `full_bytes`.
    #[inline]
    pub(super) fn data(&self, message: &Message, full_bytes: u64) -> Data {
        // A frame without payload in the place of one that has some asks for a grant, or is a trailer, and is of no message.
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

/// The flags of a data frame, for [`Slot::flags`].
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
/// Of a frame between switches, which has no body.
pub(super) const NOTICE: u8 = 32;

/// All events, and the bodies of control frames.
#[derive(Debug, Default)]
pub(super) struct Arena {
    pub slots: Vec<Slot>,
    /// Slots that are free, the one given back last on top: the cache still knows it. They are listed apart, so that taking one does not
    /// wait for memory.
    free: Vec<u32>,
    pub controls: Vec<Said>,
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
    pub(super) fn give_back(&mut self, index: u32) {
        self.free.push(index);
    }

    /// Keeps what a control frame says; returns where, for [`Slot::psn`].
    #[inline]
    pub(super) fn keep(&mut self, said: Said) -> u64 {
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

    /// What a control frame says, for the last time.
    #[inline]
    pub(super) fn drop_control(&mut self, slot: &Slot) -> Said {
        self.free_controls.push(slot.psn as u32);
        std::mem::take(&mut self.controls[slot.psn as usize])
    }

    /// Gives back a frame that is lost, and what it says.
    pub(super) fn lose(&mut self, index: u32) {
        let slot = self.slots[index as usize];
        if slot.has_body() {
            self.drop_control(&slot);
        }
        self.give_back(index);
    }

    #[cold]
    fn grow(&mut self, slot: &Slot) -> u32 {
        make_room(&mut self.slots, LEAST);
        self.slots.push(*slot);
        self.slots.len() as u32 - 1
    }
}

/// Least entries for which the lists of an arena get room.
const LEAST: usize = 64;

/// Makes room for an entry more: a quarter, and no fewer than `least`. Doubling would leave more memory unused.
#[inline]
pub(super) fn make_room<T>(list: &mut Vec<T>, least: usize) {
    if list.len() == list.capacity() {
        list.reserve_exact(least.max(list.len() / 4));
    }
}
