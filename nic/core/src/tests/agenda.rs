//! An event queue for tests that advance the clock themselves.

use std::collections::BTreeMap;

use crate::Time;

/// Future events. Those of the same time are taken in the order in which they were put.
pub struct Agenda<T> {
    items: BTreeMap<(Time, u64), T>,
    puts: u64,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), puts: 0 }
    }
}

impl<T> Agenda<T> {
    pub fn put(&mut self, at: Time, item: T) {
        self.items.insert((at, self.puts), item);
        self.puts += 1;
    }

    pub fn take_due(&mut self, now: Time) -> Option<T> {
        let first = self.items.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }

    pub fn next(&self) -> Option<Time> {
        self.items.first_key_value().map(|((at, _), _)| *at)
    }
}
