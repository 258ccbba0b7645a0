//! A switch's memory: where its parts lie, and its tables of flows.

use super::super::Size;
use super::super::reunion::memory::Region;
use crate::routes::SwitchConfig;
use crate::scheme::Forwarding;
use crate::word::Word;

/// Single words, in their order.
pub(super) mod single {
    /// See [`Settings`](super::super::Settings).
    pub(crate) const REPLY_EXTRA_PS: u32 = 0;
    pub(crate) const PATH_BUSY_PS: u32 = 1;
    pub(crate) const INACTIVE_PS: u32 = 2;
    pub(crate) const RESUME_EXTRA_PS: u32 = 3;
    pub(crate) const RESUME_DEFAULT_PS: u32 = 4;
    pub(crate) const QUEUES: u32 = 5;
    pub(crate) const MOST_BYTES: u32 = 6;
    /// Bytes held now.
    pub(crate) const BYTES: u32 = 7;
    /// Queues in use now.
    pub(crate) const QUEUES_NOW: u32 = 8;
    /// What is to be done with the frame at hand, see [`order`](super::super::order); 0: nothing.
    pub(crate) const ORDER: u32 = 9;
    /// Frames that wait in the [`OUTBOX`](super::OUTBOX).
    pub(crate) const TO_SEND: u32 = 10;
    /// See [`Counts`](super::super::Counts).
    pub(crate) const REROUTED: u32 = 16;
    pub(crate) const HELD: u32 = 17;
    pub(crate) const BYTES_MOST: u32 = 18;
    pub(crate) const QUEUES_MOST: u32 = 19;
    pub(crate) const TIMEOUTS: u32 = 20;
    pub(crate) const NO_QUEUE: u32 = 21;
    pub(crate) const NO_MEMORY: u32 = 22;
    pub(crate) const NO_ENTRY: u32 = 23;
    pub(crate) const REPLIES: u32 = 24;
    pub(crate) const CLEARS: u32 = 25;
    pub(crate) const NOTIFIES: u32 = 26;
    /// How many there are.
    pub(crate) const COUNT: u32 = 32;
}

/// Sets of a table of flows, and entries of a set.
const SETS: u32 = 512;
const PLACES: u32 = 4;

/// What a source switch knows of a flow.
pub(super) mod sent {
    /// Its epoch, flags, and its path above.
    pub(crate) const STATE: u32 = 1;
    /// When its last packet came.
    pub(crate) const ACTIVE_PS: u32 = 2;
    /// Until when a reply is in time.
    pub(crate) const REPLY_BY_PS: u32 = 3;
    /// When its TAIL left; 0: none has in this epoch.
    pub(crate) const TAIL_PS: u32 = 4;
    /// Words of an entry; the first is the flow.
    pub(crate) const WORDS: u32 = 5;
}

/// What a destination switch knows of a flow.
pub(super) mod came {
    /// Its epoch, flags, and its queue plus 1 above.
    pub(crate) const STATE: u32 = 1;
    /// When its last packet came.
    pub(crate) const ACTIVE_PS: u32 = 2;
    /// When the last packet of the old path left its source switch, and when it came here.
    pub(crate) const OLD_SENT_PS: u32 = 3;
    pub(crate) const OLD_CAME_PS: u32 = 4;
    /// When the TAIL left its source switch.
    pub(crate) const TAIL_PS: u32 = 5;
    /// Words of an entry; the first is the flow.
    pub(crate) const WORDS: u32 = 6;
}

/// A reordering queue.
pub(super) mod queue {
    /// The flow; 0: it is free.
    pub(crate) const FLOW: u32 = 0;
    /// When it is given up.
    pub(crate) const DUE_PS: u32 = 1;
    /// What it holds.
    pub(crate) const BYTES: u32 = 2;
    /// The host that its flow goes to.
    pub(crate) const HOST: u32 = 3;
    /// Words of a queue.
    pub(crate) const WORDS: u32 = 4;
}

/// Reordering queues of a switch; with 8 bits an [`Order`](super::Order) names them.
pub const MOST_QUEUES: u32 = 256;
/// Frames that one arrival makes at most: a NOTIFY, and a reply or a CLEAR.
pub(super) const MOST_TO_SEND: u32 = 2;
/// Words of a frame to send: the switch that it goes to and the path, the flow, the tag.
pub(super) const SENT_WORDS: u32 = 3;

