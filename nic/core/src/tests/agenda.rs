//! Time for tests: what is to happen, in order.

use std::collections::BTreeMap;

/// Things to come. Those of one time come in the order in which they were put.
pub struct Agenda<T> {
    items: BTreeMap<(u64, u64), T>,
    puts: u64,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), puts: 0 }
    }
}

impl<T> Agenda<T> {
    pub fn put(&mut self, at_ps: u64, item: T) {
        self.items.insert((at_ps, self.puts), item);
        self.puts += 1;
    }

    pub fn take_due(&mut self, now_ps: u64) -> Option<T> {
        let first = self.items.first_entry().filter(|entry| entry.key().0 <= now_ps)?;
        Some(first.remove())
    }

    pub fn next_ps(&self) -> Option<u64> {
        self.items.first_key_value().map(|((at_ps, _), _)| *at_ps)
    }
}
