//! The virtual queue: the bytes ahead of a frame that arrives at virtual time `t`.
//!
//! See `docs/specs/virtual-queue.md`; the clause that a line implements is cited as `VQ-n`.

use core::cell::Cell;

use crate::units::{PS_FRACTION_BITS, UNIT_BITS};
use crate::word::Word;

/// Slots of the ring: 1.2 MB at line rate, more than the reordering on a machine.
pub const SLOTS: usize = 128;
const SPAN: u64 = SLOTS as u64;
/// Steps to look for the queue's end: a lone frame rarely reaches beyond the next slot.
const DRAINS_WITHIN: usize = 3;
/// Steps per call, a divisor of [`SLOTS`]: 1 costs 10 % more for frames out of order, 4 costs 5 %.
const STRIDE: u64 = 2;
/// A frame this many slots behind the newest restarts the queue: tens of milliseconds.
//= docs/specs/virtual-queue.md#VQ-9 restart of a queue
const RESTART: u64 = 1 << 16;
const LOW: u64 = 0xffff_ffff;

/// A word of a queue.
pub trait QueueWord: Word {
    /// Runs [`Queue::walk`]; in the kernel a separate function, which the verifier follows once.
    #[inline(always)]
    fn walk(queue: &Queue<Self>, from: u64, to: u64, drain: &Drain) {
        queue.walk(from, to, drain);
    }

    /// Runs [`Queue::stride`]; a separate function in the kernel for the same reason.
    #[inline(always)]
    fn stride(queue: &Queue<Self>, from: u64, to: u64, drain: &Drain) {
        queue.stride(from, to, drain);
    }
}

impl QueueWord for Cell<u64> {}

#[cfg(not(target_arch = "bpf"))]
impl QueueWord for core::sync::atomic::AtomicU64 {}

/// One traffic class of a port, or both together.
#[repr(C)]
#[derive(Debug)]
pub struct Queue<W> {
    /// The last slot with a valid backlog.
    //= docs/specs/virtual-queue.md#VQ-5 the cursor
    cursor: W,
    /// The highest slot seen; slots more than a ring behind it are overwritten.
    //= docs/specs/virtual-queue.md#VQ-8 stale frames
    newest: W,
    slots: [Slot<W>; SLOTS],
}

//= docs/specs/virtual-queue.md#VQ-2 state of a slot
#[repr(C)]
#[derive(Debug)]
struct Slot<W> {
    /// Low half of the slot number << 32 | bytes that arrived.
    arrived: W,
    /// Units of unused capacity << 32 | units of backlog at the start.
    state: W,
}

/// The queues of a port.
//= docs/specs/virtual-queue.md#VQ-10 the two queues of a port
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct ClassQueues<Q> {
    /// Both classes, which are ahead of a data frame.
    pub total: Q,
    /// The control class, which is ahead of a control frame.
    pub control: Q,
}

/// Virtual queues of a port, for frames in any order.
pub type PortQueues<W> = ClassQueues<Queue<W>>;

/// A queue of one class, as a port uses it.
pub trait Backlog {
    /// The position of a frame.
    type Position: Copy;
    /// Returns the position of a frame that arrives at `t_ps`.
    fn locate(&self, t_ps: u64, drain: &Drain) -> Self::Position;
    /// Adds an accepted frame of `bytes` at its position.
    fn push(&self, position: &Self::Position, bytes: u32, drain: &Drain);
    /// Returns the whole bytes ahead of the position.
    fn bytes(&self, position: &Self::Position, drain: &Drain) -> u64;
    /// Returns the picoseconds from the frame's arrival until `bytes` of it have left.
    fn delay_ps(&self, position: &Self::Position, bytes: u32, drain: &Drain) -> u64;
    /// Returns whether the frame arrived too late for an exact position.
    //= docs/specs/virtual-queue.md#VQ-8 stale frames
    fn is_stale(&self, position: &Self::Position) -> bool;
    /// Returns the whole bytes that a frame at `t_ps` would find, without moving the queue.
    fn peek(&self, t_ps: u64, drain: &Drain) -> u64;
}

impl<W: QueueWord> Backlog for Queue<W> {
    type Position = Position;