const SINGLE: Region = Region::first(single::COUNT);
/// The port of each way up, plus 1; way 0 does not exist.
pub(super) const WAYS: Region = Region::after(SINGLE, 256);
/// Until when paths are busy: a hash of leaf and path above, the time in ns below.
pub(super) const BUSY: Region = Region::after(WAYS, 4_096);
/// Frames to send.
pub(super) const OUTBOX: Region = Region::after(BUSY, MOST_TO_SEND * SENT_WORDS);
/// Flows of the switch's own hosts.
pub(super) const SENT: Region = Region::after(OUTBOX, SETS * PLACES * sent::WORDS);
/// Flows to the switch's own hosts.
pub(super) const CAME: Region = Region::after(SENT, SETS * PLACES * came::WORDS);
/// Reordering queues.
pub(super) const QUEUES: Region = Region::after(CAME, MOST_QUEUES * queue::WORDS);
const END: Region = Region::after(QUEUES, 1);

/// Words of a switch.
pub(in crate::scheme) const fn words(size: &Size) -> u32 {
    END.place(0) + size.leaves
}

/// Where the base RTT to a leaf is.
pub(super) const fn rtt(leaf: u32) -> u32 {
    END.place(0) + leaf
}

/// The memory of one switch.
pub(super) struct Memory<'a, F> {
    tables: &'a F,
    first: u32,
}

impl<'a, F: Forwarding> Memory<'a, F> {
    /// That of a switch.
    pub(super) fn of(tables: &'a F, switch: &SwitchConfig) -> Self {
        Self { tables, first: switch.memory }
    }

    /// The value of the word at this place.
    pub(super) fn load(&self, place: u32) -> u64 {
        self.tables.word(self.first.wrapping_add(place)).map_or(0, Word::load)
    }

    /// Sets the word at this place.
    pub(super) fn store(&self, place: u32, value: u64) {
        if let Some(word) = self.tables.word(self.first.wrapping_add(place)) {
            word.store(value);
        }
    }

    /// Adds to the word at this place; returns its new value.
    pub(super) fn add(&self, place: u32, value: u64) -> u64 {
        let sum = self.load(place).wrapping_add(value);
        self.store(place, sum);
        sum
    }

    /// Keeps the greater.
    pub(super) fn raise(&self, place: u32, value: u64) {
        self.store(place, self.load(place).max(value));
    }

    /// The port of a way up.
    pub(super) fn way(&self, way: u32) -> Option<u32> {
        (self.load(WAYS.place(way)) as u32).checked_sub(1)
    }

    /// A flow of a table whose entries have so many words, if it is there.
    pub(super) fn find(&self, table: Region, words: u32, flow: u64) -> Option<Entry<'_, 'a, F>> {
        self.set(table, words, flow).find(|entry| entry.load(0) == flow)
    }

    /// A flow of a table, and whether it is new: then it takes the place of none, or of one that may go. `None`: there is no such.
    //= docs/specs/conweave.md#CWV-17 tables of flows
    pub(super) fn enter(
        &self,
        table: Region,
        words: u32,
        flow: u64,
        may_go: impl Fn(&Entry<'_, 'a, F>) -> bool,
    ) -> Option<(Entry<'_, 'a, F>, bool)> {
        if let Some(known) = self.find(table, words, flow) {
            return Some((known, false));
        }
        let free = self.set(table, words, flow).find(|entry| entry.load(0) == 0 || may_go(entry))?;
        (1..words).for_each(|word| free.store(word, 0));
        free.store(0, flow);
        Some((free, true))
    }

    fn set(&self, table: Region, words: u32, flow: u64) -> impl Iterator<Item = Entry<'_, 'a, F>> {
        let first = (flow >> 32) as u32 % SETS * PLACES;
        (first..first + PLACES).map(move |place| Entry { memory: self, first: table.place(place * words) })
    }

    /// A reordering queue.
    pub(super) fn queue(&self, number: u32) -> Entry<'_, 'a, F> {
        Entry { memory: self, first: QUEUES.place(number * queue::WORDS) }
    }
}

/// Some words of a memory.
pub(super) struct Entry<'m, 'a, F> {
    memory: &'m Memory<'a, F>,
    first: u32,
}

impl<F: Forwarding> Entry<'_, '_, F> {
    pub(super) fn load(&self, word: u32) -> u64 {
        self.memory.load(self.first + word)
    }

    pub(super) fn store(&self, word: u32, value: u64) {
        self.memory.store(self.first + word, value);
    }
}
