//! What the algorithms reported, kept for whoever asks for it.

use spray_core::event::{Event, Publisher};

use super::ConnectionId;

/// One event of one connection's algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEntry {
    /// When, in picoseconds of the endpoint's time.
    pub at_ps: u64,
    /// Whose.
    pub connection: ConnectionId,
    /// What.
    pub event: Event,
}

/// A bounded log; it publishes under the connection that was set last.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) connection: ConnectionId,
    pub(crate) overflow: u64,
    entries: Vec<LogEntry>,
    capacity: usize,
}

impl Log {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { connection: ConnectionId(0), overflow: 0, entries: Vec::with_capacity(capacity), capacity }
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = LogEntry> {
        self.entries.drain(..)
    }
}

impl Publisher for Log {
    fn on_event(&mut self, at_ps: u64, event: Event) {
        if self.entries.len() < self.capacity {
            self.entries.push(LogEntry { at_ps, connection: self.connection, event });
        } else {
            self.overflow += u64::from(self.capacity > 0);
        }
    }
}