    #[inline(always)]
    fn locate(&self, t_ps: u64, drain: &Drain) -> Position {
        Queue::locate(self, t_ps, drain)
    }

    #[inline(always)]
    fn push(&self, position: &Position, bytes: u32, _drain: &Drain) {
        Queue::push(self, position, bytes);
    }

    #[inline(always)]
    fn bytes(&self, position: &Position, _drain: &Drain) -> u64 {
        position.bytes()
    }

    #[inline(always)]
    fn delay_ps(&self, position: &Position, bytes: u32, drain: &Drain) -> u64 {
        drain.delay_ps(position.backlog, bytes)
    }

    #[inline(always)]
    fn is_stale(&self, position: &Position) -> bool {
        position.stale
    }

    /// Reads the frame's slot, or the newest one if that is earlier: only time passes between the
    /// two. Late arrivals in earlier slots are ignored until the next frame walks there.
    //= docs/specs/switching.md#SWC-15 a queue is read at the frame's own time
    #[inline(always)]
    fn peek(&self, t_ps: u64, drain: &Drain) -> u64 {
        let (wanted, newest) = (t_ps >> drain.shift, self.newest.load());
        let number = if wanted < newest { wanted } else { newest };
        let slot = self.slot(number);
        let (arrived, state) = (slot.arrived.load(), slot.state.load());
        if arrived >> 32 != number & LOW {
            return 0;
        }
        let supply = (state & LOW) + (state >> 32) + units(arrived);
        let (idle, offset) = (wanted.wrapping_sub(number), t_ps & ((1 << drain.shift) - 1));
        let per_slot = drain.during(number);
        let drained = idle.min(LOW).wrapping_mul(per_slot).wrapping_add((offset * per_slot) >> drain.shift);
        supply.saturating_sub(drained) >> UNIT_BITS
    }
}

/// The drain rate of a queue around the time of a frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain {
    /// A slot lasts `1 << shift` ps. 64 bits, to avoid padding: see [`Frame`](crate::frame::Frame).
    pub shift: u64,
    /// Units per slot now.
    pub units: u32,
    /// Units per slot before the slot `since`.
    pub before: u32,
    /// First slot of the present rate.
    pub since: u64,
    /// Picoseconds per unit now, with fraction.
    pub ps_per_unit: u64,
}

const _: () = assert!(size_of::<Drain>() == 3 * 8 + 2 * 4);

/// The position of a frame in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Units ahead of the frame.
    pub backlog: u64,
    index: u32,
    /// The frame arrived too late for its slot and is in the oldest one.
    //= docs/specs/virtual-queue.md#VQ-8 stale frames
    stale: bool,
}

impl Position {
    #[inline(always)]
    fn new(slot: u64, backlog: u64, stale: bool) -> Self {
        Self { backlog, index: (slot % SPAN) as u32, stale }
    }

    /// Returns the whole bytes ahead of the frame.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        self.backlog >> UNIT_BITS
    }
}

impl Drain {
    /// Returns the picoseconds until a frame of `bytes` behind `backlog` units has left.
    //= docs/specs/virtual-queue.md#VQ-4 backlog and departure
    //= docs/specs/virtual-queue.md#VQ-3 rates without a division
    #[inline(always)]
    pub fn delay_ps(&self, backlog: u64, bytes: u32) -> u64 {
        let units = backlog.saturating_add(u64::from(bytes) << UNIT_BITS).min(LOW);
        // Separately: the product of a full queue at the lowest rate exceeds 64 bits.
        let (whole, rest) = (self.ps_per_unit >> PS_FRACTION_BITS, self.ps_per_unit & ((1 << PS_FRACTION_BITS) - 1));
        units.wrapping_mul(whole).wrapping_add(units.wrapping_mul(rest) >> PS_FRACTION_BITS)
    }

    //= docs/specs/virtual-queue.md#VQ-11 changes of the rate
    #[inline(always)]
    fn during(&self, slot: u64) -> u64 {
        u64::from(if slot < self.since { self.before } else { self.units })
    }
}

