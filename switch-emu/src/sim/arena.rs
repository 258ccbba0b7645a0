//! Where events live: one cache line each, taken from and given back to a list of free ones.

use std::hint::black_box;

use spray_wire::{Ack, Data, Nack, Probe, ProbeAck};


/// What a slot of the arena is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// In the list of free slots.
    Free,
    /// A frame that arrives at switch `place`.
    AtSwitch,
    /// A frame that arrives at host `place`.
    AtHost,
    /// Host `place` may put data on its link.
    Transmit,
    /// Connection `connection`'s sender is due.
    SenderTimer,
    /// Connection `connection`'s receiver is due.
    ReceiverTimer,
    /// Flow `connection` starts.
    Start,
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

/// Time of a key.
#[inline]
pub(super) const fn time_ps(key: u64) -> u64 {
    key >> 2
}

/// No slot.
const NONE: u32 = u32::MAX;

/// An event; most are frames, and hold what switches look at. The rest of a frame is in [`Arena::bodies`].
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Slot {
    pub key: u64,
    /// Digest of the frame's five-tuple.
    pub flow: u64,
    /// The frame's share of random decisions: its number.
    pub random: u64,
    /// The next free slot, of a free one.
    pub next: u32,
    pub place: u32,
    pub connection: u32,
    /// Port that leads to the frame's destination, and the number of that port's switch among the leaves.
    pub last_port: u32,
    pub leaf: u32,
    pub len: u32,
    pub port: u16,
    pub ttl: u8,
    pub ecn: u8,
    pub control: bool,
    pub trimmable: bool,
    pub trimmed: bool,
    pub kind: Kind,
}

const _: () = assert!(size_of::<Slot>() == 64);

/// What a frame says to the host that gets it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body {
    Data(Data),
    Ack(Ack),
    Nack(Nack),
    Probe(Probe),
    ProbeAck(ProbeAck),
}

impl Slot {
    pub(super) const EMPTY: Self = Self {
        key: 0,
        flow: 0,
        random: 0,
        next: NONE,
        place: 0,
        connection: 0,
        last_port: 0,
        leaf: 0,
        len: 0,
        port: 0,
        ttl: 0,
        ecn: 0,
        control: false,
        trimmable: false,
        trimmed: false,
        kind: Kind::Free,
    };

    pub(super) fn is_frame(&self) -> bool {
        matches!(self.kind, Kind::AtSwitch | Kind::AtHost)
    }
}

/// All events.
#[derive(Debug)]
pub(super) struct Arena {
    pub slots: Vec<Slot>,
    pub bodies: Vec<Body>,
    free: u32,
}

impl Arena {
    pub(super) fn new(capacity: usize) -> Self {
        Self { slots: Vec::with_capacity(capacity), bodies: Vec::with_capacity(capacity), free: NONE }
    }

    /// Takes a slot; the one given back last, which the cache still knows.
    #[inline]
    pub(super) fn take(&mut self, slot: Slot) -> u32 {
        let index = self.free;
        if index == NONE {
            return self.grow(slot);
        }
        let place = &mut self.slots[index as usize];
        self.free = place.next;
        *place = slot;
        index
    }

    #[inline]
    pub(super) fn give_back(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.kind = Kind::Free;
        slot.next = self.free;
        self.free = index;
    }

    /// Has the cache fetch a slot.
    #[inline]
    pub(super) fn fetch(&self, index: u32) {
        black_box(self.slots[index as usize].key);
    }

    /// Has the cache fetch the rest of a frame that comes to its host.
    #[inline]
    pub(super) fn fetch_body(&self, index: u32) {
        if self.slots[index as usize].kind == Kind::AtHost {
            black_box(std::mem::discriminant(&self.bodies[index as usize]));
        }
    }

    #[cold]
    fn grow(&mut self, slot: Slot) -> u32 {
        self.slots.push(slot);
        self.bodies.push(Body::Data(Data::default()));
        self.slots.len() as u32 - 1
    }
}
