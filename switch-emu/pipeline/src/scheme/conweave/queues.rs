//! Reordering queues: the caller stores the frames, and executes each [`QueueAction`].

use super::settings::Settings;
use super::state::{Counts, Incoming, Queue, QueueAction, Queues, State};

pub(super) const MAX_QUEUES: usize = 256;

/// The state of a queue at its timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// The queue is empty.
    Free,
    /// The timeout was postponed to this time.
    At(u64),
    /// Its packets are released.
    Now,
}

impl State {
    /// Handles the timeout of a queue, unless it was postponed.
    //= docs/specs/conweave.md#CWV-16 a lost TAIL
    pub fn expire(&mut self, number: u32, now_ps: u64) -> Expiry {
        let Some(Some(queue)) = self.queues.all.get(number as usize) else { return Expiry::Free };
        if queue.due_ps > now_ps {
            return Expiry::At(queue.due_ps);
        }
        self.counts.timeouts += 1;
        if let Some(entry) = self.incoming.find(queue.flow) {
            self.queues.end(number, entry);
        }
        Expiry::Now
    }
}

impl Queues {
    /// Ends a queue: its flow's packets pass from now on.
    fn end(&mut self, number: u32, entry: &mut Incoming) {
        let ended = self.all.get_mut(number as usize).and_then(Option::take);
        self.bytes -= ended.map_or(0, |queue| queue.bytes);
        (entry.queue, entry.open) = (None, true);
    }

    fn queue(&mut self, number: u32) -> Option<&mut Queue> {
        self.all.get_mut(number as usize)?.as_mut()
    }
}

/// A received packet, and the state of its flow.
pub(super) struct Arrival<'a> {
    pub(super) settings: &'a Settings,
    pub(super) entry: &'a mut Incoming,
    pub(super) queues: &'a mut Queues,
    pub(super) counts: &'a mut Counts,
    pub(super) now_ps: u64,
    pub(super) sent_ps: u64,
    pub(super) len: u32,
    pub(super) host: u32,
    pub(super) flow: u64,
}

impl Arrival<'_> {
    /// Holds the packet in the queue of its flow, or a new one; without one it passes.
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
        self.set_order(number, true, false);
    }

    pub(super) fn postpone(&mut self, number: u32, due_ps: u64) {
        if let Some(queue) = self.queues.queue(number) {
            queue.due_ps = due_ps;
        }
        self.set_order(number, false, false);
    }

    /// Releases a queue behind the packet.
    pub(super) fn release(&mut self, number: u32) {
        self.set_order(number, false, true);
        self.queues.end(number, self.entry);
    }

    /// Releases a queue, and then the packet.
    pub(super) fn release_with(&mut self, number: u32) {
        self.join(number);
        self.set_order(number, true, true);
        self.queues.end(number, self.entry);
    }

    fn set_order(&mut self, number: u32, holds: bool, releases: bool) {
        let due_ps = self.queues.queue(number).map_or(0, |queue| queue.due_ps);
        self.queues.order = Some(QueueAction { queue: number, holds, releases, due_ps });
    }

    fn join(&mut self, number: u32) {
        let len = u64::from(self.len);
        if let Some(queue) = self.queues.queue(number) {
            queue.bytes += len;
            self.queues.bytes += len;
        }
        self.counts.held += 1;
        self.counts.held_bytes = self.counts.held_bytes.max(self.queues.bytes);
    }

    /// Opens a queue for the flow, within the limit of each host's port.
    fn open(&mut self, due_ps: u64) -> Option<u32> {
        let all = &mut self.queues.all;
        let of_host = all.iter().flatten().filter(|queue| queue.host == self.host).count();
        let number = all.iter().position(Option::is_none).unwrap_or(all.len());
        if of_host >= self.settings.queues as usize || number >= MAX_QUEUES {
            return None;
        }
        all.resize(all.len().max(number + 1), None);
        all[number] = Some(Queue { flow: self.flow, host: self.host, bytes: 0, due_ps });
        self.counts.queues = self.counts.queues.max(all.iter().flatten().count() as u64);
        self.entry.queue = Some(number as u32);
        self.entry.queue
    }
}