impl<W: QueueWord> Queue<W> {
    /// Returns the position of a frame that arrives at `t_ps`; advances the queue to `t_ps`.
    //= docs/specs/virtual-queue.md#VQ-4 backlog and departure
    #[inline(always)]
    pub fn locate(&self, t_ps: u64, drain: &Drain) -> Position {
        let wanted = t_ps >> drain.shift;
        let offset = t_ps & ((1 << drain.shift) - 1);
        let newest = self.newest.load();
        if newest.saturating_sub(wanted) >= RESTART {
            return self.restart(wanted, offset, drain);
        }
        let stale = wanted.wrapping_add(SPAN) <= newest;
        let slot = if stale { newest - (SPAN - 1) } else { wanted };
        let offset = if stale { 0 } else { offset };
        let cursor = self.cursor.load();
        if slot > cursor {
            W::walk(self, cursor, slot, drain);
        } else if slot < cursor {
            self.cursor.store(slot);
        }
        // After the walk, which needs the previous newest slot.
        if slot > newest {
            self.newest.store(slot);
        }
        let backlog = self.ahead(slot, (offset * drain.during(slot)) >> drain.shift);
        Position::new(slot, backlog, stale)
    }

    /// Empties the queue and restarts at `slot`.
    #[inline(always)]
    fn restart(&self, slot: u64, offset: u64, drain: &Drain) -> Position {
        self.newest.store(slot);
        self.cursor.store(slot);
        let first = self.slot(slot);
        first.reset(first.arrived.load(), slot, 0);
        let backlog = self.ahead(slot, (offset * drain.during(slot)) >> drain.shift);
        Position::new(slot, backlog, false)
    }

    /// Adds an accepted frame at its position.
    //= docs/specs/virtual-queue.md#VQ-12 several CPUs
    #[inline(always)]
    pub fn push(&self, position: &Position, bytes: u32) {
        let slot = &self.slots[position.index as usize % SLOTS];
        slot.arrived.add(u64::from(bytes));
        // Another CPU that has advanced the cursor meanwhile may not have counted these bytes.
        let cursor = self.cursor.load();
        let number = cursor.wrapping_sub(cursor.wrapping_sub(u64::from(position.index)) % SPAN);
        if number != cursor && slot.arrived.load() >> 32 == number & LOW {
            self.cursor.store(number);
        }
    }

    /// Backlog inside a slot after `drained` units of its capacity; records unused capacity.
    //= docs/specs/virtual-queue.md#VQ-7 unused capacity
    #[inline(always)]
    fn ahead(&self, number: u64, drained: u64) -> u64 {
        let slot = self.slot(number);
        let arrived = slot.arrived.load();
        if arrived >> 32 != number & LOW {
            slot.reset(arrived, number, 0);
            slot.state.store(drained.min(LOW) << 32);
            return 0;
        }
        let state = slot.state.load();
        let supply = (state & LOW) + (state >> 32) + units(arrived);
        if supply < drained {
            slot.state.store(state.wrapping_add((drained - supply) << 32));
            return 0;
        }
        supply - drained
    }

    /// Carries the backlog, and the cursor, from slot `from` to the later slot `to`.
    //= docs/specs/virtual-queue.md#VQ-6 the walk to a later slot
    #[inline(always)]
    pub fn walk(&self, from: u64, to: u64, drain: &Drain) {
        self.carry(from, to, drain);
        //= docs/specs/virtual-queue.md#VQ-12 several CPUs
        self.cursor.compare_set(from, to);
        // Counts what another CPU has added meanwhile. What it adds later sets the cursor back.
        if to.wrapping_sub(from) < SPAN {
            self.step(to.wrapping_sub(1), drain);
        }
    }

    /// Computes the backlog at the start of each slot up to `to`.
    #[inline(always)]
    fn carry(&self, from: u64, to: u64, drain: &Drain) {
        let newest = self.newest.load();
        let seen = self.slot(to).arrived.load();
        let mut from = from;
        // An early exit of the long loop would multiply the verifier's paths: find the end here.
        for _ in 0..DRAINS_WITHIN {
            if from < newest {
                break;
            }
            if self.slot(from).end(from, drain.during(from)) == 0 {
                // Drained: slots in between are unchanged, and a stale slot reads as idle.
                return self.slot(to).reset(seen, to, 0);
            }
            self.step(from, drain);
            from = from.wrapping_add(1);
            if from == to {
                return;
            }
        }
        self.walk_all(from, to, drain);
    }

