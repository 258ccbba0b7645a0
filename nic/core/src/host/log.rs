//! The events that the algorithms of a host's connections report, each with its connection.

use alloc::vec::Vec;

use super::ev_use::{EvLife, EvUse};
use crate::Time;
use crate::event::{Choice, Event, Publisher};
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
pub struct Log {
    entries: Vec<LogEntry>,
    capacity: usize,
    retransmits: bool,
    overflow: u64,
    evs: EvUse,
}

impl Log {
    /// Keeps the first `capacity` events and counts the others. With 0 it neither keeps nor counts.
    pub fn bounded(capacity: usize) -> Self {
        Self { entries: Vec::with_capacity(capacity), capacity, retransmits: true, overflow: 0, evs: EvUse::new() }
    }

    /// Keeps everything but retransmissions, which the senders count.
    pub const fn unbounded() -> Self {
        Self { entries: Vec::new(), capacity: usize::MAX, retransmits: false, overflow: 0, evs: EvUse::new() }
    }

    /// Keeps everything.
    pub const fn complete() -> Self {
        Self { entries: Vec::new(), capacity: usize::MAX, retransmits: true, overflow: 0, evs: EvUse::new() }
    }

    /// A publisher that logs the events of connection `number`.
    #[inline]
    pub fn of(&mut self, number: u32) -> OfConnection<'_> {
        OfConnection { log: self, number }
    }

    /// Counts the entropy values of connection `number` from now on, in bins of time of which the first begins at `begin`.
    pub fn watch(&mut self, number: u32, begin: Time) {
        self.evs.watch(number, begin);
    }

    /// What came of [`Log::watch`].
    pub fn ev_lives(&self) -> &[EvLife] {
        self.evs.lives()
    }

    /// Takes all entries out.
    pub fn drain(&mut self) -> impl Iterator<Item = LogEntry> {
        self.entries.drain(..)
    }

    /// Events for which there was no room.
    pub fn overflow(&self) -> u64 {
        self.overflow
    }
}

/// A publisher that logs events under one connection.
#[derive(Debug)]
pub struct OfConnection<'a> {
    log: &'a mut Log,
    number: u32,
}

impl Publisher for OfConnection<'_> {
    fn on_event(&mut self, at: Time, event: Event) {
        let Log { entries, capacity, retransmits, overflow, .. } = &mut *self.log;
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
        self.log.evs.watches(self.number)
    }

    fn on_choice(&mut self, now: Time, ev: Ev, evs: u32, choice: Choice) {
        self.log.evs.count(self.number, now, ev, evs, choice);
    }
}
