//! Reordering queues: who calls the switch holds the frames, and does what an [`Order`] says.

use super::settings::Settings;
use super::state::{Came, Counts, Order, Queue, Queues, State};

/// Reordering queues of a switch.
pub(super) const MOST_QUEUES: usize = 256;

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

impl State {
    /// The time of a queue has come, unless it was put off.
    //= docs/specs/conweave.md#CWV-16 a lost TAIL
    pub fn expire(&mut self, number: u32, now_ps: u64) -> Expiry {
        let Some(Some(queue)) = self.queues.all.get(number as usize) else { return Expiry::Free };
        if queue.due_ps > now_ps {
            return Expiry::At(queue.due_ps);
        }
        self.counts.timeouts += 1;
        if let Some(entry) = self.came.find(queue.flow) {
            self.queues.end(number, entry);
        }
        Expiry::Now
    }
}

impl Queues {
    /// A queue ends: its flow's packets go on from now on.
    fn end(&mut self, number: u32, entry: &mut Came) {
        let ended = self.all.get_mut(number as usize).and_then(Option::take);
        self.bytes -= ended.map_or(0, |queue| queue.bytes);
        (entry.queue, entry.open) = (None, true);
    }

    fn queue(&mut self, number: u32) -> Option<&mut Queue> {
        self.all.get_mut(number as usize)?.as_mut()
    }
}

/// A packet that has come, and what the switch knows of its flow.
pub(super) struct Arrival<'a> {
    pub(super) settings: &'a Settings,
    pub(super) entry: &'a mut Came,
    pub(super) queues: &'a mut Queues,
    pub(super) counts: &'a mut Counts,
    pub(super) now_ps: u64,
    pub(super) sent_ps: u64,
    pub(super) len: u32,
    pub(super) host: u32,
    pub(super) flow: u64,
}

impl Arrival<'_> {
    /// Has the packet wait in the queue of its flow, or in a new one; where there is none it goes on.
    //= docs/specs/conweave.md#CWV-13 reordering queues
    pub(super) fn hold(&mut self, due_ps: u64) {
        let Some(number) = self.entry.queue.or_else(|| self.open(due_ps)) else {
            self.counts.no_queue += 1;
            return;
        };
        if self.queues.bytes + u64::from(self.len) > self.settings.held_bytes {
            self.counts.no_memory += 1;
            return self.release_with(number);
        }
        self.join(number);
        self.give(number, true, false);
    }

    /// Another time for a queue.
    pub(super) fn put_off(&mut self, number: u32, due_ps: u64) {
        if let Some(queue) = self.queues.queue(number) {
            queue.due_ps = due_ps;
        }
        self.give(number, false, false);
    }

    /// What waits in a queue goes on behind the packet.
    pub(super) fn release(&mut self, number: u32) {
        self.give(number, false, true);
        self.queues.end(number, self.entry);
    }

    /// What waits in a queue goes on, and then the packet.
    pub(super) fn release_with(&mut self, number: u32) {
        self.join(number);
        self.give(number, true, true);
        self.queues.end(number, self.entry);
    }

    fn give(&mut self, number: u32, holds: bool, releases: bool) {
        let due_ps = self.queues.queue(number).map_or(0, |queue| queue.due_ps);
        self.queues.order = Some(Order { queue: number, holds, releases, due_ps });
    }

    /// The packet waits in a queue too.
    fn join(&mut self, number: u32) {
        let len = u64::from(self.len);
        if let Some(queue) = self.queues.queue(number) {
            queue.bytes += len;
            self.queues.bytes += len;
        }
        self.counts.held += 1;
        self.counts.held_bytes = self.counts.held_bytes.max(self.queues.bytes);
    }

    /// A free queue for the flow; each host's port has so many.
    fn open(&mut self, due_ps: u64) -> Option<u32> {
        let all = &mut self.queues.all;
        let of_host = all.iter().flatten().filter(|queue| queue.host == self.host).count();
        let number = all.iter().position(Option::is_none).unwrap_or(all.len());
        if of_host >= self.settings.queues as usize || number >= MOST_QUEUES {
            return None;
        }
        all.resize(all.len().max(number + 1), None);
        all[number] = Some(Queue { flow: self.flow, host: self.host, bytes: 0, due_ps });
        self.counts.queues = self.counts.queues.max(all.iter().flatten().count() as u64);
        self.entry.queue = Some(number as u32);
        self.entry.queue
    }
}
