//! The receiver's incomplete messages.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use spray_wire::Data;

use super::memory_limit::Parts;

/// A message of which some packets have arrived.
///
/// Packets of a message are consecutive, and all but the last have one size. So the key, `psn *
/// unit - offset`, is the same for all. Packets with distinct numbers and equal keys share no byte.
#[derive(Clone, Debug, Default)]
pub(in crate::flow) struct Incoming {
    pub message: u32,
    used: bool,
    pub layout: Layout,
    pub bytes: u64,
    pub received: u64,
    pub parts: Parts,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::flow) struct Layout {
    /// Payload of every packet but the last; 0 while only the last has arrived.
    pub unit: u16,
    /// `psn * unit - offset`, or the last packet's number while `unit` is 0.
    key: u64,
}

const FIRST_PLACES: usize = 16;
const NONE: u32 = u32::MAX;

/// A hash table with linear probing, at most half full, from message numbers to entry indices. An
/// entry keeps its small index while its message is incomplete.
#[derive(Clone, Debug)]
pub(in crate::flow) struct Table {
    places: Box<[u32]>,
    shift: u32,
    /// Secret, so that a peer cannot choose numbers that collide.
    pub key: HashKey,
    entries: Vec<Incoming>,
    free: Vec<u32>,
    /// The entry found last: most packets belong to the same message.
    latest: u32,
}

impl Table {
    pub fn new() -> Self {
        Self {
            places: vec![NONE; FIRST_PLACES].into_boxed_slice(),
            shift: 64 - FIRST_PLACES.trailing_zeros(),
            key: HashKey::default(),
            entries: Vec::new(),
            free: Vec::new(),
            latest: 0,
        }
    }

    /// The number of open messages.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Returns the entry of `message` and its index.
    #[inline]
    pub fn find(&mut self, message: u32) -> Option<(u32, &mut Incoming)> {
        let is_latest = |latest: &Incoming| latest.used && latest.message == message;
        if !self.entries.get(self.latest as usize).is_some_and(is_latest) {
            let number = self.places[self.search(message)];
            if number == NONE {
                return None;
            }
            self.latest = number;
        }
        Some((self.latest, &mut self.entries[self.latest as usize]))
    }

    /// Inserts a message that has no entry. Returns the entry's index.
    pub fn insert(&mut self, mut incoming: Incoming) -> u32 {
        if 2 * (self.len() + 1) > self.places.len() {
            self.grow();
        }
        incoming.used = true;
        let place = self.search(incoming.message);
        let number = self.free.pop().unwrap_or(self.entries.len() as u32);
        match self.entries.get_mut(number as usize) {
            Some(entry) => *entry = incoming,
            None => self.entries.push(incoming),
        }
        self.places[place] = number;
        self.latest = number;
        number
    }

    /// Removes the entry of `message`, and moves back later ones whose search passed its place, so
    /// that a search still ends at the first free place.
    pub fn remove(&mut self, message: u32) {
        let mut place = self.search(message);
        let number = self.places[place];
        if number == NONE {
            return;
        }
        self.entries[number as usize] = Incoming::default();
        self.free.push(number);
        let mut next = self.after(place);
        while self.places[next] != NONE {
            let home = self.home(self.entries[self.places[next] as usize].message);
            let mask = self.places.len() - 1;
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(place) & mask {
                self.places[place] = self.places[next];
                place = next;
            }
            next = self.after(next);
        }
        self.places[place] = NONE;
    }

    #[cold]
    fn grow(&mut self) {
        self.places = vec![NONE; 2 * self.places.len()].into_boxed_slice();
        self.shift -= 1;
        for number in 0..self.entries.len() {
            if self.entries[number].used {
                let place = self.search(self.entries[number].message);
                self.places[place] = number as u32;
            }
        }
    }

    #[inline]
    fn search(&self, message: u32) -> usize {
        let mut place = self.home(message);
        loop {
            let number = self.places[place];
            if number == NONE || self.entries[number as usize].message == message {
                return place;
            }
            place = self.after(place);
        }
    }

    //= docs/specs/transport.md#TRN-62 numbers that collide
    #[inline]
    fn home(&self, message: u32) -> usize {
        (self.key.hash(message) >> self.shift) as usize
    }

    /// The number of places that a search for `message` reads.
    #[cfg(test)]
    pub fn steps(&self, message: u32) -> usize {
        (self.search(message).wrapping_sub(self.home(message)) & (self.places.len() - 1)) + 1
    }

    #[inline]
    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }
}

/// The key of the hash of message numbers: secret if the peer is untrusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashKey(pub [u64; 2]);

impl HashKey {
    /// Two folded products; the second hides what the first leaves of the number's structure.
    #[inline]
    fn hash(self, message: u32) -> u64 {
        let Self([first, second]) = self;
        fold(fold(u64::from(message) ^ first, 0x9e37_79b9_7f4a_7c15) ^ second, 0xd1b5_4a32_d192_ed03)
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

impl Incoming {
    /// Creates a message from the first packet to arrive; `last`: the packet ends the message.
    pub fn beginning_with(data: &Data, last: bool) -> Self {
        Self {
            message: data.message,
            used: false,
            layout: match last {
                true => Layout { unit: 0, key: data.psn },
                false => Layout { unit: data.payload_bytes, key: key(data.psn, data.payload_bytes, data.offset) },
            },
            bytes: data.message_bytes,
            received: u64::from(data.payload_bytes),
            parts: Parts::default(),
        }
    }

    /// Returns the layout with a packet that ends at `end`, or `None` if the packet does not fit.
    #[inline]
    pub fn layout_with(&self, data: &Data, end: u64) -> Option<Layout> {
        if self.agrees_with(data, end) { Some(self.layout) } else { self.layout_before_last(data, end) }
    }

    /// Whether a packet that ends at `end` fits the layout.
    #[inline]
    fn agrees_with(&self, data: &Data, end: u64) -> bool {
        let Layout { unit, key: known } = self.layout;
        let payload = data.payload_bytes;
        let is_sized = payload == unit || (end == self.bytes && payload < unit);
        is_sized && key(data.psn, unit, data.offset) == known
    }

    /// Returns the layout if only the last packet has arrived: `received` is its length, the key
    /// its number, and this packet gives the unit. `None` if it does not fit, or another has
    /// arrived.
    #[cold]
    fn layout_before_last(&self, data: &Data, end: u64) -> Option<Layout> {
        if self.layout.unit != 0 {
            return None;
        }
        let key_of_last = key(self.layout.key, data.payload_bytes, self.bytes - self.received);
        let fits = end != self.bytes
            && self.received <= u64::from(data.payload_bytes)
            && key_of_last == key(data.psn, data.payload_bytes, data.offset);
        fits.then_some(Layout { unit: data.payload_bytes, key: key_of_last })
    }
}

#[inline]
fn key(psn: u64, unit: u16, offset: u64) -> u64 {
    psn.wrapping_mul(u64::from(unit)).wrapping_sub(offset)
}
