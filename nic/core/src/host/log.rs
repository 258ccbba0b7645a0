//! Events of the algorithms, by connection.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::Time;
use crate::event::{Choice, ChoiceTap, Event, Publisher};
use crate::feedback::Ev;

/// One event of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// When it happened.
    pub at: Time,
    /// The connection's number.
    pub connection: u32,
    /// What happened.
    pub event: Event,
}

/// The events so far, oldest first.
#[derive(Debug)]
pub struct EventLog {
    entries: Vec<LogEntry>,
    capacity: usize,
    retransmits: bool,
    overflow: u64,
    taps: Vec<(u32, Box<dyn ChoiceTap>)>,
}

impl EventLog {
    /// Keeps the first `capacity` events and counts the others. With 0 it neither keeps nor counts.
    pub fn bounded(capacity: usize) -> Self {
        Self { entries: Vec::with_capacity(capacity), capacity, retransmits: true, overflow: 0, taps: Vec::new() }
    }

    #[cfg(any(test, feature = "lab"))]
    /// Keeps all events but retransmissions, which the senders count.
    pub const fn unbounded() -> Self {
        Self { entries: Vec::new(), capacity: usize::MAX, retransmits: false, overflow: 0, taps: Vec::new() }
    }

    #[cfg(any(test, feature = "lab"))]
    /// Keeps all events.
    pub const fn complete() -> Self {
        Self { entries: Vec::new(), capacity: usize::MAX, retransmits: true, overflow: 0, taps: Vec::new() }
    }

    /// Returns the publisher of connection `number`.
    #[inline]
    pub fn of(&mut self, number: u32) -> ConnectionLog<'_> {
        ConnectionLog { log: self, number }
    }

    /// Passes all further choices of connection `number` to `tap`.
    pub fn tap_choices(&mut self, number: u32, tap: Box<dyn ChoiceTap>) {
        self.taps.push((number, tap));
    }

    /// Removes and returns all entries.
    pub fn drain(&mut self) -> impl Iterator<Item = LogEntry> {
        self.entries.drain(..)
    }

    /// Returns the number of events that were not kept.
    pub fn overflow(&self) -> u64 {
        self.overflow
    }
}

/// The publisher of one connection's events.
#[derive(Debug)]
pub struct ConnectionLog<'a> {
    log: &'a mut EventLog,
    number: u32,
}

impl Publisher for ConnectionLog<'_> {
    fn on_event(&mut self, at: Time, event: Event) {
        let EventLog { entries, capacity, retransmits, overflow, .. } = &mut *self.log;
        if !*retransmits && matches!(event, Event::Retransmit { .. }) {
            return;
        }
        if entries.len() < *capacity {
            entries.push(LogEntry { at, connection: self.number, event });
        } else {
            *overflow += u64::from(*capacity > 0);
        }
    }

    #[inline]
    fn wants_choices(&self) -> bool {
        self.log.taps.iter().any(|(number, _)| *number == self.number)
    }

    fn on_choice(&mut self, now: Time, ev: Ev, evs: u32, choice: Choice) {
        let taps = self.log.taps.iter_mut().filter(|(number, _)| *number == self.number);
        taps.for_each(|(_, tap)| tap.on_choice(now, ev, evs, choice));
    }
}