    #[inline(always)]
    fn walk_all(&self, from: u64, to: u64, drain: &Drain) {
        let gap = to.wrapping_sub(from);
        let mut slot = from;
        for stride in 0..SPAN / STRIDE {
            W::stride(self, slot, to, drain);
            slot = slot.wrapping_add(STRIDE);
            if (stride + 1) * STRIDE >= gap {
                return;
            }
        }
        let (idle, backlog) = (gap.wrapping_sub(SPAN).min(LOW), self.slot(slot).start());
        self.slot(to).begin(to, backlog.saturating_sub(idle.wrapping_mul(drain.during(to))));
    }

    /// Carries the backlog by `STRIDE` slots, at most to the later slot `to`.
    #[inline(always)]
    pub fn stride(&self, from: u64, to: u64, drain: &Drain) {
        let mut slot = from;
        for _ in 0..STRIDE {
            self.step(slot, drain);
            slot = slot.wrapping_add(1);
            if slot == to {
                return;
            }
        }
    }

    #[inline(always)]
    fn step(&self, slot: u64, drain: &Drain) {
        let next = slot.wrapping_add(1);
        self.slot(next).begin(next, self.slot(slot).end(slot, drain.during(slot)));
    }

    #[inline(always)]
    fn slot(&self, number: u64) -> &Slot<W> {
        &self.slots[number as usize % SLOTS]
    }
}

impl<W: Word> Slot<W> {
    /// Backlog at the slot's end, the start of the next.
    #[inline(always)]
    fn end(&self, number: u64, capacity: u64) -> u64 {
        let arrived = self.arrived.load();
        if arrived >> 32 != number & LOW {
            return 0;
        }
        let state = self.state.load();
        ((state & LOW) + (state >> 32) + units(arrived)).saturating_sub(capacity).min(LOW)
    }

    #[inline(always)]
    fn start(&self) -> u64 {
        self.state.load() & LOW
    }

    /// Sets the backlog at the slot's start. A rise reduces the unused capacity.
    //= docs/specs/virtual-queue.md#VQ-7 unused capacity
    #[inline(always)]
    fn begin(&self, number: u64, backlog: u64) {
        let arrived = self.arrived.load();
        if arrived >> 32 != number & LOW {
            self.reset(arrived, number, backlog);
            return;
        }
        let state = self.state.load();
        let wasted = (state >> 32).saturating_sub(backlog.saturating_sub(state & LOW));
        self.state.store(wasted << 32 | backlog);
    }

    /// Resets the slot, but keeps bytes if another CPU has reset it since `arrived` was read.
    #[inline(always)]
    fn reset(&self, arrived: u64, number: u64, backlog: u64) {
        self.state.store(backlog);
        self.arrived.compare_set(arrived, (number & LOW) << 32);
    }
}

/// Units in the low half of an `arrived` word, saturated to 32 bits.
#[inline(always)]
fn units(arrived: u64) -> u64 {
    ((arrived & LOW) << UNIT_BITS).min(LOW)
}

/// Words in a [`Queue`].
#[cfg(not(target_arch = "bpf"))]
pub const QUEUE_WORDS: usize = 2 + 2 * SLOTS;

#[cfg(not(target_arch = "bpf"))]
impl<W: Default> Default for Queue<W> {
    fn default() -> Self {
        let slots = core::array::from_fn(|_| Slot { arrived: W::default(), state: W::default() });
        Self { cursor: W::default(), newest: W::default(), slots }
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Queue<Cell<u64>> {
    /// Copies a queue from its words, to be sampled without changing the original.
    pub fn from_words(words: &[u64; QUEUE_WORDS]) -> Self {
        let slot = |i: usize| Slot { arrived: Cell::new(words[2 + 2 * i]), state: Cell::new(words[3 + 2 * i]) };
        Self { cursor: Cell::new(words[0]), newest: Cell::new(words[1]), slots: core::array::from_fn(slot) }
    }
}

#[cfg(test)]
mod tests;
