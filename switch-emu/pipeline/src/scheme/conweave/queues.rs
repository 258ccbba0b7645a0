//! Reordering queues: which flow waits in which, and until when. Who calls the switch holds the frames, and does what [`order`] says.

use super::destination::{Arrival, OPEN, QUEUE_SHIFT};
pub use super::memory::MOST_QUEUES;
use super::memory::{CAME, Entry, Memory, came, queue, single};
use crate::scheme::{Forwarding, Scheme};

/// What is to be done after a packet has come to the switch of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The queue that it is about.
    pub queue: u32,
    /// The packet joins the queue instead of going on.
    pub holds: bool,
    /// The queue ends: what waits there goes on, right behind the packet.
    pub releases: bool,
    /// When the queue is [looked at](expire), if it has not ended.
    pub due_ps: u64,
}

const HOLDS: u64 = 1;
const RELEASES: u64 = 2;
const TIMES: u64 = 4;
const SHIFT: u32 = 8;

/// Takes what is to be done with the packet that has just come; `None`: it goes on.
pub fn order<F: Forwarding>(tables: &F, switch: u32) -> Option<Order> {
    let memory = Memory::of(tables, tables.switch(switch)?);
    let word = memory.load(single::ORDER);
    if word == 0 {
        return None;
    }
    memory.store(single::ORDER, 0);
    let number = (word >> SHIFT) as u32;
    let (holds, releases) = (word & HOLDS != 0, word & RELEASES != 0);
    Some(Order { queue: number, holds, releases, due_ps: memory.queue(number).load(queue::DUE_PS) })
}

/// What becomes of a queue whose time may have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Nothing waits there.
    Free,
    /// Its time has been put off.
    At(u64),
    /// What waits there goes on.
    Now,
}

/// The time of a queue has come, unless it was put off.
//= docs/specs/conweave.md#CWV-16 a lost TAIL
pub fn expire<F: Forwarding>(tables: &F, switch: u32, number: u32, now_ps: u64) -> Expiry {
    let Some(config) = tables.switch(switch).filter(|config| Scheme::from_number(config.scheme).holds()) else {
        return Expiry::Free;
    };
    let memory = Memory::of(tables, config);
    let line = memory.queue(number);
    let (flow, due_ps) = (line.load(queue::FLOW), line.load(queue::DUE_PS));
    if flow == 0 {
        return Expiry::Free;
    }
    if due_ps > now_ps {
        return Expiry::At(due_ps);
    }
    memory.add(single::TIMEOUTS, 1);
    if let Some(entry) = memory.find(CAME, came::WORDS, flow) {
        end(&memory, &entry, number);
    }
    Expiry::Now
}

/// Has a packet wait in the queue of its flow, or in a new one; where there is none it goes on.
//= docs/specs/conweave.md#CWV-13 holding
pub(super) fn hold<F: Forwarding>(
    memory: &Memory<'_, F>,
    entry: &Entry<'_, '_, F>,
    held: Option<u32>,
    arrival: &Arrival,
    due_ps: u64,
) {
    let Some(number) = held.or_else(|| open(memory, entry, arrival, due_ps)) else {
        memory.add(single::NO_QUEUE, 1);
        return;
    };
    if memory.load(single::BYTES) + u64::from(arrival.len) > memory.load(single::MOST_BYTES) {
        memory.add(single::NO_MEMORY, 1);
        return release_with(memory, entry, number, arrival);
    }
    join(memory, number, arrival);
    give(memory, number, HOLDS | TIMES);
}

/// Another time for a queue.
pub(super) fn put_off<F: Forwarding>(memory: &Memory<'_, F>, number: u32, due_ps: u64) {
    memory.queue(number).store(queue::DUE_PS, due_ps);
    give(memory, number, TIMES);
}

/// What waits in a queue goes on behind the packet.
pub(super) fn release<F: Forwarding>(memory: &Memory<'_, F>, entry: &Entry<'_, '_, F>, number: u32) {
    end(memory, entry, number);
    give(memory, number, RELEASES);
}

/// What waits in a queue goes on, and then the packet.
pub(super) fn release_with<F: Forwarding>(
    memory: &Memory<'_, F>,
    entry: &Entry<'_, '_, F>,
    number: u32,
    arrival: &Arrival,
) {
    join(memory, number, arrival);
    end(memory, entry, number);
    give(memory, number, HOLDS | RELEASES);
}

fn give<F: Forwarding>(memory: &Memory<'_, F>, number: u32, what: u64) {
    memory.store(single::ORDER, what | u64::from(number) << SHIFT);
}

/// A packet more waits in a queue.
fn join<F: Forwarding>(memory: &Memory<'_, F>, number: u32, arrival: &Arrival) {
    let (line, len) = (memory.queue(number), u64::from(arrival.len));
    line.store(queue::BYTES, line.load(queue::BYTES) + len);
    memory.add(single::HELD, 1);
    let bytes = memory.add(single::BYTES, len);
    memory.raise(single::BYTES_MOST, bytes);
}

/// A free queue for a flow; each host's port has so many.
fn open<F: Forwarding>(
    memory: &Memory<'_, F>,
    entry: &Entry<'_, '_, F>,
    arrival: &Arrival,
    due_ps: u64,
) -> Option<u32> {
    let (mut free, mut of_host) = (None, 0);
    for number in 0..MOST_QUEUES {
        let line = memory.queue(number);
        if line.load(queue::FLOW) == 0 {
            free = free.or(Some(number));
        } else {
            of_host += u64::from(line.load(queue::HOST) == u64::from(arrival.host));
        }
    }
    let number = free.filter(|_| of_host < memory.load(single::QUEUES))?;
    let line = memory.queue(number);
    line.store(queue::FLOW, arrival.flow);
    line.store(queue::HOST, arrival.host.into());
    line.store(queue::BYTES, 0);
    line.store(queue::DUE_PS, due_ps);
    entry.store(came::STATE, entry.load(came::STATE) & u64::from(u32::MAX) | u64::from(number + 1) << QUEUE_SHIFT);
    let now = memory.add(single::QUEUES_NOW, 1);
    memory.raise(single::QUEUES_MOST, now);
    Some(number)
}

/// A queue ends: its flow's packets go on from now on.
fn end<F: Forwarding>(memory: &Memory<'_, F>, entry: &Entry<'_, '_, F>, number: u32) {
    let line = memory.queue(number);
    memory.add(single::BYTES, line.load(queue::BYTES).wrapping_neg());
    memory.add(single::QUEUES_NOW, 1u64.wrapping_neg());
    line.store(queue::FLOW, 0);
    entry.store(came::STATE, entry.load(came::STATE) & u64::from(u32::MAX) | OPEN);
}
